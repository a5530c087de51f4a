"""Waits for the first of several things to hold, for any of several runs; what holds already counts."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final, Protocol

import msgspec

from limpet.engine import clock
from limpet.engine.live_run import LiveRun
from limpet.engine.matching import Hit, Pattern
from limpet.engine.passage import Passage
from limpet.engine.ports import listens
from limpet.store.blobs import BlobStore

# How soon a port that is not listened on is looked for again: the kernel tells nobody of it.
PORT_AGAIN_S: Final = 0.05


class Exit(msgspec.Struct, frozen=True):
    """The run has ended."""


class Match(msgspec.Struct, frozen=True):
    """The pattern matches behind the place from which the run is looked at; in any stream, unless one is named."""

    pattern: Pattern
    stream: str | None = None


class Quiet(msgspec.Struct, frozen=True):
    """Nothing was said for so long."""

    quiet_ms: int


class Port(msgspec.Struct, frozen=True):
    """A process of the run listens there."""

    port: int


class Beyond(msgspec.Struct, frozen=True):
    """The run has more than so many items, or a stream more than so many bytes."""

    stream: str | None
    count: int


class Told(msgspec.Struct, frozen=True):
    """What the run's facts tell, by somebody who follows them."""

    holds: Callable[[], bool]


Condition = Exit | Match | Quiet | Port | Beyond | Told
Places = Mapping[str, Mapping[str, int]]


class Matched(msgspec.Struct, frozen=True):
    """What a pattern matched, in which stream."""

    stream: str
    hit: Hit


class Met(msgspec.Struct, frozen=True):
    """Which condition held, by its place among those asked for, and for which run."""

    condition: int
    live: LiveRun
    matched: Matched | None = None


class _Look(Protocol):
    """Looks after one condition of one run."""

    live: LiveRun
    condition: int
    # Whether it may hold later; meaningful after a look.
    can_come: bool
    # When to look again although nothing changed, by the monotonic clock.
    again_at: float | None

    async def look(self) -> Met | None: ...
    def close(self) -> None: ...


class Waiting:
    """One wait. `first` may be asked again: it goes on where it stood."""

    def __init__(
        self,
        lives: Sequence[LiveRun],
        conditions: Sequence[Condition],
        places: Places,
        blobs: BlobStore,
        thread: Executor,
    ) -> None:
        self._lives = lives
        self._hears = not all(isinstance(each, Exit) for each in conditions)
        looks = [
            _look_for(live, place, condition, places.get(live.run.run_id, {}), blobs, thread)
            for live in lives
            for place, condition in enumerate(conditions)
        ]
        self._matches = [each for each in looks if isinstance(each, _MatchLook)]
        self._others = [each for each in looks if not isinstance(each, _MatchLook)]

    @property
    def can_come(self) -> bool:
        """Whether anything that was asked for may still hold."""
        return any(each.can_come for each in self._all())

    async def first(self, within_s: float) -> Met | None:
        """What holds first; None when nothing did in time, or nothing can any more."""
        deadline = clock.passed_s() + within_s
        loop = asyncio.get_running_loop()
        with contextlib.ExitStack() as heard:
            if self._hears:
                for live in self._lives:
                    heard.enter_context(live.heard())
            while True:
                change: asyncio.Future[None] = loop.create_future()
                for live in self._lives:
                    live.tell(change)
                try:
                    met = await self._look()
                    if met is not None or not self.can_come:
                        return met
                    now = clock.passed_s()
                    if now >= deadline:
                        return None
                    again = min([deadline, *(each.again_at for each in self._others if each.again_at is not None)])
                    timer = loop.call_later(again - now, _let_look, change)
                    try:
                        await change
                    finally:
                        timer.cancel()
                finally:
                    for live in self._lives:
                        live.tell_no_more(change)

    def _all(self) -> "list[_Look]":
        return [*self._matches, *self._others]

    async def _look(self) -> Met | None:
        """What was said stands before the end; of what was said in one stream, what came first."""
        met = [found for each in self._matches if (found := await each.look()) is not None]
        if met:
            return min((each for each in met if _is_beside(each, met[0])), key=_end_of)
        for each in self._others:
            found = await each.look()
            if found is not None:
                return found
        return None

    def looked(self, live: LiveRun) -> dict[str, int]:
        """How far each stream of the run was looked through for all patterns."""
        positions: dict[str, int] = {}
        for each in self._matches:
            if each.live is live:
                for name, position in each.positions().items():
                    positions[name] = min(position, positions.get(name, position))
        return positions

    def close(self) -> None:
        for each in self._all():
            each.close()


def _let_look(change: asyncio.Future[None]) -> None:
    if not change.done():
        change.set_result(None)


def _is_beside(one: Met, other: Met) -> bool:
    """Whether both stand in one stream, so that one came first."""
    assert one.matched is not None
    assert other.matched is not None
    return one.live is other.live and one.matched.stream == other.matched.stream


def _end_of(met: Met) -> int:
    assert met.matched is not None
    return met.matched.hit.end


def _look_for(
    live: LiveRun, place: int, condition: Condition, from_: Mapping[str, int], blobs: BlobStore, thread: Executor
) -> _Look:
    match condition:
        case Match():
            return _MatchLook(live, place, condition, from_, blobs, thread)
        case Quiet():
            return _QuietLook(live, place, condition)
        case Port():
            return _PortLook(live, place, condition)
        case Exit() | Beyond() | Told():
            return _StateLook(live, place, condition)


class _StateLook:
    """For what the run's state tells."""

    again_at: float | None = None

    def __init__(self, live: LiveRun, place: int, condition: Exit | Beyond | Told) -> None:
        self.live = live
        self.condition = place
        self.can_come = True
        self._wanted = condition

    async def look(self) -> Met | None:
        run, wanted = self.live.run, self._wanted
        if isinstance(wanted, Exit):
            holds = run.is_over
        elif isinstance(wanted, Told):
            holds = wanted.holds()
        elif wanted.stream is None:
            holds = run.last_seq > wanted.count
        else:
            holds = wanted.stream in run.streams and run.streams[wanted.stream].bytes > wanted.count
        self.can_come = not self.live.is_settled
        return Met(self.condition, self.live) if holds else None

    def close(self) -> None:
        """Nothing is held."""


class _MatchLook:
    """A passage through each stream that is looked at."""

    again_at: float | None = None

    def __init__(
        self,
        live: LiveRun,
        place: int,
        condition: Match,
        from_: Mapping[str, int],
        blobs: BlobStore,
        thread: Executor,
    ) -> None:
        self.live = live
        self.condition = place
        self.can_come = True
        self._wanted = condition
        self._from = from_
        self._blobs = blobs
        self._thread = thread
        self._passages: dict[str, Passage[Hit]] = {}
        self._is_done: set[str] = set()

    async def look(self) -> Met | None:
        run = self.live.run
        is_over = run.is_over
        for name in [self._wanted.stream] if self._wanted.stream else list(run.streams):
            if name not in run.streams or name in self._is_done:
                continue
            passage = self._passages.get(name) or self._set_out(name)
            hits = await passage.go_on(to_first=True)
            if not hits and is_over:
                hits = passage.finish()
                self._is_done.add(name)
            if hits:
                return Met(self.condition, self.live, Matched(name, hits[0]))
        self.can_come = not is_over
        return None

    def positions(self) -> dict[str, int]:
        """From where on each stream is still to be looked through: the beginning of a match may lie before its end."""
        return {name: passage.restart_at for name, passage in self._passages.items()}

    def _set_out(self, name: str) -> Passage[Hit]:
        offset = self._from.get(name, self.live.run.streams[name].first_kept)
        begin = partial(self._wanted.pattern.scanner, most_hits=1)
        catch_up = self.live.catch_up
        passage = Passage(lambda: self.live.run, catch_up, self._blobs, self._thread, name, offset, begin)
        self._passages[name] = passage
        return passage

    def close(self) -> None:
        for passage in self._passages.values():
            passage.close()


class _QuietLook:
    """By the monotonic clock alone: from when this engine last heard of output, or first looked."""

    def __init__(self, live: LiveRun, place: int, condition: Quiet) -> None:
        self.live = live
        self.condition = place
        self.can_come = True
        self.again_at: float | None = None
        self._quiet_s = condition.quiet_ms / 1000

    async def look(self) -> Met | None:
        run = self.live.run
        if run.is_over and not run.output_open:
            return Met(self.condition, self.live)
        if run.started_at is None:
            self.again_at = None
            return None
        self.again_at = self.live.last_output_s + self._quiet_s
        return Met(self.condition, self.live) if clock.passed_s() >= self.again_at else None

    def close(self) -> None:
        """Nothing is held."""


class _PortLook:
    """Looks again and again."""

    def __init__(self, live: LiveRun, place: int, condition: Port) -> None:
        self.live = live
        self.condition = place
        self.can_come = True
        self.again_at: float | None = None
        self._port = condition.port

    async def look(self) -> Met | None:
        keeper = self.live.run.keeper
        if self.live.is_settled:
            self.can_come, self.again_at = False, None
            return None
        if keeper is not None and await asyncio.to_thread(listens, keeper, self._port):
            return Met(self.condition, self.live)
        self.again_at = clock.passed_s() + PORT_AGAIN_S
        return None

    def close(self) -> None:
        """Nothing is held."""
