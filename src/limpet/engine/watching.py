"""Looks through what a run says, as it comes, for what it is watched for, and writes down what it finds.

Each hit is a fact of the run's own journal, appended before anybody hears of it. Where an engine was killed, the next
one goes on from what is written down: the same bytes give the same hits, and none is written twice. The end of a run
is taken in only when all that was said before it has been looked through.
"""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import Final

from limpet.engine.live_run import LiveRun
from limpet.engine.matching import Hit, Pattern, WatchSet, compile_pattern
from limpet.engine.passage import Passage
from limpet.engine.reading import read_exactly
from limpet.engine.shown import match_text
from limpet.model import facts
from limpet.model.errors import Refusal
from limpet.model.facts import DaemonFact
from limpet.model.run import Run, with_all_bytes
from limpet.model.watch import MATCH_MAX_BYTES, MOST_HITS
from limpet.store.blobs import BlobStore

# After so many bytes it is written down how far all watchers have come: a later engine need not go further back.
PLACE_EVERY_BYTES: Final = 16 << 20
# How soon a fact that the disk refused is tried again.
RECORD_AGAIN_S: Final = 0.5

_Numbered = tuple[int, Hit]


class Watching:
    """The watchers of one attempt of one run."""

    def __init__(self, live: LiveRun, blobs: BlobStore, thread: Executor) -> None:
        self._live = live
        self._blobs = blobs
        self._thread = thread
        self._passages: dict[str, Passage[_Numbered]] = {}
        self._sets: dict[str, _Watchers] = {}
        # What the spools of a dead keeper hold.
        self._sizes: dict[str, int] = {}

    async def follow(self) -> None:
        """Until all of the attempt was looked through: its keeper said that its end comes, or it never began."""
        try:
            with self._live.heard():
                while self._live.run.awaits_watchers:
                    with self._live.next_change() as change:
                        await self._look()
                        if self._live.keeper_journal.is_held or not self._is_any_left():
                            await self._look_to_the_end()
                            self._live.catch_up()
                            return
                        if not self._has_news():
                            await change
        finally:
            self._close()

    async def look_through(self, sizes: dict[str, int]) -> None:
        """For a run whose keeper is dead: all that its spools hold, whether that was written down or not."""
        self._sizes = sizes
        try:
            await self._look()
            await self._look_to_the_end()
        finally:
            self._close()

    def _run(self) -> Run:
        return with_all_bytes(self._live.run, 0, self._sizes) if self._sizes else self._live.run

    def _is_any_left(self) -> bool:
        return not all(known.is_over for known in self._live.run.watching)

    def _has_news(self) -> bool:
        return self._live.keeper_journal.is_held or any(
            stream.bytes > self._passage(name).position
            for name, stream in self._run().streams.items()
            if self._is_heard(name)
        )

    def _is_heard(self, name: str) -> bool:
        run = self._live.run
        return any(
            watch.hears(name) and not known.is_over for watch, known in zip(run.watch, run.watching, strict=True)
        )

    async def _look(self) -> None:
        for name in self._run().streams:
            if self._is_heard(name):
                passage = self._passage(name)
                try:
                    found = await passage.go_on()
                except (OSError, Refusal):
                    found = []
                    passage.pass_over_the_rest()
                await self._tell(name, found)
                await self._tell_missed(name, passage)
                await self._tell_place(name, passage)

    async def _look_to_the_end(self) -> None:
        for name in self._run().streams:
            if self._is_heard(name):
                await self._tell(name, self._passage(name).finish())
        streams = {name: passage.position for name, passage in self._passages.items()}
        await self._record(lambda n, at, after: facts.Looked(n=n, at=at, after=after, streams=streams, whole=True))

    def _passage(self, name: str) -> Passage[_Numbered]:
        passage = self._passages.get(name)
        if passage is None:
            begin = min(self._places(name, 0).values())
            set_out = partial(self._set_out, name)
            passage = Passage(
                self._run, self._live.catch_up, self._blobs, self._thread, name, begin, set_out, begins_in_thread=True
            )
            self._passages[name] = passage
        return passage

    def _places(self, name: str, offset: int) -> dict[int, int]:
        """Where each watcher that still looks at the stream goes on: behind its last hit."""
        run = self._run()
        offset = max(offset, run.looked.get(name, 0), run.streams[name].parts[-1])
        return {
            place: max(offset, known.ends.get(name, 0))
            for place, (watch, known) in enumerate(zip(run.watch, run.watching, strict=True))
            if watch.hears(name) and not known.is_over
        }

    def _set_out(self, name: str, offset: int, line_before: bytes) -> "_Watchers":
        places = self._places(name, offset)
        watch = self._live.run.watch
        patterns = {place: compile_pattern(watch[place].regex, watch[place].match_type) for place in places}
        self._sets[name] = _Watchers(patterns, places, line_before)
        return self._sets[name]

    async def _tell(self, name: str, found: Sequence[_Numbered]) -> None:
        for place, hit in found:
            known = self._live.run.watching[place]
            if known.is_over:
                continue
            if known.hits >= MOST_HITS:
                await self._record(
                    lambda n, at, after, place=place: facts.Suppressed(n=n, at=at, after=after, watcher=place)
                )
            else:
                await self._record(self._hit_fact(name, place, hit))
            if self._live.run.watching[place].is_over:
                for each in self._sets.values():
                    each.drop(place)

    def _hit_fact(self, name: str, place: int, hit: Hit) -> Callable[[int, int, int], DaemonFact]:
        data = read_exactly(self._run(), self._blobs, name, hit.start, min(hit.end, hit.start + MATCH_MAX_BYTES))
        match, _ = match_text(data, hit.end - hit.start)
        return lambda n, at, after: facts.Hit(
            n=n,
            at=at,
            after=after,
            watcher=place,
            stream=name,
            start=hit.start,
            end=hit.end,
            match=match,
            groups=hit.groups or None,
        )

    async def _tell_missed(self, name: str, passage: Passage[_Numbered]) -> None:
        for start, end in passage.missed:
            await self._record(
                lambda n, at, after, gone=(start, end): facts.Missed(
                    n=n, at=at, after=after, stream=name, start=gone[0], end=gone[1]
                )
            )
        passage.missed.clear()

    async def _tell_place(self, name: str, passage: Passage[_Numbered]) -> None:
        place = passage.restart_at
        if place - self._live.run.looked.get(name, 0) >= PLACE_EVERY_BYTES:
            await self._record(lambda n, at, after: facts.Looked(n=n, at=at, after=after, streams={name: place}))

    async def _record(self, make: Callable[[int, int, int], DaemonFact]) -> None:
        """Not lost while the disk takes nothing: it is tried until it does."""
        while True:
            try:
                self._live.ask(make)
            except OSError:
                await asyncio.sleep(RECORD_AGAIN_S)
            else:
                return

    def _close(self) -> None:
        for passage in self._passages.values():
            passage.close()
        self._passages.clear()
        self._sets.clear()


class _Watchers:
    """A set of patterns, each under its watcher's place."""

    def __init__(self, patterns: dict[int, Pattern], places: dict[int, int], line_before: bytes) -> None:
        self._watchers = list(patterns)
        self._set = WatchSet(list(patterns.values()), [places[each] for each in patterns], line_before)

    def feed(self, data: bytes) -> list[_Numbered]:
        return [(self._watchers[number], hit) for number, hit in self._set.feed(data)]

    def finish(self) -> list[_Numbered]:
        return [(self._watchers[number], hit) for number, hit in self._set.finish()]

    def drop(self, watcher: int) -> None:
        if watcher in self._watchers:
            self._set.drop(self._watchers.index(watcher))

    @property
    def restart_at(self) -> int:
        return min((self._set.restart_at(number) for number in range(len(self._watchers))), default=self._set.position)

    def close(self) -> None:
        self._set.close()
