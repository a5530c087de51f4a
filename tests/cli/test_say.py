"""What reaches a person's terminal, and what exit codes mean."""

import unicodedata
from typing import Any

import pytest

from limpet.surfaces.cli.ends import exit_code_of, signal_name
from limpet.surfaces.cli.say import visible


@pytest.mark.requirement("6.7", "F50")
def test_no_control_character_gets_through() -> None:
    """Every character there is, one by one: what a terminal may obey is shown instead."""
    for code in range(0x110000):
        char = chr(code)
        shown = visible(char)
        if unicodedata.category(char) == "Cc" or unicodedata.bidirectional(char) in {
            *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
        }:
            assert shown != char
            assert shown.isascii()
            assert shown.isprintable()
        elif 0xDC80 <= code < 0xDD00:
            assert shown == f"\\x{code - 0xDC00:02x}"
        elif shown != char:
            assert code in (0x61C, 0x200E, 0x200F, 0x2028, 0x2029)


@pytest.mark.requirement("6.7")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;title\x07", "^[]0;title^G"),
        ("\x9b31m", "\\x9b31m"),
        ("a\rb", "a^Mb"),
        ("\u202egnp.exe", "\\u202egnp.exe"),
        ("é 🐚", "é 🐚"),
    ],
)
def test_what_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_stay_where_lines_are_shown() -> None:
    assert visible("a\tb\nc\x1b", lines=True) == "a\tb\nc^["
    assert visible("a\tb\nc") == "a^Ib^Jc"


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize(
    ("run", "code"),
    [
        ({"exit_code": 0, "ended_by": "self"}, 0),
        ({"exit_code": 255, "ended_by": "self"}, 255),
        ({"exit_code": None, "signal": "SIGTERM", "ended_by": "kill"}, 143),
        ({"exit_code": None, "signal": "SIGKILL", "ended_by": "oom"}, 137),
        ({"exit_code": None, "signal": "SIGRTMIN+3", "ended_by": "self"}, 165),
        ({"exit_code": None, "signal": "SIGKILL", "ended_by": "timeout"}, 124),
        ({"exit_code": None, "signal": None, "ended_by": "lost"}, 125),
        ({"exit_code": None, "signal": None, "ended_by": None, "error_message": "no such cwd"}, 125),
    ],
)
def test_exit_codes(run: dict[str, Any], code: int) -> None:
    assert exit_code_of(run) == code


@pytest.mark.parametrize(
    ("text", "name"),
    [("TERM", "SIGTERM"), ("sigterm", "SIGTERM"), ("15", "SIGTERM"), ("9", "SIGKILL"), ("4711", "4711")],
)
def test_names_of_signals(text: str, name: str) -> None:
    assert signal_name(text) == name
