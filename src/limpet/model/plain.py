"""Output as plain text: what a terminal would be told is taken out, and progress lines are left at their last state."""

import re
from typing import Final

# Whole sequences: CSI, OSC and the other strings up to their terminator, then what has two or three characters.
_SEQUENCE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"
    r"|\x1b[\]PX^_][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]+[0-~]"
    r"|\x1b[0-Z\\^-~]"
    r"|[\x80-\x9f]"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
# A sequence that has only begun, at the very end.
_BEGUN: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)?\Z")
# What looks like the start of a longer one is text by then.
_BEGUN_MAX_BYTES: Final = 4096


def to_plain(text: str) -> str:
    """The text without escape sequences and control characters; each line as its last carriage return left it."""
    text = _SEQUENCE.sub("", text)
    lines = (_last_state(line) for line in text.split("\n"))
    return _CONTROL.sub("", "\n".join(lines))


def _last_state(line: str) -> str:
    states = [state for state in line.split("\r") if state]
    return states[-1] if states else ""


def begun_sequence_bytes(data: bytes) -> int:
    """How many bytes at the end are an escape sequence that has only begun."""
    found = _BEGUN.search(data, max(0, len(data) - _BEGUN_MAX_BYTES))
    return len(data) - found.start() if found else 0
