"""What `shell` takes and answers."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Any, Literal, Required, TypedDict


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
    action: Literal["kill", "log", "poll", "send_keys", "spawn"] | None
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


class ShellAnswer(TypedDict):
    """A run that was spawned or looked at, a page of its items, or the result of one that was waited for."""

    run_id: str
    session_id: str
    command: str
    status: str
    waiting_for: str | None
    stopping: bool
    exit_code: int | None
    signal: str | None
    ended_by: str | None
    attempt: int
    created_at: int | None
    started_at: int | None
    finished_at: int | None
    stdout: str
    stderr: str
    truncated: bool
    timed_out: bool
    duration_ms: int
    error_message: str | None
    snippet: str
    items: list[ItemInfo]
    next_seq: int
    has_more: bool
    written: int
    omitted: dict[str, Omitted]
    ok: Literal[True]
