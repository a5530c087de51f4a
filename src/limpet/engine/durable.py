"""Makes records durable in groups: whoever comes while the disk works shares the next round."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

from limpet.store.journals import DaemonJournal
from limpet.store.run_directory import sync_directory


class Record:
    """What must be on disk for one answer: the record and its name, at the same time. Whichever comes last tells."""

    def __init__(self, journal: DaemonJournal, future: asyncio.Future[None]) -> None:
        self.journal = journal
        self.future = future
        self.syncs_left = 2
        self.error: Exception | None = None


Synced = tuple[Record, Exception | None]


class Durable:
    """Two threads that sync, one what was written, one under which name; the event loop never waits for a disk."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._loop = asyncio.get_running_loop()
        self._unwritten: list[Record] = []
        self._unnamed: list[Record] = []
        self._turn = threading.Condition()
        self._closing = False
        self._threads = [
            threading.Thread(target=self._sync_records, name="limpet-durable", daemon=True),
            threading.Thread(target=self._sync_names, name="limpet-durable-names", daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def begin(self, journal: DaemonJournal) -> asyncio.Future[None]:
        """Done once the journal and the name of its run are on disk; an error is the caller's."""
        record = Record(journal, self._loop.create_future())
        with self._turn:
            self._unwritten.append(record)
            self._unnamed.append(record)
            self._turn.notify_all()
        return record.future

    def _sync_records(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._unwritten or self._closing)
                batch, self._unwritten = self._unwritten, []
            if not batch:
                return
            self._tell(sync_records(batch))

    def _sync_names(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._unnamed or self._closing)
                batch, self._unnamed = self._unnamed, []
            if not batch:
                return
            self._tell(sync_names(batch, self._runs))

    def _tell(self, synced: list[Synced]) -> None:
        with self._turn:
            done = settled(synced)
        if done:
            self._loop.call_soon_threadsafe(resolve, done)

    def close(self) -> None:
        with self._turn:
            self._closing = True
            self._turn.notify_all()
        for thread in self._threads:
            thread.join()


def sync_records(batch: list[Record]) -> list[Synced]:
    """Puts the journals on disk."""
    return [(record, _error_of(record.journal.sync)) for record in batch]


def sync_names(batch: list[Record], runs: Path) -> list[Synced]:
    """Puts the names of the runs on disk, all at once."""
    error = _error_of(partial(sync_directory, runs))
    return [(record, error) for record in batch]


def settled(synced: list[Synced]) -> list[Record]:
    """Those of which now both are on disk, or will not be."""
    for record, error in synced:
        record.error = record.error or error
        record.syncs_left -= 1
    return [record for record, _ in synced if not record.syncs_left]


def _error_of(sync: Callable[[], None]) -> Exception | None:
    """The thread goes on whatever happens: who asked is told."""
    try:
        sync()
    except Exception as error:  # noqa: BLE001
        return error
    return None


def resolve(done: list[Record]) -> None:
    """Answers those who asked."""
    for record in done:
        if record.future.cancelled():
            continue
        if record.error is None:
            record.future.set_result(None)
        else:
            record.future.set_exception(record.error)
