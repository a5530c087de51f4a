"""What `shell` takes and answers."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Any, Literal, NotRequired, Required, TypedDict


class WatchRequest(TypedDict, total=False):
    """A pattern that output is looked through for, and the name of the event that each match becomes."""

    regex: Required[str]
    event: Required[str]
    once: bool
    scope: Literal["any", "stderr", "stdout"]
    match_type: Literal["line", "regex"]


class LimitsRequest(TypedDict, total=False):
    """What the run may use at most; where the machine cannot hold it to that, it is refused."""

    memory_bytes: int | None
    pids: int | None
    cpu_secs: int | None


class Context(TypedDict, total=False):
    """Where in the caller's own work the run belongs; it travels with the run and changes nothing."""

    runId: str | None
    toolCallId: str | None
    sessionKey: str | None


class ItemInfo(TypedDict):
    """One thing that happened: output, a change of status, or an event."""

    seq: int
    ts: int
    kind: Literal["event", "output", "status"]
    stream: str
    text: str
    event: str
    data: dict[str, Any]


class Omitted(TypedDict):
    """Bytes of a stream that a text leaves out in its middle, for a caller without room for them."""

    start: int
    end: int


class ShellParams(TypedDict, total=False):
    """Without `action` the command is waited for; `spawn` leaves it in the background, the others are about a run."""

    command: str
    background: bool
    pty: bool
    rows: int
    cols: int
    timeout_secs: float | None
    queue_timeout_secs: float | None
    max_output_bytes: int | None
    session_id: str | None
    on_lost: Literal["fail", "requeue"] | None
    stdin: str | None
    view: Literal["plain", "raw"]
    cwd: str | None
    env: dict[str, str]
    labels: list[str]
    watch: list[WatchRequest]
    limits: LimitsRequest
    context: Context
    key: str | None
    run_id: str | None
    since_seq: int
    limit: int
    stream: Literal["pty", "stderr", "stdout"] | None
    keys: list[str]
    text: str | None
    secret: bool


class ShellResult(TypedDict):
    """The answer without `action`."""

    ok: Literal[True]
    run_id: str
    status: str
    exit_code: int | None
    signal: str | None
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    duration_ms: int
    error_message: str | None


class ShellSpawned(TypedDict):
    """The answer with `action` spawn."""

    ok: Literal[True]
    run_id: str
    session_id: str
    status: str
    next_seq: int
    command: NotRequired[str]
    exit_code: NotRequired[int | None]
    signal: NotRequired[str | None]
    ended_by: NotRequired[str | None]
    attempt: NotRequired[int]
    truncated: NotRequired[bool]
    error_message: NotRequired[str | None]
    created_at: NotRequired[int | None]
    started_at: NotRequired[int | None]
    finished_at: NotRequired[int | None]
    snippet: NotRequired[str]
    items: NotRequired[list[ItemInfo]]
    has_more: NotRequired[bool]
    waiting_for: NotRequired[str | None]


class ShellPolled(TypedDict):
    """The answer with `action` poll."""

    ok: Literal[True]
    run_id: str
    session_id: str
    command: str
    status: str
    exit_code: int | None
    signal: str | None
    ended_by: str | None
    attempt: int
    truncated: bool
    error_message: str | None
    created_at: int | None
    started_at: int | None
    finished_at: int | None
    snippet: str
    items: list[ItemInfo]
    next_seq: int
    has_more: bool
    waiting_for: NotRequired[str | None]


class ShellLog(TypedDict):
    """The answer with `action` log."""

    ok: Literal[True]
    items: list[ItemInfo]
    next_seq: int
    has_more: bool


class ShellKilled(TypedDict):
    """The answer with `action` kill."""

    ok: Literal[True]
    run_id: str
    status: str
    stopping: bool


class ShellTyped(TypedDict):
    """The answer with `action` send_keys."""

    ok: Literal[True]
    run_id: str
    status: str
    written: int
