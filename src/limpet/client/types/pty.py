"""What the operations `pty.*` take and answer."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Any, Literal, Required, TypedDict


class Input(TypedDict):
    """Null is what the system does not tell: it has no such file, or another user's process is in front.

    `waits`: a process in the terminal's foreground stands in a read of it, or waits for it among others.
    """

    waits: bool | None
    echo: bool | None
    line_mode: bool | None
    pids: list[int]


class Span(TypedDict):
    """"""

    start: int
    end: int


class Cursor(TypedDict):
    """Where the cursor stands, counted from 0: `row` in `rows`, `col` in cells."""

    row: int
    col: int
    visible: bool


class Size(TypedDict):
    """"""

    rows: int
    cols: int


class PtyOpenParams(TypedDict, total=False):
    """How it is to begin; `rc` is a file that the shell reads first, the shell is bash if none is named."""

    conversation_id: Required[str]
    shell: Literal["bash", "fish", "sh", "zsh"] | None
    cwd: str | None
    env: dict[str, str]
    rows: int
    cols: int
    rc: str | None
    labels: list[str]


class PtyOpenAnswer(TypedDict):
    """"""

    conversation_id: str
    run_id: str
    mode: Literal["block_running", "idle", "interactive"]
    resume_cursor: int
    ok: Literal[True]


class PtyExecBlockParams(TypedDict, total=False):
    """A command for the shell; `timeout_ms` is how long to wait for others that write."""

    conversation_id: Required[str]
    cmd: Required[str]
    cwd: str | None
    key: str | None
    timeout_ms: int


class PtyExecBlockAnswer(TypedDict):
    """"""

    block_id: str
    seq: int
    ts: int
    ok: Literal[True]


class PtyExecInteractiveParams(TypedDict, total=False):
    """A command for the shell; `timeout_ms` is how long to wait for others that write."""

    conversation_id: Required[str]
    cmd: Required[str]
    cwd: str | None
    key: str | None
    timeout_ms: int


class PtyExecInteractiveAnswer(TypedDict):
    """"""

    session_id: str
    block_id: str
    ts_begin: int
    resume_cursor: int
    ok: Literal[True]


class PtySendParams(TypedDict, total=False):
    """What is typed. `now` does not wait for others that write."""

    conversation_id: Required[str]
    data: Required[str]
    now: bool
    secret: bool
    key: str | None
    timeout_ms: int


class PtySendAnswer(TypedDict):
    """It was done."""

    ok: Literal[True]


class PtySendTimeout(TypedDict):
    """What runs did not read all of it in time."""

    ok: Literal[False]
    error: Literal["timeout"]
    message: str
    written: int


class PtyReadSpoolParams(TypedDict, total=False):
    """"""

    conversation_id: Required[str]
    from_cursor: int
    max_bytes: int
    encoding: Literal["base64", "utf-8"]
    view: Literal["plain", "raw"]


class PtyReadSpoolAnswer(TypedDict):
    """`cursor` is where the data begins, `resume_cursor` where it ends."""

    data: str
    cursor: int
    resume_cursor: int
    ok: Literal[True]


class PtyStatusParams(TypedDict, total=False):
    """A conversation."""

    conversation_id: Required[str]


class PtyStatusAnswer(TypedDict):
    """"""

    mode: Literal["block_running", "idle", "interactive"]
    active_session_id: str
    active_block_id: str
    shell_id: str
    resume_cursor: int
    conversation_id: str
    run_id: str
    closed: bool
    cwd: str
    resets: int
    blocks: int
    input: Input
    ok: Literal[True]


class PtyResizeParams(TypedDict, total=False):
    """"""

    conversation_id: Required[str]
    rows: Required[int]
    cols: Required[int]


class PtyResizeAnswer(TypedDict):
    """It was done."""

    ok: Literal[True]


class PtySignalParams(TypedDict, total=False):
    """Goes to what runs in the terminal's foreground."""

    conversation_id: Required[str]
    signal: Required[str]


class PtySignalAnswer(TypedDict):
    """"""

    sent: int
    ok: Literal[True]


class PtyEndSessionParams(TypedDict, total=False):
    """`force`: reset the shell where nothing else helps."""

    conversation_id: Required[str]
    force: bool


class PtyEndSessionAnswer(TypedDict):
    """`by`: what brought the prompt back (`SIGINT`, `SIGTERM`, `reset`), or `none`."""

    ended: bool
    by: str
    mode: Literal["block_running", "idle", "interactive"]
    resume_cursor: int
    ok: Literal[True]


class PtyResetParams(TypedDict, total=False):
    """A conversation."""

    conversation_id: Required[str]


class PtyResetAnswer(TypedDict):
    """"""

    mode: Literal["block_running", "idle", "interactive"]
    resume_cursor: int
    ok: Literal[True]


class PtyCloseParams(TypedDict, total=False):
    """A conversation."""

    conversation_id: Required[str]


class PtyCloseAnswer(TypedDict):
    """"""

    run_id: str
    closed: bool
    resume_cursor: int
    ok: Literal[True]


class PtyWaitForParams(TypedDict, total=False):
    """For `quiet`, `match` is a number of milliseconds; `prompt` and `exit` need none."""

    conversation_id: Required[str]
    match: str
    match_type: Literal["exit", "line", "prompt", "quiet", "regex", "substring"]
    from_cursor: int
    timeout_ms: int


class PtyWaitForAnswer(TypedDict):
    """"""

    matched: bool
    match_text: str
    match_cursor: int
    match_span: Span
    resume_cursor: int
    extra: dict[str, Any]
    ok: Literal[True]


class PtyWaitForTimeout(TypedDict):
    """Nothing held in time; `reason` is `closed` where nothing can any more."""

    ok: Literal[False]
    error: Literal["timeout"]
    message: str
    matched: bool
    resume_cursor: int
    reason: str


class PtyWaitPromptParams(TypedDict, total=False):
    """"""

    conversation_id: Required[str]
    from_cursor: int
    timeout_ms: int


class PtyWaitPromptAnswer(TypedDict):
    """The prompt, and the block that it ended."""

    matched: bool
    match_text: str
    match_cursor: int
    match_span: Span
    resume_cursor: int
    mode: Literal["block_running", "idle", "interactive"]
    exit_code: int | None
    block_id: str | None
    status: Literal["cancelled", "completed", "failed", "interactive", "running"] | None
    ok: Literal[True]


class PtyWaitPromptTimeout(TypedDict):
    """Nothing held in time; `reason` is `closed` where nothing can any more."""

    ok: Literal[False]
    error: Literal["timeout"]
    message: str
    matched: bool
    resume_cursor: int
    reason: str


class PtyExpectSendParams(TypedDict, total=False):
    """Waits as `pty.wait_for`, then sends, with nobody's writing in between."""

    conversation_id: Required[str]
    expect: Required[str]
    match_type: Literal["exit", "line", "prompt", "quiet", "regex", "substring"]
    send: Required[str]
    secret: bool
    key: str | None
    from_cursor: int
    timeout_ms: int


class PtyExpectSendAnswer(TypedDict):
    """"""

    matched: bool
    match_text: str
    match_cursor: int
    match_span: Span
    resume_cursor: int
    extra: dict[str, Any]
    ok: Literal[True]


class PtyExpectSendTimeout(TypedDict):
    """Nothing held in time; `reason` is `closed` where nothing can any more."""

    ok: Literal[False]
    error: Literal["timeout"]
    message: str
    matched: bool
    resume_cursor: int
    reason: str


class PtyRunParams(TypedDict, total=False):
    """A command, waited for; `output` is cut at `max_bytes`, from its end."""

    conversation_id: Required[str]
    cmd: Required[str]
    cwd: str | None
    key: str | None
    timeout_ms: int
    max_bytes: int
    view: Literal["plain", "raw"]


class PtyRunAnswer(TypedDict):
    """"""

    block_id: str
    exit_code: int | None
    status: Literal["cancelled", "completed", "failed", "interactive", "running"]
    output: str
    truncated: bool
    resume_cursor: int
    ok: Literal[True]


class PtyRunTimeout(TypedDict):
    """The block goes on."""

    ok: Literal[False]
    error: Literal["timeout"]
    message: str
    block_id: str
    exit_code: int | None
    status: Literal["cancelled", "completed", "failed", "interactive", "running"]
    output: str
    truncated: bool
    resume_cursor: int


class PtySnapshotParams(TypedDict, total=False):
    """`replay_bytes`: how far before the end the replay may begin; a screen that was drawn before that is not seen."""

    conversation_id: Required[str]
    format: Literal["ansi", "html", "text"]
    replay_bytes: int


class PtySnapshotAnswer(TypedDict):
    """"""

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
    resume_cursor: int
    ok: Literal[True]
