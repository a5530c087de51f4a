"""From the command's output to the spools: reads, writes, tells, holds the bound, and waits while storage refuses."""

from __future__ import annotations

import errno
import mmap
import time

from limpet_keeper import system
from limpet_keeper.journal import JOURNAL_NAME
from limpet_keeper.loop import READ
from limpet_keeper.output import PIPE_BYTES, Stream

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from limpet_keeper.control import Control
    from limpet_keeper.journal import Journal
    from limpet_keeper.loop import Loop
    from limpet_keeper.settings import Settings
    from limpet_keeper.spool import Spool
    from limpet_keeper.sync import Syncer
    from limpet_keeper.timers import Timers

RETRY_S = 0.1
# After a small read that follows closely on another small one, output may gather before the next: far fewer records,
# same bytes.
CLOSE_S = 0.02
GATHER_HEARD_S = 0.0005
# What is read of a stream in one go when the run has ended; a flood of what it left behind waits its turn.
READS_AT_ONCE = 8
# How much is written between two looks at the free space.
ROOM_CHECK_BYTES = 1 << 20
# The bound is held in steps of this share of it.
STEPS_PER_BOUND = 64
MIN_STEP_BYTES = 16 << 10


class Storage:
    """The streams of the run and the spools they go to."""

    def __init__(
        self,
        spools: list[Spool],
        journal: Journal,
        control: Control,
        loop: Loop,
        timers: Timers,
        syncer: Syncer,
    ) -> None:
        self.spools = spools
        self.directory_fd = -1
        self.journal = journal
        self.control = control
        self.loop = loop
        self.timers = timers
        self.syncer = syncer
        self.streams: list[Stream] = []
        self.stalled: dict[str, Any] | None = None
        # Whether output may be left to gather: not once the main process has ended.
        self.may_gather = True
        # Nor before then: what is short is waited for.
        self.eager_until = 0.0
        self.on_read: Callable[[], None] = lambda: None
        self.on_closed: Callable[[Stream], None] = lambda _stream: None
        self.on_resumed: Callable[[float], None] = lambda _stood_s: None
        self._stalled_at = 0.0
        # Whether the journal says that it stands.
        self._is_told = False
        # Pages of it exist once they are used: most runs say little.
        self._buffer = memoryview(mmap.mmap(-1, PIPE_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        self._output_bytes = 0
        self._marks: list[list[int]] = []
        self._marked_bytes = 0
        self._bytes_since_room_check = ROOM_CHECK_BYTES
        self._head_bytes = self._max_bytes = self._min_free_bytes = self._step_bytes = 0

    def open(self, streams: list[Stream], settings: Settings, directory_fd: int) -> None:
        """Begins to read."""
        self.directory_fd = directory_fd
        self._head_bytes = settings.head_bytes
        self._max_bytes = settings.spool_max_bytes
        self._min_free_bytes = settings.min_free_bytes
        self._step_bytes = max(MIN_STEP_BYTES, self._max_bytes // STEPS_PER_BOUND)
        self.syncer.every_ms = settings.sync_ms
        self.streams = streams
        self.read_on()

    def is_open(self) -> bool:
        """Whether anything still holds a stream."""
        return any(stream.is_open for stream in self.streams)

    def read_on(self) -> None:
        """Watches every stream that is open."""
        for stream in self.streams:
            self.timers.clear(f"gather {stream.name}")
            self._watch(stream, True)

    def _watch(self, stream: Stream, wanted: bool) -> None:
        wanted = wanted and stream.is_open and self.stalled is None
        if wanted and not stream.is_watched:
            self.loop.watch(stream.fd, READ, lambda _mask: self._on_readable(stream))
        elif stream.is_watched and not wanted:
            self.loop.forget(stream.fd)
        stream.is_watched = wanted

    def take_what_is_there(self) -> None:
        """Reads on at once, to the end where nobody holds a stream any more: that saves the loop a turn."""
        for stream in self.streams:
            for _ in range(READS_AT_ONCE):
                if not stream.is_watched or not self._on_readable(stream):
                    break

    def _on_readable(self, stream: Stream) -> bool:
        """Takes one read's worth; whether there may be more at once."""
        if not stream.is_watched or not self._has_room():
            return False
        before = stream.spool.size
        count = stream.read(self._buffer)
        self._wrote(stream.spool, before)
        if stream.spool.error is not None:
            self.stall(stream.spool.error, stream.spool.refused_file())
        elif count == 0:
            self._close(stream)
        elif count:
            self.on_read()
            self._gather(stream, count)
            return True
        return False

    def _gather(self, stream: Stream, count: int) -> None:
        """Lets more come before the next read: hardly where somebody listens, a little longer where nobody does."""
        now = time.monotonic()
        is_close = now - stream.last_read_at < CLOSE_S
        stream.last_read_at = now
        # A flood has a small read now and then: to wait after it would stop the command.
        was_small, stream.was_small = stream.was_small, count < stream.small_bytes
        if not (is_close and was_small and stream.was_small and self.may_gather) or now < self.eager_until:
            return
        if self.control.is_heard():
            self.control.tell(is_quiet=True)
            time.sleep(GATHER_HEARD_S)
        else:
            self._watch(stream, False)
            self.timers.set(f"gather {stream.name}", stream.gather_s, lambda: self._watch(stream, True))

    def _wrote(self, spool: Spool, start: int) -> None:
        """Writes down what went into a spool, and holds the bound."""
        count = spool.size - start
        if not count:
            return
        self.journal.append_wrote(spool.name, start, spool.size, spool.cut())
        # The head is what came first over all streams.
        spool.head_end += max(0, min(count, self._head_bytes - self._output_bytes))
        self._output_bytes += count
        self._bytes_since_room_check += count
        self.syncer.plan()
        self._mark()
        excess = sum(each.kept_bytes() for each in self.spools) - self._max_bytes
        if excess > 0:
            self._give_up(excess)

    def _mark(self) -> None:
        """Remembers now and then how far each spool had come: what is older than a mark goes before what is younger."""
        if self._output_bytes >= self._marked_bytes + self._step_bytes:
            self._marked_bytes = self._output_bytes
            self._marks.append([spool.size for spool in self.spools])

    def _give_up(self, excess: int) -> None:
        """Drops the oldest bytes behind the head over all streams: what is too much, and a step at least."""
        left = max(excess, self._step_bytes)
        while self._marks:
            for spool, end in zip(self.spools, self._marks[0], strict=True):
                hole = spool.hole_up_to(end, left)
                if hole is not None:
                    before = spool.kept_bytes()
                    self.journal.append("hole", stream=spool.name, start=hole[0], end=hole[1])
                    spool.give_up(*hole)
                    left -= before - spool.kept_bytes()
                    if left <= 0:
                        return
            del self._marks[0]

    def _close(self, stream: Stream) -> None:
        self._watch(stream, False)
        stream.close()
        self.journal.append("stream_closed", stream=stream.name)
        self.on_closed(stream)

    def _is_low(self) -> bool:
        return self._min_free_bytes > 0 and system.free_bytes(self.directory_fd) < self._min_free_bytes

    def _has_room(self) -> bool:
        """Whether enough is free; looked at now and then."""
        if self._bytes_since_room_check >= ROOM_CHECK_BYTES:
            self._bytes_since_room_check = 0
            if self._is_low():
                self.stall(OSError(errno.ENOSPC, "below the space that is to stay free"), "free space")
        return self.stalled is None

    def stall(self, error: OSError, file: str) -> None:
        """Reads nothing more until storage takes what waits."""
        if self.stalled is None:
            self.stalled = {"errno": system.error_name(error), "file": file}
            self._stalled_at = time.monotonic()
            for stream in self.streams:
                self._watch(stream, False)
            if file != JOURNAL_NAME:
                self.journal.append("stalled", **self.stalled)
                self._is_told = True
            self.control.tell_stalled(self.stalled)
        self.timers.set("retry", RETRY_S, self._retry)

    def _retry(self) -> None:
        for spool in self.spools:
            before = spool.size
            spool.flush()
            self._wrote(spool, before)
        self.journal.flush()
        if self.journal.error is not None or self._is_low() or any(spool.error for spool in self.spools):
            self.timers.set("retry", RETRY_S, self._retry)
            return
        stalled, self.stalled = self.stalled, None
        self._tell_of_it(stalled)
        self.control.tell_stalled(None)
        self.read_on()
        self.on_resumed(time.monotonic() - self._stalled_at)

    def _tell_of_it(self, stalled: dict[str, Any] | None) -> None:
        """Writes down that it goes on; of a journal that refused also that it did, but never twice."""
        if self._is_told:
            self.journal.append("resumed")
        elif self.journal.last_said == "resumed":
            return
        elif stalled is not None and self.journal.last_said != "sealed":
            self.journal.append("stalled", **stalled)
            self.journal.append("resumed")
        self._is_told = False
