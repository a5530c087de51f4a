"""What the operations on runs take and answer."""

from typing import Annotated, Literal

import msgspec

from limpet.engine.engine import Engine
from limpet.engine.screens.screens import REPLAY_BYTES
from limpet.model.run import Run
from limpet.model.screen import Format, Shown
from limpet.model.status import Status, status_of

Size = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
Count = Annotated[int, msgspec.Meta(ge=1, le=1000)]
WaitMs = Annotated[int, msgspec.Meta(ge=0, le=86_400_000)]


class StreamInfo(msgspec.Struct, frozen=True, kw_only=True):
    """How much one stream has said: `base` is the first byte behind which nothing was given up."""

    bytes: int
    base: int
    open: bool


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A run as everybody sees it."""

    run_id: str
    session_id: str
    dialect: str
    command: str
    status: Status
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


def describe(run: Run, *, unresponsive: bool = False, waiting_for: str | None = None) -> RunInfo:
    """The public view of a run: a total map. Whether its keeper stands still and whose turn it is, no fact tells."""
    streams = {
        name: StreamInfo(bytes=each.bytes, base=each.kept_from, open=each.open) for name, each in run.streams.items()
    }
    return RunInfo(
        run_id=run.run_id,
        session_id=run.session_id,
        dialect=run.dialect,
        command=run.command,
        status=status_of(run),
        phase=run.phase.value,
        attempt=run.attempt,
        pid=run.pid,
        exit_code=run.exit_code,
        signal=run.signal,
        ended_by=run.ended_by,
        error_message=run.error_message,
        output_open=run.output_open,
        stopping=run.stopping,
        unresponsive=unresponsive,
        waiting_for=waiting_for,
        stalled=run.stalled,
        survivors=run.survivors,
        cannot_signal=run.cannot_signal,
        truncated=run.capped,
        cwd=run.cwd,
        pty=run.rows is not None,
        labels=run.labels,
        context=run.context,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        streams=streams,
        damaged=run.damaged,
        durable_offset={name: each.durable for name, each in run.streams.items()},
    )


def shown_now(engine: Engine, run: Run) -> RunInfo:
    """The run with what the engine alone knows of it."""
    unresponsive, waiting_for = engine.is_unresponsive(run.run_id), engine.waits_for(run.run_id)
    return describe(run, unresponsive=unresponsive, waiting_for=waiting_for)


class ListRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which runs: each filter narrows. `cursor` is the answer's `next_cursor`."""

    session_id: str | None = None
    status: Status | None = None
    dialect: str | None = None
    label: str | None = None
    text: str | None = None
    limit: Count = 100
    cursor: str | None = None


class ListResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The newest first; `next_cursor` is null on the last page."""

    runs: list[RunInfo]
    next_cursor: str | None
    has_more: bool


class GetRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which run."""

    run_id: str


class GetResponse(RunInfo, frozen=True, kw_only=True):
    """A run with what it was started with; values of secret variables are redacted."""

    argv: list[str]
    env: dict[str, str]
    key: str | None
    timeout_ms: int | None
    limits: dict[str, int]


class ReadRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A range of a stream, by offset or from its end. `wait_ms` waits until a byte is there or none will come.

    `view: "terminal"` has the CRs that folding took from a terminal's bytes; with `encoding: "base64"` only.
    """

    run_id: str
    stream: Literal["stdout", "stderr", "pty"] | None = None
    offset: Size | None = None
    last_bytes: Size | None = None
    last_lines: Size | None = None
    max_bytes: Annotated[int, msgspec.Meta(ge=1, le=8 << 20)] = 65536
    encoding: Literal["utf-8", "base64"] = "utf-8"
    view: Literal["raw", "plain", "terminal"] = "raw"
    wait_ms: WaitMs = 0


class ReadResponse(msgspec.Struct, frozen=True, kw_only=True):
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


class SnapshotRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`replay_bytes`: how far before the end the replay may begin; a screen that was drawn before that is not seen."""

    run_id: str
    format: Format = "text"
    replay_bytes: Annotated[int, msgspec.Meta(ge=1 << 16, le=1 << 40)] = REPLAY_BYTES


class Snapshot(Shown, frozen=True, kw_only=True):
    """The screen of a run's terminal, as its stream left it at `total_bytes`."""

    run_id: str
    total_bytes: int


class AttendRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For as long as it waits, a terminal looks at the run; `terminal` is its name, of its own choice."""

    run_id: str
    terminal: str
    wait_ms: WaitMs = 30_000


class AttendResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`answers`: whether programs that ask are answered by this terminal, the first of those that look."""

    run_id: str
    answers: bool
    terminals: int


class AnswerRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a terminal that looks at the run says to a program that asked it."""

    run_id: str
    data_base64: str


class AnswerResponse(msgspec.Struct, frozen=True, kw_only=True):
    """`typed`: false where nobody was there to be answered: line mode is on, or a conversation's shell in front."""

    run_id: str
    typed: bool


class ResizeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A size for a run's terminal."""

    run_id: str
    rows: Annotated[int, msgspec.Meta(ge=1, le=65535)]
    cols: Annotated[int, msgspec.Meta(ge=1, le=65535)]


class ResizeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The terminal has that size."""

    run_id: str


class KillRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which run to end, and with which signal first."""

    run_id: str
    signal: str = "SIGTERM"


class KillResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The run as it stands: `stopping` as long as it is being ended."""

    run_id: str
    status: Status
    stopping: bool


class SignalRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One signal to what the run does now: the terminal's foreground, or the main process. No ladder follows."""

    run_id: str
    signal: str


class SignalResponse(msgspec.Struct, frozen=True, kw_only=True):
    """How many processes or groups it reached."""

    run_id: str
    sent: int


class WriteRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Input for a run with an open stdin or a terminal, and whether that was all."""

    run_id: str
    text: str | None = None
    data_base64: str | None = None
    close: bool = False
    secret: bool = False
    key: str | None = None


class WriteResponse(msgspec.Struct, frozen=True, kw_only=True):
    """How many bytes the kernel has taken."""

    run_id: str
    written: int
