"""What the operations `runs.*` take and answer."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Literal, Required, TypedDict


class StreamInfo(TypedDict):
    """How much one stream has said: `base` is the first byte behind which nothing was given up."""

    bytes: int
    base: int
    open: bool


class RunInfo(TypedDict):
    """A run as everybody sees it."""

    run_id: str
    session_id: str
    dialect: str
    command: str
    status: Literal["completed", "failed", "killed", "queued", "running", "timed_out"]
    phase: str
    attempt: int
    pid: int | None
    exit_code: int | None
    signal: str | None
    ended_by: str | None
    error_message: str | None
    output_open: bool
    stopping: bool
    unresponsive: bool
    waiting_for: str | None
    stalled: str | None
    survivors: list[int]
    cannot_signal: list[int]
    truncated: bool
    cwd: str
    pty: bool
    labels: list[str]
    context: dict[str, str]
    created_at: int | None
    started_at: int | None
    finished_at: int | None
    streams: dict[str, StreamInfo]
    damaged: dict[str, str]
    durable_offset: dict[str, int]


class Cursor(TypedDict):
    """Where the cursor stands, counted from 0: `row` in `rows`, `col` in cells."""

    row: int
    col: int
    visible: bool


class Size(TypedDict):
    """"""

    rows: int
    cols: int


class Condition(TypedDict, total=False):
    """One of `exit`, `regex`, `quiet_ms`, `port`, `seq` (an item behind it), `offset` (a byte behind it)."""

    exit: bool
    regex: str
    quiet_ms: int
    port: int
    seq: int
    offset: int
    match_type: Literal["line", "regex", "substring"]
    stream: Literal["pty", "stderr", "stdout"]


class Span(TypedDict):
    """Bytes of a stream."""

    start: int
    end: int


class HitInfo(TypedDict):
    """What matched, and the line it stands on. Texts are cut at 4096 bytes, `truncated` says so; the span is true."""

    stream: str
    match: str
    span: Span
    line: str
    groups: dict[str, str | None]
    truncated: bool


class Found(TypedDict):
    """One match, and the line that it stands on; `truncated` where that is longer than is shown."""

    run_id: str
    stream: str
    span: Span
    line: str
    truncated: bool


class Skipped(TypedDict):
    """Bytes that could not be looked at: `gone` (given up to hold a bound) or `tampered` (changed from outside)."""

    run_id: str
    stream: str
    span: Span
    reason: str


class FindingInfo(TypedDict):
    """Something that is not as it was written: in which file, at which byte, in which record."""

    run_id: str
    file: str
    offset: int | None
    record: int | None
    problem: str
    message: str


class RunsListParams(TypedDict, total=False):
    """Which runs: each filter narrows. `cursor` is the answer's `next_cursor`."""

    session_id: str | None
    status: Literal["completed", "failed", "killed", "queued", "running", "timed_out"] | None
    dialect: str | None
    label: str | None
    text: str | None
    limit: int
    cursor: str | None


class RunsListAnswer(TypedDict):
    """The newest first; `next_cursor` is null on the last page."""

    runs: list[RunInfo]
    next_cursor: str | None
    has_more: bool
    ok: Literal[True]


class RunsGetParams(TypedDict, total=False):
    """Which run."""

    run_id: Required[str]


class RunsGetAnswer(TypedDict):
    """A run with what it was started with; values of secret variables are redacted."""

    run_id: str
    session_id: str
    dialect: str
    command: str
    status: Literal["completed", "failed", "killed", "queued", "running", "timed_out"]
    phase: str
    attempt: int
    pid: int | None
    exit_code: int | None
    signal: str | None
    ended_by: str | None
    error_message: str | None
    output_open: bool
    stopping: bool
    unresponsive: bool
    waiting_for: str | None
    stalled: str | None
    survivors: list[int]
    cannot_signal: list[int]
    truncated: bool
    cwd: str
    pty: bool
    labels: list[str]
    context: dict[str, str]
    created_at: int | None
    started_at: int | None
    finished_at: int | None
    streams: dict[str, StreamInfo]
    damaged: dict[str, str]
    durable_offset: dict[str, int]
    argv: list[str]
    env: dict[str, str]
    key: str | None
    timeout_ms: int | None
    limits: dict[str, int]
    ok: Literal[True]


class RunsReadParams(TypedDict, total=False):
    """A range of a stream, by offset or from its end. `wait_ms` waits until a byte is there or none will come.

    `view: "terminal"` has the CRs that folding took from a terminal's bytes; with `encoding: "base64"` only.
    """

    run_id: Required[str]
    stream: Literal["pty", "stderr", "stdout"] | None
    offset: int | None
    last_bytes: int | None
    last_lines: int | None
    max_bytes: int
    encoding: Literal["base64", "utf-8"]
    view: Literal["plain", "raw", "terminal"]
    wait_ms: int


class RunsReadAnswer(TypedDict):
    """The bytes, where they stand, and where to go on."""

    run_id: str
    stream: str
    data: str
    encoding: str
    offset_bytes: int
    next_offset: int
    total_bytes: int
    eof: bool
    base: int
    ok: Literal[True]


class RunsKillParams(TypedDict, total=False):
    """Which run to end, and with which signal first."""

    run_id: Required[str]
    signal: str


class RunsKillAnswer(TypedDict):
    """The run as it stands: `stopping` as long as it is being ended."""

    run_id: str
    status: Literal["completed", "failed", "killed", "queued", "running", "timed_out"]
    stopping: bool
    ok: Literal[True]


class RunsSignalParams(TypedDict, total=False):
    """One signal to what the run does now: the terminal's foreground, or the main process. No ladder follows."""

    run_id: Required[str]
    signal: Required[str]


class RunsSignalAnswer(TypedDict):
    """How many processes or groups it reached."""

    run_id: str
    sent: int
    ok: Literal[True]


class RunsWriteParams(TypedDict, total=False):
    """Input for a run with an open stdin or a terminal, and whether that was all."""

    run_id: Required[str]
    text: str | None
    data_base64: str | None
    close: bool
    secret: bool
    key: str | None


class RunsWriteAnswer(TypedDict):
    """How many bytes the kernel has taken."""

    run_id: str
    written: int
    ok: Literal[True]


class RunsSnapshotParams(TypedDict, total=False):
    """`replay_bytes`: how far before the end the replay may begin; a screen that was drawn before that is not seen."""

    run_id: Required[str]
    format: Literal["ansi", "html", "text"]
    replay_bytes: int


class RunsSnapshotAnswer(TypedDict):
    """The screen of a run's terminal, as its stream left it at `total_bytes`."""

    format: Literal["ansi", "html", "text"]
    rows: list[str]
    screen: str
    cursor: Cursor
    title: str
    alternate_screen: bool
    modes: list[int]
    size: Size
    replayed_from: int
    complete: bool
    run_id: str
    total_bytes: int
    ok: Literal[True]


class RunsResizeParams(TypedDict, total=False):
    """A size for a run's terminal."""

    run_id: Required[str]
    rows: Required[int]
    cols: Required[int]


class RunsResizeAnswer(TypedDict):
    """The terminal has that size."""

    run_id: str
    ok: Literal[True]


class RunsAttendParams(TypedDict, total=False):
    """For as long as it waits, a terminal looks at the run; `terminal` is its name, of its own choice."""

    run_id: Required[str]
    terminal: Required[str]
    wait_ms: int


class RunsAttendAnswer(TypedDict):
    """`answers`: whether programs that ask are answered by this terminal, the first of those that look."""

    run_id: str
    answers: bool
    terminals: int
    ok: Literal[True]


class RunsAnswerParams(TypedDict, total=False):
    """What a terminal that looks at the run says to a program that asked it."""

    run_id: Required[str]
    data_base64: Required[str]


class RunsAnswerAnswer(TypedDict):
    """`typed`: false where nobody was there to be answered: line mode is on, or a conversation's shell in front."""

    run_id: str
    typed: bool
    ok: Literal[True]


class RunsWaitParams(TypedDict, total=False):
    """Waits until one of the conditions holds for one of the runs; `from` is where an earlier wait left off.

    Output is looked through from there on, without it from its first byte on: what was said before counts.
    """

    run_ids: Required[list[str]]
    for_: list[Condition]
    from_: dict[str, dict[str, int]]
    timeout_ms: int


class RunsWaitAnswer(TypedDict):
    """Which run it was, which condition held, what matched, and where to go on."""

    run_id: str
    met: Condition
    hit: HitInfo
    run: RunInfo
    runs: list[RunInfo]
    from_: dict[str, dict[str, int]]
    ok: Literal[True]


class RunsWaitTimeout(TypedDict):
    """None held in time, or none can hold any more (`reason`: `ended`); how the runs stand, and where to go on."""

    ok: Literal[False]
    error: Literal["timeout"]
    message: str
    reason: str
    runs: list[RunInfo]
    from_: dict[str, dict[str, int]]


class RunsSearchParams(TypedDict, total=False):
    """What is looked for, and where; `cursor` is the answer's `next_cursor`."""

    query: str | None
    regex: str | None
    session_id: str | None
    run_id: str | None
    stream: Literal["pty", "stderr", "stdout"] | None
    limit: int
    cursor: str | None


class RunsSearchAnswer(TypedDict):
    """What was found, in the newest runs first, and all that could not be looked at. More: from `next_cursor` on."""

    hits: list[Found]
    skipped: list[Skipped]
    skipped_more: int
    searched_bytes: int
    next_cursor: str | None
    has_more: bool
    ok: Literal[True]


class RunsPruneParams(TypedDict, total=False):
    """Which runs that are over are to go; without a bound, those of the configuration hold."""

    older_than_ms: int | None
    keep_bytes: int | None
    dry_run: bool


class RunsPruneAnswer(TypedDict):
    """The runs that went, or would go, oldest first, and the room that they took."""

    dry_run: bool
    runs: list[str]
    bytes: int
    ok: Literal[True]


class RunsVerifyParams(TypedDict, total=False):
    """One run, or all."""

    run_id: str | None


class RunsVerifyAnswer(TypedDict):
    """Whether all is sound, what was looked at, and what was found."""

    sound: bool
    runs: int
    bytes: int
    findings: list[FindingInfo]
    ok: Literal[True]
