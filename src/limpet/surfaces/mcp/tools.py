"""A row as a tool: its name, words, schemas and hints, in the shape that MCP lists."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from limpet.model.operation import Operation
from limpet.surfaces.mcp.chosen import Rows, choose
from limpet.surfaces.mcp.schemas import input_schema, output_schema
from limpet.surfaces.mcp.words import WORDS, Words

_NO_WORDS: Final = Words()
# What a client takes for granted where nothing is said.
_ASSUMED: Final = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False, "openWorldHint": True}
_WAITS: Final = ("timeout_ms", "wait_ms")


@dataclass(frozen=True)
class Tool:
    """One row as a client sees it."""

    row: Operation[Any, Any]

    @property
    def name(self) -> str:
        """Without dots, which the APIs of models refuse."""
        return self.row.name.replace(".", "_")

    @property
    def words(self) -> Words:
        """What is told of it."""
        return WORDS.get(self.row.name, _NO_WORDS)

    @cached_property
    def listed(self) -> dict[str, Any]:
        """As `tools/list` has it."""
        row, words = self.row, self.words
        hints = {
            "readOnlyHint": row.reads_only,
            "destructiveHint": not (row.reads_only or words.is_additive),
            "idempotentHint": row.repeatable,
            "openWorldHint": words.is_open,
        }
        return {
            "name": self.name,
            "description": words.text or row.summary,
            "inputSchema": input_schema(row, words.notes, words.defaults, words.most),
            "outputSchema": output_schema(row),
            "annotations": {hint: holds for hint, holds in hints.items() if holds != _ASSUMED[hint]},
        }

    @cached_property
    def wait(self) -> tuple[str, int] | None:
        """The field that says how many milliseconds a call waits at most, and what that is if it is left out."""
        for field in msgspec.structs.fields(self.row.request):
            if field.encode_name in _WAITS:
                return field.encode_name, int(field.default)
        return None

    @cached_property
    def takes_key(self) -> bool:
        """Whether calls can have a `key`."""
        return "key" in self.row.request.__struct_encode_fields__

    def filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The request of a call: with this surface's defaults, and no page larger than it has room for."""
        request = {**self._defaults(arguments), **arguments}
        for name, most in self.words.most.items():
            asked = request.get(name)
            if isinstance(asked, int) and not isinstance(asked, bool) and asked > most:
                request[name] = most
        return request

    def _defaults(self, arguments: dict[str, Any]) -> dict[str, Any]:
        if "action" in self.row.request.__struct_encode_fields__ and arguments.get("action") not in ("poll", "log"):
            return {}  # a page's size goes with the looking actions alone
        return dict(self.words.defaults)


class Tools:
    """Those that were chosen. Both names lead to a tool."""

    def __init__(self, rows: Rows, tools: str) -> None:
        self.every: Final = tuple(Tool(row) for row in choose(rows, tools))
        self._by_name: Final = {name: tool for tool in self.every for name in (tool.name, tool.row.name)}

    def find(self, name: str) -> Tool | None:
        """The tool of that name, dotted or not, if it was chosen."""
        return self._by_name.get(name)
