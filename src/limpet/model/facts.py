"""What can be known of a run: the facts of its two journals, as types. See docs/formats/."""

from typing import Final

import msgspec

from limpet.model.watch import Watch


class Fact(msgspec.Struct, frozen=True, kw_only=True, tag_field="fact"):
    """One record of a journal: its number there, and the wall clock when it was written."""

    n: int
    at: int


# What the keeper saw. It alone writes these, into keeper.journal.


class Witness(msgspec.Struct, frozen=True):
    """A process, named for good: a pid alone comes again."""

    pid: int
    start_time: int
    boot_id: str


class Prepared(Fact, frozen=True, kw_only=True, tag="prepared"):
    protocol: int
    version: str
    keeper: Witness
    cgroup: str | None


class Starting(Fact, frozen=True, kw_only=True, tag="starting"):
    run: str
    pty: bool
    streams: list[str]
    # The process that is to become the command; keepers of old did not say.
    pid: int | None = None
    start_time: int | None = None
    # Those that were asked for, about to be made.
    cgroups: list[str] = []


class Started(Fact, frozen=True, kw_only=True, tag="started"):
    pid: int
    start_time: int


class NotStarted(Fact, frozen=True, kw_only=True, tag="not_started"):
    part: str
    errno: str
    message: str


class Wrote(Fact, frozen=True, kw_only=True, tag="wrote"):
    stream: str
    start: int
    end: int
    # How many bytes at the end are a character that has only begun.
    cut: int = 0


class Stdin(Fact, frozen=True, kw_only=True, tag="stdin"):
    start: int
    end: int
    data: str | None = None
    secret: bool = False


class StdinClosed(Fact, frozen=True, kw_only=True, tag="stdin_closed"):
    why: str


class Resized(Fact, frozen=True, kw_only=True, tag="resized"):
    rows: int
    cols: int


class Signalled(Fact, frozen=True, kw_only=True, tag="signalled"):
    signal: str
    to: str
    sent: int


class Stopping(Fact, frozen=True, kw_only=True, tag="stopping"):
    by: str
    signal: str
    grace_ms: int


class Killing(Fact, frozen=True, kw_only=True, tag="killing"):
    pass


class Hole(Fact, frozen=True, kw_only=True, tag="hole"):
    stream: str
    start: int
    end: int


class Stalled(Fact, frozen=True, kw_only=True, tag="stalled"):
    errno: str
    file: str


class Resumed(Fact, frozen=True, kw_only=True, tag="resumed"):
    pass


class Synced(Fact, frozen=True, kw_only=True, tag="synced"):
    streams: dict[str, int]


class SyncFailed(Fact, frozen=True, kw_only=True, tag="sync_failed"):
    stream: str
    start: int
    end: int
    errno: str


class Exited(Fact, frozen=True, kw_only=True, tag="exited"):
    code: int | None
    signal: str | None
    core: bool
    oom: bool


class StreamClosed(Fact, frozen=True, kw_only=True, tag="stream_closed"):
    stream: str


class StreamEnd(msgspec.Struct, frozen=True):
    """Where a stream stood when the run ended, and whether something still held it."""

    end: int
    open: bool


class Ended(Fact, frozen=True, kw_only=True, tag="ended"):
    by: str
    streams: dict[str, StreamEnd]
    survivors: list[int]
    cannot_signal: list[int]


class SurvivorsGone(Fact, frozen=True, kw_only=True, tag="survivors_gone"):
    pass


class Seal(msgspec.Struct, frozen=True):
    """A spool as it will stay: its size, its hole, the CRCs of what is kept and of the file of bare LFs."""

    bytes: int
    hole: tuple[int, int] | None
    crc32: str | None
    bare_lf_crc32: str | None = None


class Sealed(Fact, frozen=True, kw_only=True, tag="sealed"):
    streams: dict[str, Seal]


class ShellBegan(Fact, frozen=True, kw_only=True, tag="shell_began"):
    pid: int
    offset: int


class ShellGone(Fact, frozen=True, kw_only=True, tag="shell_gone"):
    pid: int
    code: int | None
    signal: str | None
    offset: int
    # What it was at, by the word that was handed over with it.
    block: str | None


class Delivered(Fact, frozen=True, kw_only=True, tag="delivered"):
    block: str
    offset: int


class Prompt(Fact, frozen=True, kw_only=True, tag="prompt"):
    """A genuine one: its line stands at [start, end) of the spool; what came before it ends at `output_end`."""

    output_end: int
    start: int
    end: int
    exit: int
    cwd_b64: str
    ts: int
    first: bool
    block: str | None
    # How many look-alikes there were since the last one, where not each was told.
    suspicious: int | None = None
    # How many bytes the shell drew for itself, which are not in the spool.
    drawn: int | None = None


class TerminalAsked(Fact, frozen=True, kw_only=True, tag="asked"):
    """What stands at [start, end) of the spool seems to ask the terminal something; line mode was off."""

    start: int
    end: int


class Suspicious(Fact, frozen=True, kw_only=True, tag="suspicious"):
    offset: int
    why: str


# What was asked. The daemon alone writes these, into daemon.journal; `after` is the number of the keeper's record
# after which each stands.


class Asked(Fact, frozen=True, kw_only=True):
    after: int


class Submitted(Asked, frozen=True, kw_only=True, tag="submitted"):
    """The run as it was asked for; values of secret variables are not in it."""

    run_id: str
    session_id: str
    dialect: str
    command: str
    argv: list[str]
    cwd: str
    env: dict[str, str]
    stdin: str = "null"
    rows: int | None = None
    cols: int | None = None
    timeout_ms: int | None = None
    max_output_bytes: int
    labels: list[str] = []
    context: dict[str, str] = {}
    key: str | None = None
    request_digest: str | None = None
    on_lost: str = "fail"
    serial: bool = False
    queue_timeout_ms: int | None = None
    watch: list[Watch] = []
    limits: dict[str, int] = {}


class Found(Submitted, frozen=True, kw_only=True, tag="found"):
    """Stands for a `submitted` that cannot be read: what is known of it from elsewhere, and when it was written."""

    submitted_at: int


class Damaged(Asked, frozen=True, kw_only=True, tag="damaged"):
    """From that record on a journal of the run cannot be read: it and all behind it, so many bytes, do not count."""

    file: str
    record: int
    offset: int
    bytes: int


class StopAsked(Asked, frozen=True, kw_only=True, tag="stop_asked"):
    signal: str


class Withdrawn(Asked, frozen=True, kw_only=True, tag="withdrawn"):
    """The run left the queue and was not started: somebody asked, it waited too long, or nothing could keep it."""

    by: str
    message: str | None = None


class Requeued(Asked, frozen=True, kw_only=True, tag="requeued"):
    """Nothing was left of the run: it is started again. Its last attempt's records end here, its spools are so long."""

    attempt: int
    streams: dict[str, int]


class InputAsked(Asked, frozen=True, kw_only=True, tag="input_asked"):
    """Input with a key is about to be written: it is never written again under that key."""

    key: str
    digest: str


class InputTaken(Asked, frozen=True, kw_only=True, tag="input_taken"):
    """The input with that key was taken, so many bytes of it."""

    key: str
    written: int


class Hit(Asked, frozen=True, kw_only=True, tag="hit"):
    """A watcher, by its place among those asked for, matched these bytes of a stream: `match` is their text, cut."""

    watcher: int
    stream: str
    start: int
    end: int
    match: str
    # Of a match by line: by number, and by name where it has one.
    groups: dict[str, str | None] | None = None


class Suppressed(Asked, frozen=True, kw_only=True, tag="suppressed"):
    """A watcher hit more often than is told."""

    watcher: int


class Missed(Asked, frozen=True, kw_only=True, tag="missed"):
    """These bytes were given up before watchers had looked at them."""

    stream: str
    start: int
    end: int


class Looked(Asked, frozen=True, kw_only=True, tag="looked"):
    """Watchers have looked through streams so far: whoever goes on there finds what is to come. `whole`: to the end."""

    streams: dict[str, int]
    whole: bool = False


class BlockBegun(Asked, frozen=True, kw_only=True, tag="block_begun"):
    """A conversation's shell is to be handed this command; once, whatever becomes of the daemon."""

    block: str
    cmd: str
    cwd: str | None = None
    interactive: bool = False
    key: str | None = None
    digest: str | None = None


class ResetAsked(Asked, frozen=True, kw_only=True, tag="reset_asked"):
    """All that a conversation's shell has begun is to end, the shell too; another one follows."""


class Lost(Asked, frozen=True, kw_only=True, tag="lost"):
    """The keeper is dead and said no end: what it had not written down is added, what is left is named."""

    streams: dict[str, int]
    survivors: list[int]
    message: str


KeeperFact = (
    Prepared
    | Starting
    | Started
    | NotStarted
    | Wrote
    | Stdin
    | StdinClosed
    | Resized
    | Signalled
    | Stopping
    | Killing
    | Hole
    | Stalled
    | Resumed
    | Synced
    | SyncFailed
    | Exited
    | StreamClosed
    | Ended
    | SurvivorsGone
    | Sealed
    | ShellBegan
    | ShellGone
    | Delivered
    | Prompt
    | Suspicious
    | TerminalAsked
)
DaemonFact = (
    Submitted
    | Found
    | Damaged
    | StopAsked
    | Withdrawn
    | Requeued
    | InputAsked
    | InputTaken
    | Hit
    | Suppressed
    | Missed
    | Looked
    | BlockBegun
    | ResetAsked
    | Lost
)
AnyFact = KeeperFact | DaemonFact


class _Tag(msgspec.Struct):
    fact: str


_decoder: Final = msgspec.json.Decoder(AnyFact)
_tag_decoder: Final = msgspec.json.Decoder(_Tag)
_tags: Final = {str(kind.__struct_config__.tag) for kind in (*KeeperFact.__args__, *DaemonFact.__args__)}
_encoder: Final = msgspec.json.Encoder()


def decode_fact(body: bytes) -> AnyFact | None:
    """The fact in a record; None for one of a kind that only a newer limpet knows. DecodeError for what is none."""
    try:
        return _decoder.decode(body)
    except msgspec.ValidationError:
        if _tag_decoder.decode(body).fact in _tags:
            raise
        return None
    except (UnicodeDecodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def encode_fact(fact: DaemonFact) -> bytes:
    """The record's JSON, on one line."""
    return _encoder.encode(fact)
