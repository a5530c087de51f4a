"""What two answers have in common when ids, times and pids are left aside: one text for what differs by nature."""

import re
from typing import Any

from .home import Answer

# Where ids stand that limpet makes; each becomes its field's name and the order in which it was first seen.
IDS = frozenset(
    {
        "run_id",
        "execId",
        "session_id",
        "sessionId",
        "active_session_id",
        "block_id",
        "active_block_id",
        "shell_id",
        "lease",
        "id",
    }
)
NUMBERS = frozenset(
    # What is on disk by now (`durable_offset`) hangs on the moment, as the times do.
    {
        "pid",
        "ts",
        "ts_begin",
        "ts_end",
        "duration_ms",
        "durationMs",
        "uptime_ms",
        "bytes_on_disk",
        "searched_bytes",
        "durable_offset",
    }
)
# What a caller brings along without saying so: each way in has its own (0.10).
# What a terminal's programs wait for hangs on the moment.
AMBIENT = frozenset({"env", "input"})
# MCP gives what it starts a key, so that it can be asked for again.
OWN_KEYS = re.compile(r"mcp-[0-9a-f]{24}")
STAMPS = re.compile(r"\bts=\d{13}\b")


class Likeness:
    """Turns answers of one surface, in the order in which they came, into what those of another must equal."""

    def __init__(self, *given: str) -> None:
        """Texts that the caller chose and that differ between surfaces, such as the path of the home."""
        self._names = {text: f"<given {number}>" for number, text in enumerate(given)}

    def of(self, answer: Answer) -> Any:
        self._learn(answer)
        return self._plain(answer, "")

    def _learn(self, value: Any) -> None:
        if isinstance(value, dict):
            for name, inner in value.items():  # pyright: ignore[reportUnknownVariableType]
                if name in IDS and isinstance(inner, str) and inner not in self._names:
                    self._names[inner] = f"<id {len(self._names)}>"
                self._learn(inner)
        elif isinstance(value, list):
            for inner in value:  # pyright: ignore[reportUnknownVariableType]
                self._learn(inner)

    def _plain(self, value: Any, name: str) -> Any:
        if name in NUMBERS or name.endswith("_at"):
            return value if value is None else "<number>"
        if name in AMBIENT:
            return "<ambient>"
        if name == "key" and isinstance(value, str) and OWN_KEYS.fullmatch(value):
            return None
        if isinstance(value, dict):
            return {self._text(str(key)): self._plain(inner, str(key)) for key, inner in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        if isinstance(value, list):
            return [self._plain(inner, "") for inner in value]  # pyright: ignore[reportUnknownVariableType]
        return self._text(value) if isinstance(value, str) else value

    def _text(self, text: str) -> str:
        for known in sorted(self._names, key=len, reverse=True):
            text = text.replace(known, self._names[known])
        return STAMPS.sub("ts=<number>", text)
