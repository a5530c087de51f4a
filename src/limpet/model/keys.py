"""Keys by the names that tmux has for them, and the bytes that a terminal of xterm's kind sends for each."""

import re
from collections.abc import Iterable
from typing import Final

from limpet.model.errors import Refusal

_SHIFT, _ALT, _CTRL = 1, 2, 4
_MODIFIERS: Final = {"S": _SHIFT, "M": _ALT, "C": _CTRL}

# Cursor keys: `ESC [ letter`, and `ESC O letter` for a program that asked for application cursor keys (DECCKM).
_CURSOR: Final = {"up": "A", "down": "B", "right": "C", "left": "D", "home": "H", "end": "F"}
# Function keys that end in a letter, and keys that end in `~`, by their number.
_LETTERED: Final = {"f1": "P", "f2": "Q", "f3": "R", "f4": "S"}
_NUMBERED: Final = {
    "ic": 2, "insert": 2, "dc": 3, "delete": 3,
    "ppage": 5, "pageup": 5, "pgup": 5, "npage": 6, "pagedown": 6, "pgdn": 6,
    "f5": 15, "f6": 17, "f7": 18, "f8": 19, "f9": 20, "f10": 21, "f11": 23, "f12": 24,
}  # fmt: skip
_SINGLE: Final = {"enter": b"\r", "tab": b"\t", "escape": b"\x1b", "space": b" ", "bspace": b"\x7f"}
_KEYPAD: Final = {
    **{f"kp{sign}": sign.encode() for sign in "0123456789/*-+."},
    "kpenter": b"\r",
}
_BACKTAB: Final = b"\x1b[Z"
# What Ctrl makes of the characters that are no letters, as terminals have always had it.
_CONTROLS: Final = {
    "@": 0, " ": 0, "2": 0, "[": 27, "3": 27, "\\": 28, "4": 28, "]": 29, "5": 29,
    "^": 30, "6": 30, "_": 31, "/": 31, "-": 31, "7": 31, "?": 127, "8": 127,
}  # fmt: skip

_MODE: Final = re.compile(rb"\x1b(?:\[\?([0-9;]*)([hl])|\[!p|c)")


NAMES: Final = frozenset({*_CURSOR, *_LETTERED, *_NUMBERED, *_SINGLE, *_KEYPAD, "btab"})
"""Every key that has a name, in lower case: names are taken in any case, as tmux does."""


def encode_keys(keys: Iterable[str], *, application_cursor: bool) -> bytes:
    """What to write for these, one after the other; each is a key's name or literal text."""
    return b"".join(_encode(key, application_cursor) for key in keys)


def _encode(key: str, application_cursor: bool) -> bytes:
    modifiers, name = _split(key)
    if name.lower() in NAMES:
        known = _named(name.lower(), modifiers, application_cursor)
    elif len(name) == 1 and modifiers:
        known = _character(name, modifiers)
    else:
        return key.encode()  # no key is named so: it is text
    if known is None:
        message = f"`keys`: a terminal sends nothing of its own for {key!r}; see the table of keys for what there is"
        raise Refusal("invalid_argument", message, field="keys")
    return known


def _split(key: str) -> tuple[int, str]:
    """The modifiers in front of a key, and the key: `C-M-x`, or `^x` for `C-x`."""
    if len(key) == 2 and key[0] == "^":
        return _CTRL, key[1]
    modifiers = 0
    while len(key) > 2 and key[1] == "-" and key[0].upper() in _MODIFIERS:
        modifiers |= _MODIFIERS[key[0].upper()]
        key = key[2:]
    return modifiers, key


def _named(name: str, modifiers: int, application_cursor: bool) -> bytes | None:
    """None where the terminal has nothing to say for the key with these modifiers."""
    if name in _CURSOR:
        letter = _CURSOR[name]
        if modifiers:
            return f"\x1b[1;{modifiers + 1}{letter}".encode()
        return f"\x1b{'O' if application_cursor else '['}{letter}".encode()
    if name in _LETTERED:
        return (f"\x1b[1;{modifiers + 1}" if modifiers else "\x1bO").encode() + _LETTERED[name].encode()
    if name in _NUMBERED:
        return f"\x1b[{_NUMBERED[name]}{f';{modifiers + 1}' if modifiers else ''}~".encode()
    if name == "btab" or (name == "tab" and modifiers & _SHIFT):
        return _with_alt(_BACKTAB, modifiers & ~_SHIFT)
    if name == "space":
        return _character(" ", modifiers & ~_SHIFT) if modifiers & ~_SHIFT else b" "
    if name == "bspace" and modifiers & _CTRL:
        return _with_alt(b"\x08", modifiers & ~_CTRL)
    return _with_alt((_SINGLE | _KEYPAD)[name], modifiers)


def _with_alt(data: bytes, modifiers: int) -> bytes | None:
    """Alt is an Escape in front; a terminal does not tell any other modifier of these keys."""
    return {0: data, _ALT: b"\x1b" + data}.get(modifiers)


def _character(character: str, modifiers: int) -> bytes | None:
    data = character.encode()
    if modifiers & _CTRL:
        code = ord(character.upper()) - 64 if character.isascii() and character.isalpha() else _CONTROLS.get(character)
        if code is None:
            return None
        data = bytes([code])
    elif modifiers & _SHIFT:
        if not (character.isascii() and character.isalpha()):
            return None
        data = data.upper()
    return _with_alt(data, modifiers & _ALT)


def last_cursor_mode(output: bytes) -> bool | None:
    """Whether a terminal that was shown this sends application cursor keys; None where nothing in it says so."""
    found: bool | None = None
    for sequence in _MODE.finditer(output):
        numbers, switch = sequence.groups()
        if switch is None:  # a reset of the terminal
            found = False
        elif b"1" in numbers.split(b";"):
            found = switch == b"h"
    return found
