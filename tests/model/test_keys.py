"""Keys by name: the bytes are those that terminfo has for xterm, and what is no key is text."""

from __future__ import annotations

import curses
import os

import pytest

from limpet.model.errors import Refusal
from limpet.model.keys import NAMES, encode_keys, last_cursor_mode


def sent(*keys: str, application_cursor: bool = False) -> bytes:
    return encode_keys(keys, application_cursor=application_cursor)


@pytest.mark.requirement("1.7")
@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("Enter", b"\r"),
        ("Tab", b"\t"),
        ("BTab", b"\x1b[Z"),
        ("S-Tab", b"\x1b[Z"),
        ("Escape", b"\x1b"),
        ("Space", b" "),
        ("BSpace", b"\x7f"),
        ("M-BSpace", b"\x1b\x7f"),
        ("C-BSpace", b"\x08"),
        ("C-c", b"\x03"),
        ("C-C", b"\x03"),
        ("^C", b"\x03"),
        ("c-d", b"\x04"),
        ("C-Space", b"\0"),
        ("C-@", b"\0"),
        ("C-[", b"\x1b"),
        ("C-\\", b"\x1c"),
        ("C-]", b"\x1d"),
        ("C-^", b"\x1e"),
        ("C-_", b"\x1f"),
        ("C-/", b"\x1f"),
        ("C-?", b"\x7f"),
        ("C--", b"\x1f"),
        ("M-x", b"\x1bx"),
        ("M-X", b"\x1bX"),
        ("M-S-x", b"\x1bX"),
        ("M-é", "\x1bé".encode()),
        ("C-M-x", b"\x1b\x18"),
        ("M-C-x", b"\x1b\x18"),
        ("S-a", b"A"),
        ("M-Enter", b"\x1b\r"),
        ("Up", b"\x1b[A"),
        ("S-Up", b"\x1b[1;2A"),
        ("M-Up", b"\x1b[1;3A"),
        ("C-Left", b"\x1b[1;5D"),
        ("C-S-M-End", b"\x1b[1;8F"),
        ("F1", b"\x1bOP"),
        ("S-F1", b"\x1b[1;2P"),
        ("F5", b"\x1b[15~"),
        ("C-F12", b"\x1b[24;5~"),
        ("IC", b"\x1b[2~"),
        ("Delete", b"\x1b[3~"),
        ("S-DC", b"\x1b[3;2~"),
        ("PPage", b"\x1b[5~"),
        ("PageDown", b"\x1b[6~"),
        ("KP5", b"5"),
        ("KPEnter", b"\r"),
        # Text, for no key is named so.
        ("ls -l", b"ls -l"),
        ("C-3PO", b"C-3PO"),
        ("M-", b"M-"),
        ("-", b"-"),
        ("^", b"^"),
        ("", b""),
        ("é", "é".encode()),
        ("F13", b"F13"),
    ],
)
def test_what_is_sent(key: str, data: bytes) -> None:
    assert sent(key) == data


@pytest.mark.requirement("1.7")
def test_one_after_the_other() -> None:
    assert sent("echo hi", "Enter", "C-d") == b"echo hi\r\x04"


@pytest.mark.requirement("1.7")
@pytest.mark.parametrize("key", ["C-;", "C-é", "S-1", "S-Enter", "C-Enter", "C-Tab", "S-Escape", "C-KP1", "^;"])
def test_a_key_that_a_terminal_cannot_tell_is_refused(key: str) -> None:
    with pytest.raises(Refusal, match="invalid_argument"):
        sent(key)


def test_every_name_is_a_key() -> None:
    for name in NAMES:
        assert sent(name) != name.encode(), name
        assert sent(name.upper()) == sent(name.title()) == sent(name)


@pytest.mark.requirement("1.7")
def test_terminfo_says_the_same() -> None:
    """xterm's terminfo is written for application cursor keys: programs turn them on and expect those."""
    curses.setupterm("xterm", os.open(os.devnull, os.O_WRONLY))
    capabilities = {
        "Up": "kcuu1", "Down": "kcud1", "Left": "kcub1", "Right": "kcuf1", "Home": "khome", "End": "kend",
        "IC": "kich1", "DC": "kdch1", "PPage": "kpp", "NPage": "knp", "BTab": "kcbt",
        **{f"F{number}": f"kf{number}" for number in range(1, 13)},
        "S-Left": "kLFT", "S-Right": "kRIT", "S-Up": "kri", "S-Down": "kind", "S-DC": "kDC", "S-Home": "kHOM",
        "S-End": "kEND", "S-NPage": "kNXT", "S-PPage": "kPRV", "S-IC": "kIC",
    }  # fmt: skip
    for key, capability in capabilities.items():
        assert sent(key, application_cursor=True) == curses.tigetstr(capability), key


@pytest.mark.requirement("1.7")
@pytest.mark.parametrize(
    ("output", "mode"),
    [
        (b"nothing of the kind", None),
        (b"\x1b[?1h\x1b=", True),
        (b"\x1b[?1hx\x1b[?1l\x1b>", False),
        (b"\x1b[?1049h\x1b[?12l\x1b[?25h", None),
        (b"\x1b[?1049;1h", True),
        (b"\x1b[?1;25h...\x1b[?25l", True),
        (b"\x1b[?1h\x1bc", False),
        (b"\x1b[?1h\x1b[!p", False),
        (b"\x1b[1h", None),
    ],
)
def test_the_mode_that_output_leaves(output: bytes, mode: bool | None) -> None:
    assert last_cursor_mode(output) is mode
