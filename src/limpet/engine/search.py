"""Looks through the output of runs for a text or a pattern: in a thread, in slices of time, never all in memory."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Executor
from typing import Final

import msgspec

from limpet.engine import clock
from limpet.engine.matching import Pattern
from limpet.engine.reading import read_exactly
from limpet.engine.shown import line_around
from limpet.model.errors import Refusal
from limpet.model.run import Run
from limpet.model.stream import Stream
from limpet.store.blobs import BlobStore

_CHUNK_BYTES: Final = 1 << 20
# How long one search keeps a thread before others have a turn.
_SLICE_S: Final = 0.2
# How far back the beginning of a line is looked for.
_LINE_BACK_BYTES: Final = 1 << 16
MOST_SKIPPED: Final = 1000


class Span(msgspec.Struct, frozen=True):
    """Bytes of a stream."""

    start: int
    end: int


class Found(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One match, and the line that it stands on; `truncated` where that is longer than is shown."""

    run_id: str
    stream: str
    span: Span
    line: str
    truncated: bool = False


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes that could not be looked at: `gone` (given up to hold a bound) or `tampered` (changed from outside)."""

    run_id: str
    stream: str
    span: Span
    reason: str


class Place(msgspec.Struct, frozen=True):
    """Where a search goes on."""

    run_id: str
    stream: str
    offset: int


class Search:
    """One search, through one run after the other, until it has found enough or its time is over."""

    def __init__(self, pattern: Pattern, blobs: BlobStore, stream: str | None, limit: int, within_s: float) -> None:
        self.hits: list[Found] = []
        self.skipped: list[Skipped] = []
        # How many more were skipped than are named.
        self.skipped_more = 0
        self.searched_bytes = 0
        # Where it stopped, if it did before the end.
        self.stopped_at: Place | None = None
        self._pattern = pattern
        self._blobs = blobs
        self._stream = stream
        self._limit = limit
        self._until_s = clock.passed_s() + within_s

    async def go(self, thread: Executor, runs: AsyncIterator[Run], place: Place | None) -> None:
        """Looks through the runs, the first of them from that place on."""
        loop = asyncio.get_running_loop()
        async for run in runs:
            if not any(stream.bytes for stream in run.streams.values()):
                continue
            looking = self._look_through(run, place if place is not None and place.run_id == run.run_id else None)
            while await loop.run_in_executor(thread, _slice, looking):
                pass
            if self.stopped_at is not None:
                return

    def _look_through(self, run: Run, place: Place | None) -> Iterator[None]:
        """Its streams by name. Yields now and then."""
        for name in sorted(run.streams):
            if self._stream not in (None, name) or (place is not None and name < place.stream):
                continue
            begin = place.offset if place is not None and name == place.stream else 0
            for low, high in _kept_pieces(run.streams[name], begin):
                try:
                    yield from self._look(run, name, max(low, begin), low, high)
                except Refusal:
                    self._skip(run, name, max(low, begin), high, "tampered")
                if self.stopped_at is not None:
                    return
            for start, end in run.streams[name].holes:
                if end > begin:
                    self._skip(run, name, start, end, "gone")

    def _look(self, run: Run, name: str, start: int, low: int, high: int) -> Iterator[None]:
        """One piece without a gap, of one attempt."""
        left = self._limit - len(self.hits) + 1  # one more than is told: whether there is more is known, not guessed
        scanner = self._pattern.scanner(start, self._line_before(run, name, start, low), most_hits=left)
        try:
            at = start
            while at < high:
                if clock.passed_s() > self._until_s:
                    self.stopped_at = Place(run.run_id, name, scanner.restart_at)
                    return
                data = read_exactly(run, self._blobs, name, at, min(high, at + _CHUNK_BYTES))
                at += len(data)
                self.searched_bytes += len(data)
                if self._take(run, name, [(hit.start, hit.end) for hit in scanner.feed(data)]):
                    return
                yield
            self._take(run, name, [(hit.start, hit.end) for hit in scanner.finish()])
        finally:
            scanner.close()

    def _take(self, run: Run, name: str, spans: list[tuple[int, int]]) -> bool:
        """Whether there is more than is to be told."""

        def read(stream: str, low: int, high: int) -> bytes:
            return read_exactly(run, self._blobs, stream, low, high)

        for start, end in spans:
            if len(self.hits) == self._limit:
                last = self.hits[-1]
                self.stopped_at = Place(last.run_id, last.stream, last.span.end)
                return True
            line = line_around(run, name, start, end, read)
            found = Found(run_id=run.run_id, stream=name, span=Span(start, end), line=line.text, truncated=line.is_cut)
            self.hits.append(found)
        return False

    def _line_before(self, run: Run, name: str, start: int, low: int) -> bytes:
        """What stands before `start` on its line; a NUL for what is not known of it, which ends no line or word."""
        back = max(low, start - _LINE_BACK_BYTES)
        before = read_exactly(run, self._blobs, name, back, start)
        line = before[before.rfind(b"\n") + 1 :]
        is_known = len(line) < len(before) or back in run.streams[name].parts
        return line if is_known else b"\0" + line

    def _skip(self, run: Run, name: str, start: int, end: int, reason: str) -> None:
        if len(self.skipped) < MOST_SKIPPED:
            self.skipped.append(Skipped(run_id=run.run_id, stream=name, span=Span(start, end), reason=reason))
        else:
            self.skipped_more += 1


def _kept_pieces(stream: Stream, begin: int) -> Iterator[tuple[int, int]]:
    """What is kept without a gap, attempt by attempt, as far as it ends behind `begin`."""
    ends = (*stream.parts[1:], stream.bytes)
    for part, part_end in zip(stream.parts, ends, strict=True):
        low = part
        for start, end in sorted(stream.holes):
            if part <= start < part_end:
                if max(low, begin) < start:
                    yield low, start
                low = end
        if max(low, begin) < part_end:
            yield low, part_end


def _slice(looking: Iterator[None]) -> bool:
    """Goes on for a while; whether there is more."""
    until_s = clock.passed_s() + _SLICE_S
    return any(clock.passed_s() > until_s for _ in looking)
