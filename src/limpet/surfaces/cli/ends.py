"""The exit code that stands for how a run ended."""

import signal
from collections.abc import Mapping
from typing import Any, Final

TIMED_OUT: Final = 124
FAILED: Final = 125
"""limpet itself failed, or nobody knows how the command ended."""


def exit_code_of(run: Mapping[str, Any]) -> int:
    """Its own, 128 + N for a signal, 124 when its time was over."""
    if run.get("ended_by") == "timeout":
        return TIMED_OUT
    if run.get("exit_code") is not None:
        return int(run["exit_code"])
    if run.get("signal"):
        return 128 + signal_number(str(run["signal"]))
    return FAILED


def signal_number(name: str) -> int:
    """15 for SIGTERM; real-time ones are SIGRTMIN+3."""
    base, _, more = name.partition("+")
    try:
        return signal.Signals[base].value + int(more or 0)
    except (KeyError, ValueError):
        return 0


def signal_name(text: str) -> str:
    """SIGTERM for TERM, sigterm and 15; what is no signal stays as it is, for the daemon to refuse."""
    if text.isdigit():
        try:
            return signal.Signals(int(text)).name
        except ValueError:
            return text
    upper = text.upper()
    return upper if upper.startswith("SIG") else f"SIG{upper}"
