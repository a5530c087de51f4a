"""Looks through one stream of a run, forward, each byte once: in small pieces at once, in large ones in a thread."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final, Generic, Protocol, TypeVar

from limpet.engine.reading import read_exactly
from limpet.model.run import Run
from limpet.model.stream import Span, Stream
from limpet.store.blobs import BlobStore

# As much is looked through without leaving the event loop, which that keeps for some ten microseconds.
AT_ONCE_BYTES: Final = 1 << 16
_SLICE_BYTES: Final = 1 << 18
# How far back the beginning of a line is looked for.
_LINE_BACK_BYTES: Final = 1 << 16
# Stands for what was before bytes that are gone: no line begins there, and no word goes on.
_UNKNOWN: Final = b"\0"

Found = TypeVar("Found")


class Scanner(Protocol[Found]):
    """What looks: see `limpet.engine.matching`."""

    @property
    def restart_at(self) -> int: ...
    def feed(self, data: bytes) -> "list[Found]": ...
    def finish(self) -> "list[Found]": ...
    def close(self) -> None: ...


class Passage(Generic[Found]):
    """`look_at` is the run as known, `catch_up` learns more; `begin` makes a scanner, told what its line began with."""

    def __init__(
        self,
        look_at: Callable[[], Run],
        catch_up: Callable[[], None],
        blobs: BlobStore,
        thread: Executor,
        name: str,
        offset: int,
        begin: Callable[[int, bytes], Scanner[Found]],
        *,
        begins_in_thread: bool = False,
    ) -> None:
        """`begins_in_thread`: for a `begin` that may take long."""
        self.position = offset
        # What was given up before it could be looked at.
        self.missed: list[Span] = []
        self._look_at = look_at
        self._catch_up = catch_up
        self._blobs = blobs
        self._thread = thread
        self._name = name
        self._begin = begin
        self._begins_in_thread = begins_in_thread
        self._scanner: Scanner[Found] | None = None
        self._began_at = offset
        # What is before the position on its line, where it is not to be looked up.
        self._before: bytes | None = None
        self._is_finished = False
        # Set to have a scan in the thread come to its end early.
        self._is_given_up = False

    async def go_on(self, *, to_first: bool = False) -> list[Found]:
        """What is found in all that is there by now; with `to_first` no further than where something was found."""
        found: list[Found] = []
        while not (found and to_first) and not self._is_finished:
            stream = self._stream()
            if (hole := stream.hole_at(self.position)) is not None:
                self._pass_over((self.position, hole[1]))
                continue
            part_end = min((part for part in stream.parts if part > self._began_at), default=-1)
            end = min(part_end if part_end >= 0 else stream.bytes, stream.kept_end(self.position), self._limit(stream))
            if self.position < end:
                found += await self._look(end, to_first=to_first)
            elif self.position == part_end:
                # No match goes on from one attempt to the next.
                found += self._finish_scanner()
                self._start_at(part_end, b"")
            else:
                if not self._begins_in_thread:
                    self._set_out()  # what comes next is looked at the sooner
                break
        return found

    def finish(self) -> list[Found]:
        """What else is found because nothing more will come. To be called once all that is there was looked at."""
        self._is_finished = True
        return self._finish_scanner()

    def _finish_scanner(self) -> list[Found]:
        """One that was never made has seen nothing."""
        found = self._scanner.finish() if self._scanner is not None else []
        self.close()
        return found

    @property
    def restart_at(self) -> int:
        """From here on another passage finds what this one has still to find."""
        return self.position if self._scanner is None else self._scanner.restart_at

    def pass_over_the_rest(self) -> None:
        """For bytes that cannot be read: all that is there by now counts as missed."""
        stream = self._stream()
        self._pass_over((self.position, max(self.position, self._limit(stream))))

    def close(self) -> None:
        if self._scanner is not None:
            self._scanner.close()

    def _stream(self) -> Stream:
        return self._look_at().streams.get(self._name) or Stream()

    def _limit(self, stream: Stream) -> int:
        """What survivors write after the end is in the spool alone."""
        return stream.bytes if stream.ended_at is None else stream.ended_at

    async def _look(self, end: int, *, to_first: bool) -> list[Found]:
        start, known_holes = self.position, self._stream().holes
        begins_elsewhere = self._scanner is None and self._begins_in_thread
        if end - start <= AT_ONCE_BYTES and not begins_elsewhere:
            found = self._scan(end, to_first=to_first)
        else:
            found = await self._scan_in_thread(end, to_first=to_first)
        self._catch_up()  # a hole is told before it is made
        hole = next((hole for hole in self._stream().holes if hole[1] > start and hole[0] < self.position), None)
        if hole is None or hole in known_holes:
            return found
        # Given up while it was read: what was seen of it may have been nothing.
        self.position = max(start, hole[0])
        self._pass_over((self.position, hole[1]))
        return []

    async def _scan_in_thread(self, end: int, *, to_first: bool) -> list[Found]:
        scan = asyncio.get_running_loop().run_in_executor(self._thread, lambda: self._scan(end, to_first=to_first))
        try:
            return await asyncio.shield(scan)
        except asyncio.CancelledError:
            # Whoever cancelled will close the scanner, which the thread must have let go of by then.
            self._is_given_up = True
            await asyncio.wait((scan,))
            raise

    def _scan(self, end: int, *, to_first: bool) -> list[Found]:
        found: list[Found] = []
        run = self._look_at()
        scanner = self._set_out()
        while self.position < end and not (found and to_first) and not self._is_given_up:
            upto = min(end, self.position + _SLICE_BYTES)
            data = read_exactly(run, self._blobs, self._name, self.position, upto)
            found += scanner.feed(data)
            self.position = upto
        return found

    def _set_out(self) -> Scanner[Found]:
        if self._scanner is None:
            self._scanner = self._begin(self.position, self._line_before() if self._before is None else self._before)
        return self._scanner

    def _pass_over(self, gone: Span) -> None:
        self.missed.append(gone)
        self._start_at(gone[1], _UNKNOWN)

    def _start_at(self, offset: int, line_before: bytes) -> None:
        self.close()
        self.position = self._began_at = offset
        self._scanner, self._before = None, line_before

    def _line_before(self) -> bytes:
        stream = self._stream()
        part = max((part for part in stream.parts if part <= self.position), default=0)
        hole_end = max((end for _, end in stream.holes if end <= self.position), default=0)
        low = max(part, hole_end, self.position - _LINE_BACK_BYTES)
        before = (
            read_exactly(self._look_at(), self._blobs, self._name, low, self.position) if low < self.position else b""
        )
        line = before[before.rfind(b"\n") + 1 :]
        return _UNKNOWN + line if len(line) == len(before) and low > part else line
