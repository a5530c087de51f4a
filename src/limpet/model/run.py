"""A run, and how each fact changes it: one pure function, from which every state that anybody sees is computed."""

import enum
from typing import Final

import msgspec

from limpet.model.facts import (
    AnyFact,
    Damaged,
    Ended,
    Exited,
    Found,
    Hit,
    Hole,
    InputAsked,
    InputTaken,
    Looked,
    Lost,
    NotStarted,
    Prepared,
    Requeued,
    Resized,
    Resumed,
    Sealed,
    Stalled,
    Started,
    Starting,
    StopAsked,
    Stopping,
    StreamClosed,
    Submitted,
    Suppressed,
    SurvivorsGone,
    Synced,
    SyncFailed,
    Withdrawn,
    Witness,
    Wrote,
)
from limpet.model.stream import Stream, Tail, tail_with
from limpet.model.watch import Watch, Watching


class Phase(enum.StrEnum):
    """How far a run has come. There is no way back but a further attempt."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    DRAINING = "draining"
    ENDED = "ended"


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of one execution of one command."""

    run_id: str
    session_id: str = ""
    dialect: str = ""
    command: str = ""
    argv: list[str] = []
    cwd: str = ""
    env: dict[str, str] = {}
    stdin: str = "null"
    rows: int | None = None
    cols: int | None = None
    timeout_ms: int | None = None
    max_output_bytes: int = 0
    labels: list[str] = []
    context: dict[str, str] = {}
    key: str | None = None
    request_digest: str | None = None
    # What becomes of it when it was lost with the machine: "requeue" or "fail".
    on_lost: str = "fail"
    # What it may use at most: `memory_bytes`, `pids`, `cpu_secs`.
    limits: dict[str, int] = {}
    # Whether it waits for the runs of its session that came before it, and how long it may.
    serial: bool = False
    queue_timeout_ms: int | None = None
    attempt: int = 1
    phase: Phase = Phase.QUEUED
    keeper: Witness | None = None
    pid: int | None = None
    exit_code: int | None = None
    signal: str | None = None
    core: bool = False
    ended_by: str | None = None
    error_message: str | None = None
    error_part: str | None = None
    error_errno: str | None = None
    stopping: bool = False
    stalled: str | None = None
    streams: dict[str, Stream] = {}
    output_bytes: int = 0
    # Whether more was said than may become items.
    capped: bool = False
    # What was said last, over all streams, as it came.
    tail: Tail = ()
    # How many items the run has.
    last_seq: int = 0
    # What it is watched for, how far each watcher has come, and as far as all looked through each stream.
    watch: list[Watch] = []
    watching: tuple[Watching, ...] = ()
    looked: dict[str, int] = {}
    looked_whole: bool = False
    survivors: list[int] = []
    cannot_signal: list[int] = []
    created_at: int | None = None
    started_at: int | None = None
    finished_at: int | None = None
    sealed: bool = False
    # Journals that cannot be read to their end: where each of them stops.
    damaged: dict[str, str] = {}
    # Input that was written under a key: the digest of what, and how much of it was taken once that is known.
    inputs: dict[str, tuple[str, int | None]] = {}

    @property
    def is_over(self) -> bool:
        """Whether the run has ended; output may still come."""
        return self.phase is Phase.ENDED

    @property
    def awaits_watchers(self) -> bool:
        """Whether its watchers have not yet looked through all that it says: before that no end is taken in."""
        return bool(self.watch) and not self.looked_whole and not self.is_over

    @property
    def output_open(self) -> bool:
        """Whether something still holds a stream of an ended run."""
        return self.is_over and any(stream.open for stream in self.streams.values())


# What a run takes over from what was asked, under the same names.
ASKED_FIELDS: Final = tuple(name for name in Submitted.__struct_fields__ if name not in ("n", "at", "after"))
ONLY_LOGGED: Final = (
    "stdin, stdin_closed, signalled, killing, missed, asked: facts that change no state; of blocks: limpet.model.blocks"
)


def fold(run: Run, fact: AnyFact) -> Run:
    """The run after one more fact. Total: a fact that says nothing new, or comes too late, leaves the run as it was."""
    change = msgspec.structs.replace
    match fact:
        case Submitted():
            asked = {name: getattr(fact, name) for name in ASKED_FIELDS}
            created_at = fact.submitted_at if isinstance(fact, Found) else fact.at
            return change(run, **asked, watching=(Watching(),) * len(fact.watch), created_at=created_at)
        case Damaged():
            what = f"cannot be read: {fact.bytes} bytes do not count" if fact.bytes else "is not there"
            return change(
                run, damaged=run.damaged | {fact.file: f"record {fact.record}, at byte {fact.offset}, {what}"}
            )
        case StopAsked():
            return run if run.is_over else change(run, stopping=True)
        case InputAsked():
            return change(run, inputs=run.inputs | {fact.key: (fact.digest, None)})
        case InputTaken():
            digest, _ = run.inputs.get(fact.key, ("", None))
            return change(run, inputs=run.inputs | {fact.key: (digest, fact.written)})
        case Hit() | Suppressed():
            return _fold_watching(run, fact)
        case Looked():
            return change(run, looked=run.looked | fact.streams, looked_whole=fact.whole)
        case Prepared() if not run.is_over:
            return change(run, keeper=fact.keeper)
        case Starting() if run.phase is Phase.QUEUED:
            new = {name: Stream(parts=(0,) * run.attempt) for name in fact.streams}
            return change(run, phase=Phase.STARTING, streams=new | run.streams)
        case Started() if run.phase in (Phase.QUEUED, Phase.STARTING):
            return change(run, phase=Phase.RUNNING, pid=fact.pid, started_at=fact.at)
        case NotStarted() if not run.is_over:
            closed = {name: stream.closed() for name, stream in run.streams.items()}
            return change(
                run,
                phase=Phase.ENDED,
                ended_by="self",
                error_part=fact.part,
                error_errno=fact.errno,
                error_message=_why_not_started(run, fact),
                finished_at=fact.at,
                stopping=False,
                streams=closed,
            )
        case Withdrawn() if run.phase is Phase.QUEUED:
            closed = {name: stream.closed(stream.bytes) for name, stream in run.streams.items()}
            return change(
                run,
                phase=Phase.ENDED,
                ended_by=fact.by,
                error_message=fact.message,
                finished_at=fact.at,
                stopping=False,
                streams=closed,
            )
        case Wrote():
            return _fold_wrote(run, fact)
        case Resized():
            return change(run, rows=fact.rows, cols=fact.cols)
        case Stopping():
            return run if run.is_over else change(run, stopping=True)
        case Hole() if fact.stream in run.streams:
            return _with_stream(run, fact.stream, run.streams[fact.stream].holed(fact.start, fact.end))
        case Stalled():
            return change(run, stalled=fact.errno)
        case Resumed():
            return change(run, stalled=None)
        case Synced():
            for name in fact.streams.keys() & run.streams.keys():
                run = _with_stream(run, name, run.streams[name].synced(fact.streams[name]))
            return run
        case SyncFailed() if fact.stream in run.streams:
            return _with_stream(run, fact.stream, run.streams[fact.stream].sync_failed(fact.start))
        case Exited():
            phase = Phase.ENDED if run.is_over else Phase.DRAINING
            return change(run, phase=phase, exit_code=fact.code, signal=fact.signal, core=fact.core)
        case StreamClosed() if fact.stream in run.streams:
            return _with_stream(run, fact.stream, run.streams[fact.stream].closed())
        case Ended() if not run.is_over:
            for name, end in fact.streams.items():
                stream = run.streams.get(name, Stream())
                at = stream.parts[-1] + end.end
                run = _with_stream(run, name, change(stream, ended_at=at, open=end.open))
            return change(
                run,
                phase=Phase.ENDED,
                ended_by=fact.by,
                survivors=fact.survivors,
                cannot_signal=fact.cannot_signal,
                finished_at=fact.at,
                stopping=False,
            )
        case SurvivorsGone():
            return change(run, survivors=[], cannot_signal=[])
        case Sealed():
            return change(run, sealed=True)
        case Lost():
            return _fold_lost(run, fact)
        case Requeued() if not run.is_over:
            return _fold_requeued(run, fact)
        case _:
            return run


def _why_not_started(run: Run, fact: NotStarted) -> str:
    about = {"cwd": f" {run.cwd}", "program": f" {run.argv[0] if run.argv else ''}"}.get(fact.part, "")
    return f"could not start: {fact.part}{about}: {fact.message} ({fact.errno})"


def _with_stream(run: Run, name: str, stream: Stream) -> Run:
    return msgspec.structs.replace(run, streams=run.streams | {name: stream})


def _fold_wrote(run: Run, fact: Wrote) -> Run:
    stream = run.streams.get(fact.stream, Stream())
    count = fact.end - fact.start
    # What comes after the end is in the spool alone.
    left = 0 if run.is_over else run.max_output_bytes - run.output_bytes
    grown = stream.grown(fact.end, max(0, min(count, left)))
    base, start = stream.parts[-1], fact.start
    return msgspec.structs.replace(
        run,
        streams=run.streams | {fact.stream: grown},
        output_bytes=run.output_bytes + count,
        capped=run.capped or (not run.is_over and count > left),
        tail=run.tail
        if run.is_over
        else tail_with(run.tail, fact.stream, base + start, base + fact.end, begins=not start),
    )


def _fold_watching(run: Run, fact: Hit | Suppressed) -> Run:
    place = fact.watcher
    if not 0 <= place < len(run.watching):
        return run
    known = run.watching[place]
    if isinstance(fact, Hit):
        known = known.hit(fact.stream, fact.end, once=run.watch[place].once)
    else:
        known = msgspec.structs.replace(known, is_over=True)
    return msgspec.structs.replace(run, watching=(*run.watching[:place], known, *run.watching[place + 1 :]))


def with_all_bytes(run: Run, at: int, sizes: dict[str, int]) -> Run:
    """The run with all that a dead keeper wrote, written down or not; what went with the power is a hole."""
    for name, size in sizes.items():
        stream = run.streams.get(name, Stream())
        known = stream.bytes - stream.parts[-1]
        if size > known:
            run = _fold_wrote(run, Wrote(n=0, at=at, stream=name, start=known, end=size))
        elif size < known:
            run = _with_stream(run, name, stream.cut(size))
    return run


def _fold_lost(run: Run, fact: Lost) -> Run:
    """The keeper's last word is missing: the end is nobody's knowledge."""
    run = with_all_bytes(run, fact.at, fact.streams)
    for name in fact.streams:
        stream = run.streams.get(name, Stream())
        run = _with_stream(run, name, stream.closed(stream.bytes if stream.ended_at is None else None))
    sealed = not fact.survivors
    if run.is_over:
        return msgspec.structs.replace(run, survivors=fact.survivors, sealed=sealed)
    return msgspec.structs.replace(
        run,
        phase=Phase.ENDED,
        sealed=sealed,
        ended_by="lost",
        error_message=fact.message,
        survivors=fact.survivors,
        finished_at=fact.at,
        stopping=False,
    )


def _fold_requeued(run: Run, fact: Requeued) -> Run:
    """Another attempt: nothing is left of the last one but what it said."""
    run = with_all_bytes(run, fact.at, fact.streams)
    return msgspec.structs.replace(
        run,
        phase=Phase.QUEUED,
        attempt=run.attempt + 1,
        streams={name: stream.continued() for name, stream in run.streams.items()},
        keeper=None,
        pid=None,
        exit_code=None,
        signal=None,
        core=False,
        started_at=None,
        stopping=False,
        stalled=None,
        looked_whole=False,
    )
