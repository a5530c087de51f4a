"""Which tools a client gets: sets of rows, by the words of `--tools`."""

import difflib
from collections.abc import Iterable
from typing import Any, Final

from limpet.model.errors import Refusal
from limpet.model.operation import Operation
from limpet.surfaces.mcp.words import AGENT

Rows = Iterable[Operation[Any, Any]]

FAMILIES: Final = {
    "shell": ("shell",),
    "pty": ("pty.", "blocks."),
    "sessions": (
        "startSession",
        "endSession",
        "updateSession",
        "listSessions",
        "exec",
        "listJobs",
        "getJobOutput",
        "killJob",
        "waitJob",
    ),
    "tasks": ("tool.",),
    "runs": ("runs.", "exec_events."),
    "backlog": ("backlog.",),
}
"""Of each set: the names of its rows, or how they begin."""
SETS: Final = ("agent", *FAMILIES, "all")
DEFAULT: Final = "agent"


def choose(rows: Rows, tools: str) -> tuple[Operation[Any, Any], ...]:
    """The rows of the sets that are named, with commas between; in the order of the rows, each once."""
    names = [name.strip() for name in tools.split(",")]
    for name in names:
        if name not in SETS:
            near = difflib.get_close_matches(name, SETS, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(SETS)}"
            raise Refusal("invalid_argument", f"there is no set of tools {name[:80]!r}: {hint}", field="tools")
    return tuple(row for row in rows if any(_is_in(row.name, name) for name in names))


def _is_in(row: str, name: str) -> bool:
    if name in ("agent", "all"):
        return name == "all" or row in AGENT
    return any(row.startswith(word) if word.endswith(".") else row == word for word in FAMILIES[name])
