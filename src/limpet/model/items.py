"""What is shown of a run, one numbered item after another: a pure function of its facts."""

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from limpet.model.facts import (
    AnyFact,
    Ended,
    Hit,
    Hole,
    Lost,
    Missed,
    Requeued,
    Resumed,
    ShellGone,
    Stalled,
    StreamClosed,
    Suppressed,
    Wrote,
)
from limpet.model.run import Run, fold
from limpet.model.status import status_of
from limpet.model.stream import Span

# No item holds more characters. It holds no more bytes either, with those of a character that goes on behind its end.
CHUNK_MAX_CHARS: Final = 8192
_CHUNK_BYTES: Final = CHUNK_MAX_CHARS - 3

Kind = Literal["output", "status", "event"]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `exec_run_items`. Output is where its bytes stand: they are in the spool, never in the database."""

    seq: int
    ts: int
    kind: Kind
    stream: str | None = None
    start: int | None = None
    end: int | None = None
    event: str | None = None
    data: dict[str, Any] | None = None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """How far both journals have been taken in: offset, CRC chain and number of the last record of each."""

    attempt: int = 1
    keeper_bytes: int = 0
    keeper_chain: int = 0
    keeper_records: int = 0
    daemon_bytes: int = 0
    daemon_chain: int = 0
    daemon_records: int = 0


def take_in(run: Run, fact: AnyFact) -> tuple[Run, list[Item]]:
    """The run after one more fact, and the items that come of it. Items are numbered from 1, without a gap."""
    after = fold(run, fact)
    shown = after if run.is_over else _with_shown(after, fact)
    items = [
        msgspec.structs.replace(item, seq=seq)
        for seq, item in enumerate(_news(run, fact, shown), start=run.last_seq + 1)
    ]
    if items or shown is not run:
        after = msgspec.structs.replace(shown, last_seq=run.last_seq + len(items))
    return after, items


def _with_shown(run: Run, fact: AnyFact) -> Run:
    """With each stream shown as far as this fact allows: whole characters, nothing beyond the head."""
    match fact:
        case Wrote() if fact.stream in run.streams:
            names, cut = [fact.stream], fact.cut
        case StreamClosed() if fact.stream in run.streams:
            names, cut = [fact.stream], 0
        case Ended() | Lost() | Requeued():
            names, cut = list(run.streams), 0
        case _:
            return run
    streams = dict(run.streams)
    for name in names:
        stream = streams[name]
        streams[name] = msgspec.structs.replace(
            stream, shown=max(stream.shown, min(stream.bytes - cut, stream.head_end))
        )
    return msgspec.structs.replace(run, streams=streams)


def _news(before: Run, fact: AnyFact, after: Run) -> Iterator[Item]:
    """What became known by one fact, in the order in which one wants to hear it: output, events, status."""
    if before.is_over:
        return
    for name, stream in after.streams.items():
        shown = before.streams[name].shown if name in before.streams else 0
        for start in range(shown, stream.shown, _CHUNK_BYTES):
            end = min(start + _CHUNK_BYTES, stream.shown)
            yield Item(seq=0, ts=fact.at, kind="output", stream=name, start=start, end=end)
    if after.capped and not before.capped:
        yield _event(fact, "output_capped", max_output_bytes=after.max_output_bytes)
    match fact:
        case Hole() if fact.stream in after.streams:
            known = before.streams[fact.stream].holes if fact.stream in before.streams else ()
            if len(after.streams[fact.stream].holes) > len(known):
                yield _event(fact, "output_dropped", stream=fact.stream, start=after.streams[fact.stream].holes[-1][0])
        case Stalled():
            yield _event(fact, "storage_full", errno=fact.errno, file=fact.file)
        case Resumed():
            yield _event(fact, "storage_resumed")
        case Hit() if 0 <= fact.watcher < len(after.watch):
            yield _hit(after, fact)
        case Suppressed() if 0 <= fact.watcher < len(after.watch):
            watch = after.watch[fact.watcher]
            yield _event(fact, "watch_suppressed", watched=watch.event, hits=after.watching[fact.watcher].hits)
        case ShellGone():
            data = {"exit_code": fact.code, "signal": fact.signal, "block_id": fact.block, "cursor": fact.offset}
            yield _event(fact, "session_reset", **data)
        case Missed():
            yield _event(fact, "watch_missed", stream=fact.stream, start=fact.start, end=fact.end)
        case Lost() | Requeued():
            for name in after.streams:
                for start, end in _new_holes(before, after, name):
                    yield _event(fact, "output_lost", stream=name, start=start, end=end)
            if isinstance(fact, Requeued):
                yield _event(fact, "recovered", attempt=after.attempt)
        case _:
            pass
    if after.created_at is not None and (before.created_at is None or status_of(before) != status_of(after)):
        yield Item(seq=0, ts=fact.at, kind="status", data=_standing(after))


def is_hit(item: Item) -> bool:
    """Whether a watcher made it; other events stand on no bytes."""
    return item.kind == "event" and item.stream is not None


def _hit(run: Run, fact: Hit) -> Item:
    """Where the hit stands, and what was said last as of then: the text of both is read when somebody asks."""
    data: dict[str, Any] = {"watcher": fact.watcher, "match": fact.match, "tail": [list(piece) for piece in run.tail]}
    if fact.groups is not None:
        data["groups"] = fact.groups
    return Item(
        seq=0,
        ts=fact.at,
        kind="event",
        event=run.watch[fact.watcher].event,
        stream=fact.stream,
        start=fact.start,
        end=fact.end,
        data=data,
    )


def _new_holes(before: Run, after: Run, name: str) -> Iterator[Span]:
    """What of a stream is not kept any more, and was before."""
    known = before.streams[name].holes if name in before.streams else ()
    return (hole for hole in after.streams[name].holes if hole not in known)


def _event(fact: AnyFact, name: str, **data: Any) -> Item:
    return Item(seq=0, ts=fact.at, kind="event", event=name, data=data)


def _standing(run: Run) -> dict[str, Any]:
    standing: dict[str, Any] = {"status": status_of(run)}
    if run.is_over:
        standing |= {"exit_code": run.exit_code, "signal": run.signal, "ended_by": run.ended_by}
    return standing
