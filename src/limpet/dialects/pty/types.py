"""What `pty.*` and `blocks.*` take and answer. The one cursor is `resume_cursor`."""

from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import UNSET

from limpet.engine.conversations.looking import MatchType
from limpet.engine.screens.input_wanted import Input
from limpet.engine.screens.screens import REPLAY_BYTES
from limpet.model.blocks import BlockStatus, EndedBy, Mode
from limpet.model.operation import Timeout
from limpet.model.screen import Format, Shown

Unset = msgspec.UnsetType
Cursor = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
WaitMs = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]
Side = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Shell = Literal["bash", "zsh", "fish", "sh"]
DEFAULT_WAIT_MS: Final = 30_000
MOST_READ_BYTES: Final = 1 << 20


class Of(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A conversation."""

    conversation_id: str


class OpenRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How it is to begin; `rc` is a file that the shell reads first, the shell is bash if none is named."""

    shell: Shell | None = None
    cwd: str | None = None
    env: dict[str, str] = {}
    rows: Side = 24
    cols: Side = 80
    rc: str | None = None
    labels: list[str] = []


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    conversation_id: str
    run_id: str
    mode: Mode
    resume_cursor: int


class ExecRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command for the shell; `timeout_ms` is how long to wait for others that write."""

    cmd: str
    cwd: str | None = None
    key: str | None = None
    timeout_ms: WaitMs = DEFAULT_WAIT_MS


class ExecBlockResponse(msgspec.Struct, frozen=True, kw_only=True):
    block_id: str
    seq: int
    ts: int


class ExecInteractiveResponse(msgspec.Struct, frozen=True, kw_only=True):
    session_id: str
    block_id: str
    ts_begin: int
    resume_cursor: int


class SendRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is typed. `now` does not wait for others that write."""

    data: str
    now: bool = False
    secret: bool = False
    key: str | None = None
    timeout_ms: WaitMs = DEFAULT_WAIT_MS


class Done(msgspec.Struct, frozen=True, kw_only=True):
    """It was done."""


class Unsent(Timeout, frozen=True, kw_only=True):
    """What runs did not read all of it in time."""

    message: str = "what runs did not read all of it in time; so much was typed, and nothing more of it will be"
    written: int


class WaitForRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For `quiet`, `match` is a number of milliseconds; `prompt` and `exit` need none."""

    match: str = ""
    match_type: MatchType = "substring"
    from_cursor: Cursor = 0
    timeout_ms: WaitMs = DEFAULT_WAIT_MS


class Span(msgspec.Struct, frozen=True):
    start: int
    end: int


class Matched(msgspec.Struct, frozen=True, kw_only=True):
    matched: bool = True
    match_text: str
    match_cursor: int
    match_span: Span
    resume_cursor: int
    extra: dict[str, Any] | Unset = UNSET


class Unmatched(Timeout, frozen=True, kw_only=True):
    """Nothing held in time; `reason` is `closed` where nothing can any more."""

    matched: bool = False
    resume_cursor: int
    reason: str | Unset = UNSET


class WaitPromptRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    from_cursor: Cursor = 0
    timeout_ms: WaitMs = DEFAULT_WAIT_MS


class PromptSeen(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt, and the block that it ended."""

    matched: bool = True
    match_text: str
    match_cursor: int
    match_span: Span
    resume_cursor: int
    mode: Mode
    exit_code: int | None
    block_id: str | None
    status: BlockStatus | None


class ExpectSendRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Waits as `pty.wait_for`, then sends, with nobody's writing in between."""

    expect: str
    match_type: MatchType = "substring"
    send: str
    secret: bool = False
    key: str | None = None
    from_cursor: Cursor = 0
    timeout_ms: WaitMs = DEFAULT_WAIT_MS


class ReadSpoolRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    from_cursor: Cursor = 0
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=8 << 20)] = 65536
    encoding: Literal["utf-8", "base64"] = "utf-8"
    view: Literal["raw", "plain"] = "raw"


class SpoolRead(msgspec.Struct, frozen=True, kw_only=True):
    """`cursor` is where the data begins, `resume_cursor` where it ends."""

    data: str
    cursor: int
    resume_cursor: int


class StatusResponse(msgspec.Struct, frozen=True, kw_only=True):
    mode: Mode
    active_session_id: str | Unset = UNSET
    active_block_id: str | Unset = UNSET
    shell_id: str | Unset = UNSET
    resume_cursor: int
    conversation_id: str
    run_id: str
    closed: bool
    cwd: str
    resets: int
    blocks: int
    input: Input


class SnapshotRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`replay_bytes`: how far before the end the replay may begin; a screen that was drawn before that is not seen."""

    format: Format = "text"
    replay_bytes: Annotated[int, msgspec.Meta(ge=1 << 16, le=1 << 40)] = REPLAY_BYTES


class Snapshot(Shown, frozen=True, kw_only=True):
    resume_cursor: int


class ResizeRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    rows: Side
    cols: Side


class SignalRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Goes to what runs in the terminal's foreground."""

    signal: str


class SignalResponse(msgspec.Struct, frozen=True, kw_only=True):
    sent: int


class RunRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command, waited for; `output` is cut at `max_bytes`, from its end."""

    cmd: str
    cwd: str | None = None
    key: str | None = None
    timeout_ms: WaitMs = DEFAULT_WAIT_MS
    max_bytes: Annotated[int, msgspec.Meta(ge=0, le=MOST_READ_BYTES)] = 65536
    view: Literal["raw", "plain"] = "raw"


class RunResponse(msgspec.Struct, frozen=True, kw_only=True):
    block_id: str
    exit_code: int | None
    status: BlockStatus
    output: str
    truncated: bool
    resume_cursor: int


class RunTimeout(Timeout, frozen=True, kw_only=True):
    """The block goes on."""

    message: str = "the block goes on: wait for its prompt from this cursor, or interrupt it"
    block_id: str
    exit_code: int | None = None
    status: BlockStatus
    output: str
    truncated: bool
    resume_cursor: int


class EndSessionRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`force`: reset the shell where nothing else helps."""

    force: bool = False


class EndSessionResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`by`: what brought the prompt back (`SIGINT`, `SIGTERM`, `reset`), or `none`."""

    ended: bool
    by: str
    mode: Mode
    resume_cursor: int


class ModeResponse(msgspec.Struct, frozen=True, kw_only=True):
    mode: Mode
    resume_cursor: int


class CloseResponse(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    closed: bool
    resume_cursor: int


class SinceRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after_block_id: str | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100


class BlockInfo(msgspec.Struct, frozen=True, kw_only=True):
    """`span` are the block's own bytes of the spool; `ended_by`: `prompt`, `shell_gone`, `reset`, `closed`."""

    block_id: str
    seq: int
    cmd: str
    cwd: str
    interactive: bool
    ts_begin: int
    ts_end: int | None
    status: BlockStatus
    exit_code: int | None
    signal: str | None
    ended_by: EndedBy | None
    span: Span | None
    output_bytes: int


class SinceResponse(msgspec.Struct, frozen=True, kw_only=True):
    blocks: list[BlockInfo]
    has_more: bool


class GetRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    block_id: str


class GetResponse(msgspec.Struct, frozen=True, kw_only=True):
    block: BlockInfo


class SearchRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`regex`: whether `query` is a pattern; `after`: where an earlier search stopped."""

    query: str
    regex: bool = False
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    after: Cursor = 0


class BlockHit(msgspec.Struct, frozen=True, kw_only=True):
    """`span` counts in the block's own output; `lines` are those around the match."""

    block_id: str
    span: Span
    lines: str
    truncated: bool


class SearchResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`next_after` is where to go on; null where nothing is left."""

    hits: list[BlockHit]
    next_after: int | None
    has_more: bool


class ReadRequest(Of, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`offset` counts in the block's own output."""

    block_id: str
    offset: Cursor = 0
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=8 << 20)] = 65536
    encoding: Literal["utf-8", "base64"] = "utf-8"
    view: Literal["raw", "plain"] = "raw"


class ReadResponse(msgspec.Struct, frozen=True, kw_only=True):
    data: str
    encoding: str
    offset_bytes: int
    next_offset: int
    total_bytes: int
    eof: bool
