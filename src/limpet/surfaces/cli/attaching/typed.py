"""What a person types, told apart: the keys that detach, what the terminal itself answers, and all else."""

import re
from typing import Final, NamedTuple

from limpet.model.errors import Refusal
from limpet.model.keys import encode_keys

DETACH_KEYS: Final = "C-] d"
# Answers to what programs ask: a place, a kind, a state, a mode, colours, strings.
_ANSWER: Final = re.compile(
    rb"\x1b\[\??[0-9;]*R|\x1b\[[?>=][0-9;]*[cun]|\x1b\[[0-9;]*(?:n|t|x)|\x1b\[\?[0-9;]*\$y"
    rb"|\x1b\](?:1[0-9]|4|5|52);[^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[P_][^\x1b]*\x1b\\"
)
_BEGUN: Final = re.compile(rb"\x1b(?:\[[?>=0-9;$]*|[\]P_][^\x07\x1b]*\x1b?)?\Z")


class Piece(NamedTuple):
    """Some bytes, and whether the terminal said them by itself."""

    data: bytes
    is_answer: bool


class Typed:
    """Takes bytes as they come, however they are cut."""

    def __init__(self, detach_keys: str) -> None:
        keys = detach_keys.split()
        if not keys:
            raise Refusal("invalid_argument", "--detach-keys: name at least one key, like `C-] d`")
        self._keys = [_forms(key) for key in keys]
        # Where they can begin: all else is passed over.
        begin = b"".join(re.escape(form[:1]) for form in self._keys[0])
        self._begin: re.Pattern[bytes] = re.compile(b"[" + begin + b"]")
        self._held: bytes = b""
        self.detached = False

    def take(self, data: bytes, *, expects_answers: bool) -> list[Piece]:
        """What goes to the program, in order; nothing any more once `detached`."""
        data = self._cut_detaching(data)
        if not expects_answers:
            return [Piece(data, False)] if data else []
        pieces: list[Piece] = []
        place = 0
        for found in _ANSWER.finditer(data):
            if found.start() > place:
                pieces.append(Piece(data[place : found.start()], False))
            pieces.append(Piece(found[0], True))
            place = found.end()
        if place < len(data):
            pieces.append(Piece(data[place:], False))
        return pieces

    def begun_answer(self, data: bytes) -> int:
        """How many bytes at the end may be an answer that has only begun."""
        found = _BEGUN.search(data)
        return len(data) - found.start() if found else 0

    def _cut_detaching(self, data: bytes) -> bytes:
        """The bytes without a sequence that detaches, up to it; one that has only begun is held back."""
        data, self._held = self._held + data, b""
        place = 0
        while found := self._begin.search(data, place):
            place = found.start()
            end, is_whole = self._match(data, place)
            if is_whole:
                self.detached = True
                return data[:place]
            if end:
                self._held = data[place:]
                return data[:place]
            place += 1
        return data

    def _match(self, data: bytes, place: int) -> tuple[int, bool]:
        """How far the sequence goes from there, 0 where it does not begin; and whether all of it is there."""
        for forms in self._keys:
            form = next((each for each in forms if data.startswith(each, place)), None)
            if form is None:
                rest = data[place:]
                is_begun = any(each.startswith(rest) for each in forms) and (len(rest) == 0 or rest[:1] != b"\x1b")
                return (place + len(rest) if is_begun else 0), False
            place += len(form)
        return place, True


def _forms(key: str) -> tuple[bytes, ...]:
    """How terminals send that key: as ever, and where a program has asked for more."""
    plain = encode_keys([key], application_cursor=False)
    if not plain or (len(key) > 1 and plain == key.encode()):
        raise Refusal("invalid_argument", f"--detach-keys: {key!r} is no key: write names like `C-] d` or `C-a C-d`")
    if len(plain) == 1 and plain[0] < 32:
        letter = (plain[0] | 0x40).to_bytes(1)
        code = ord(letter.lower()) if letter.isalpha() else ord(letter)
        return plain, b"\x1b[%d;5u" % code, b"\x1b[27;5;%d~" % code
    return (plain,)
