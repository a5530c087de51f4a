"""What the operations `blocks.*` take and answer."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Literal, Required, TypedDict


class Span(TypedDict):
    """"""

    start: int
    end: int


class BlockInfo(TypedDict):
    """`span` are the block's own bytes of the spool; `ended_by`: `prompt`, `shell_gone`, `reset`, `closed`."""

    block_id: str
    seq: int
    cmd: str
    cwd: str
    interactive: bool
    ts_begin: int
    ts_end: int | None
    status: Literal["cancelled", "completed", "failed", "interactive", "running"]
    exit_code: int | None
    signal: str | None
    ended_by: Literal["closed", "prompt", "reset", "shell_gone"] | None
    span: Span | None
    output_bytes: int


class BlockHit(TypedDict):
    """`span` counts in the block's own output; `lines` are those around the match."""

    block_id: str
    span: Span
    lines: str
    truncated: bool


class BlocksSinceParams(TypedDict, total=False):
    """"""

    conversation_id: Required[str]
    after_block_id: str | None
    limit: int


class BlocksSinceAnswer(TypedDict):
    """"""

    blocks: list[BlockInfo]
    has_more: bool
    ok: Literal[True]


class BlocksGetParams(TypedDict, total=False):
    """"""

    conversation_id: Required[str]
    block_id: Required[str]


class BlocksGetAnswer(TypedDict):
    """"""

    block: BlockInfo
    ok: Literal[True]


class BlocksReadParams(TypedDict, total=False):
    """`offset` counts in the block's own output."""

    conversation_id: Required[str]
    block_id: Required[str]
    offset: int
    max_bytes: int
    encoding: Literal["base64", "utf-8"]
    view: Literal["plain", "raw"]


class BlocksReadAnswer(TypedDict):
    """"""

    data: str
    encoding: str
    offset_bytes: int
    next_offset: int
    total_bytes: int
    eof: bool
    ok: Literal[True]


class BlocksSearchParams(TypedDict, total=False):
    """`regex`: whether `query` is a pattern; `after`: where an earlier search stopped."""

    conversation_id: Required[str]
    query: Required[str]
    regex: bool
    limit: int
    after: int


class BlocksSearchAnswer(TypedDict):
    """`next_after` is where to go on; null where nothing is left."""

    hits: list[BlockHit]
    next_after: int | None
    has_more: bool
    ok: Literal[True]
