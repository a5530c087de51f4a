"""The reference page of the MCP tools, from the rows and from what models are told of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from limpet.dialects import ROWS
from limpet.surfaces.mcp.calling import LONGEST_S, ROOM_BYTES
from limpet.surfaces.mcp.chosen import DEFAULT, SETS
from limpet.surfaces.mcp.tools import Tool, Tools

_HEAD: Final = f"""# MCP tools

<!-- Written by `python -m docs.generate`: change the code, then run it again. -->

`limpet mcp` and `/mcp` offer [operations](operations.md) as tools: each takes and answers the same JSON, under its
name with underscores for dots; a call by the dotted name works too. How to set it up: [use from an
agent](../how-to/use-from-an-agent.md).

- A failure is a result with `isError`, and the whole failure object as its structured content. A wait whose time is
  over (`"error": "timeout"`) is none.
- One call takes {LONGEST_S:g} s at most. A wait that asked for more answers as one whose time is over; a `shell`
  that is waited for answers how it stands (`"status": "running"`), what it said so far, and `next_seq`; what runs
  goes on. A client that declares the extension `io.modelcontextprotocol/tasks` gets a task after five seconds
  instead, whose id is the run's.
- Progress comes every 4 s where the call has a progress token. A cancelled wait leaves the run alone; a cancelled
  `shell` that is waited for is killed. Where the client goes away without cancelling, runs go on.
- Of each stream of a command that was waited for, {ROOM_BYTES:,} bytes are answered: its beginning and its end.
  `omitted` says what is left out, `runs_read` has it. Pages are smaller than elsewhere where a call does not say
  their size.
- Output is also there as resources: `limpet://runs/RUN/STREAM`, with `?offset=`, `max_bytes=` and
  `encoding=base64`.
- `context` of what is started may stand in the call's `_meta`, as `limpet/context`.

## Sets

`--tools` takes one or several of these, with commas. What is not chosen can't be called. Default: `{DEFAULT}`.
"""


def tools_page() -> str:
    """docs/reference/mcp.md."""
    lines = [_HEAD, "| set | tools |", "|---|---|"]
    for name in SETS:
        every = Tools(ROWS, name).every
        listed = "all there are" if name == "all" else ", ".join(f"[`{tool.name}`](#{tool.name})" for tool in every)
        lines.append(f"| `{name}` | {listed or 'none yet'} |")
    lines += ["", "## Tools", ""]
    for tool in Tools(ROWS, "all").every:
        lines += _tool(tool)
    return "\n".join(lines)


def _tool(tool: Tool) -> Iterator[str]:
    yield f"### `{tool.name}`\n"
    yield str(tool.listed["description"]) + "\n"
    row = tool.row.name
    hints = [
        word
        for word, holds in (
            ("changes nothing", tool.row.reads_only),
            ("safe to ask again", tool.row.repeatable),
            ("ends or loses nothing", tool.words.is_additive),
            ("reaches programs", tool.words.is_open),
        )
        if holds
    ]
    sizes = [f"`{name}` is {value:,}" for name, value in tool.words.defaults.items()]
    sizes += [f"`{name}` at most {value:,}" for name, value in tool.words.most.items()]
    yield f"Operation [`{row}`](operations.md#{row.replace('.', '')}){''.join(f'; {each}' for each in hints)}."
    if sizes:
        yield f"Here {', '.join(sizes)}."
    yield ""
