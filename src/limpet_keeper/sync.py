"""Puts spools on disk beside the keeper's loop: a slow disk holds up nothing but the news that it is done."""

from __future__ import annotations

import _thread
import os

from limpet_keeper import system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from limpet_keeper.journal import Journal
    from limpet_keeper.spool import Spool
    from limpet_keeper.timers import Timers

    Work = list[tuple[str, int, Callable[[], None]]]
    Done = tuple[str, int, OSError | None]


class Syncer:
    """One thread, started when first needed; one batch at a time."""

    def __init__(self, spools: list[Spool], journal: Journal, timers: Timers, ring: Callable[[], object]) -> None:
        """`ring` is called, from the thread, when a batch is done."""
        self.spools = spools
        self.journal = journal
        self.timers = timers
        self.every_ms = 0
        self._ring = ring
        self._busy = False
        self._work: Work = []
        self._done: list[Done] = []
        self._turn = _thread.allocate_lock()
        self._started = False

    def plan(self) -> None:
        """Sees to a sync within the interval."""
        if self.every_ms and not self._busy and self.timers.left_s("sync") is None:
            self.timers.set("sync", self.every_ms / 1000, self.begin)

    def is_clean(self) -> bool:
        """Whether all that can be made durable is."""
        return not any(spool.unsynced() for spool in self.spools)

    def begin(self) -> None:
        """Starts a batch of what is not on disk yet."""
        self.timers.clear("sync")
        if self._busy or self.is_clean():
            return
        journal_fd = self.journal.fd
        self._work = [(spool.name, spool.size, spool.sync) for spool in self.spools if spool.unsynced()]
        self._work.append(("journal", self.journal.size, lambda: os.fdatasync(journal_fd)))
        self._busy = True
        if self._started:
            self._turn.release()
        else:
            self._started = True
            self._turn.acquire()
            _thread.start_new_thread(self._run, ())

    def _run(self) -> None:
        while self._work:
            for name, end, call in self._work:
                try:
                    call()
                    self._done.append((name, end, None))
                except OSError as error:
                    self._done.append((name, end, error))
            self._ring()
            self._turn.acquire()

    def stop(self) -> None:
        """Lets the thread end: there will be no batch any more."""
        if self._started:
            self._work = []
            self._turn.release()

    def settle(self) -> bool:
        """Writes down the results of a batch; True when one was done. A failed range is never called durable again."""
        if not self._busy or len(self._done) < len(self._work):
            return False
        self._busy = False
        done, self._done = self._done, []
        synced: dict[str, int] = {}
        for name, end, error in done:
            spool = next((each for each in self.spools if each.name == name), None)
            if error is not None:
                start = spool.synced if spool is not None else 0
                self.journal.append("sync_failed", stream=name, start=start, end=end, errno=system.error_name(error))
                if spool is not None:
                    spool.unsafe = True
            elif spool is not None:
                spool.synced = synced[name] = end
        if synced:
            self.journal.append("synced", streams=synced)
        return True
