"""What `shell` takes and answers."""

from typing import Annotated, Any, Final, Literal

import msgspec

from limpet.config import MOST_LIMIT, MOST_PIDS
from limpet.model.items import Kind
from limpet.model.watch import MatchType, Scope

DEFAULT_ROWS, DEFAULT_COLS = 24, 80
DEFAULT_LIMIT: Final = 200
MOST_ITEMS: Final = 1000
MOST_WATCHERS: Final = 64

Action = Literal["spawn", "poll", "log", "kill", "send_keys"]
Side = Annotated[int, msgspec.Meta(ge=1, le=65535)]
Seconds = Annotated[float, msgspec.Meta(gt=0, le=31_536_000)]
Seq = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Unset = msgspec.UnsetType


class Context(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where in the caller's own work the run belongs; it travels with the run and changes nothing."""

    runId: str | None = None  # noqa: N815  (the field's public name)
    toolCallId: str | None = None  # noqa: N815
    sessionKey: str | None = None  # noqa: N815


class WatchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pattern that output is looked through for, and the name of the event that each match becomes."""

    regex: str
    event: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    once: bool = False
    scope: Scope = "any"
    match_type: MatchType = "regex"


class LimitsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the run may use at most; where the machine cannot hold it to that, it is refused."""

    memory_bytes: Annotated[int, msgspec.Meta(ge=1, le=MOST_LIMIT)] | None = None
    pids: Annotated[int, msgspec.Meta(ge=1, le=MOST_PIDS)] | None = None
    cpu_secs: Annotated[int, msgspec.Meta(ge=1, le=MOST_LIMIT)] | None = None


class ShellRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Without `action` the command is waited for; `spawn` leaves it in the background, the others are about a run."""

    command: str = ""
    action: Action | None = None
    background: bool = True
    pty: bool = False
    rows: Side = DEFAULT_ROWS
    cols: Side = DEFAULT_COLS
    timeout_secs: Seconds | None = None
    queue_timeout_secs: Seconds | None = None
    max_output_bytes: Annotated[int, msgspec.Meta(ge=0, le=1 << 40)] | None = None
    session_id: str | None = None
    on_lost: Literal["requeue", "fail"] | None = None
    stdin: str | None = None
    view: Literal["raw", "plain"] = "raw"
    cwd: str | None = None
    env: dict[str, str] = {}
    labels: list[str] = []
    watch: Annotated[list[WatchRequest], msgspec.Meta(max_length=MOST_WATCHERS)] = []
    limits: LimitsRequest = LimitsRequest()
    context: Context = Context()
    key: str | None = None
    run_id: str | None = None
    since_seq: Seq = 0
    limit: Annotated[int, msgspec.Meta(ge=1)] = DEFAULT_LIMIT
    stream: Literal["stdout", "stderr", "pty"] | None = None
    keys: list[str] = []
    text: str | None = None
    secret: bool = False


class ItemInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that happened: output, a change of status, or an event."""

    seq: int
    ts: int
    kind: Kind
    stream: str | Unset = msgspec.UNSET
    text: str | Unset = msgspec.UNSET
    event: str | Unset = msgspec.UNSET
    data: dict[str, Any] | Unset = msgspec.UNSET


class Omitted(msgspec.Struct, frozen=True):
    """Bytes of a stream that a text leaves out in its middle, for a caller without room for them."""

    start: int
    end: int


class ShellResponse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run that was spawned or looked at, a page of its items, or the result of one that was waited for."""

    run_id: str | Unset = msgspec.UNSET
    session_id: str | Unset = msgspec.UNSET
    command: str | Unset = msgspec.UNSET
    status: str | Unset = msgspec.UNSET
    waiting_for: str | Unset | None = msgspec.UNSET
    stopping: bool | Unset = msgspec.UNSET
    exit_code: int | Unset | None = msgspec.UNSET
    signal: str | Unset | None = msgspec.UNSET
    ended_by: str | Unset | None = msgspec.UNSET
    attempt: int | Unset = msgspec.UNSET
    created_at: int | Unset | None = msgspec.UNSET
    started_at: int | Unset | None = msgspec.UNSET
    finished_at: int | Unset | None = msgspec.UNSET
    stdout: str | Unset = msgspec.UNSET
    stderr: str | Unset = msgspec.UNSET
    truncated: bool | Unset = msgspec.UNSET
    timed_out: bool | Unset = msgspec.UNSET
    duration_ms: int | Unset = msgspec.UNSET
    error_message: str | Unset | None = msgspec.UNSET
    snippet: str | Unset = msgspec.UNSET
    items: list[ItemInfo] | Unset = msgspec.UNSET
    next_seq: int | Unset = msgspec.UNSET
    has_more: bool | Unset = msgspec.UNSET
    written: int | Unset = msgspec.UNSET
    omitted: dict[str, Omitted] | Unset = msgspec.UNSET
