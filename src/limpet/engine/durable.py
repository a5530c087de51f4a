"""Makes records durable in groups: whoever comes while the disk works shares the next round."""

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from limpet.store.journals import DaemonJournal
from limpet.store.run_directory import sync_directory

Work = tuple[DaemonJournal, asyncio.Future[None]]
Done = tuple[asyncio.Future[None], Exception | None]


class Durable:
    """One thread that syncs; the event loop never waits for a disk."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._loop = asyncio.get_running_loop()
        self._wanted: list[Work] = []
        self._turn = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="limpet-durable", daemon=True)
        self._thread.start()

    def begin(self, journal: DaemonJournal) -> asyncio.Future[None]:
        """Done once the journal and the name of its run are on disk; an error is the caller's."""
        future: asyncio.Future[None] = self._loop.create_future()
        with self._turn:
            self._wanted.append((journal, future))
            self._turn.notify()
        return future

    def _run(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._wanted or self._closing)
                if not self._wanted:
                    return
                batch, self._wanted = self._wanted, []
            self._loop.call_soon_threadsafe(resolve, sync_records(batch, self._runs))
            sync_names(batch)

    def close(self) -> None:
        with self._turn:
            self._closing = True
            self._turn.notify()
        self._thread.join()


def sync_records(batch: Sequence[Work], runs: Path) -> list[Done]:
    """Puts the journals and the names of their runs on disk; what is to be answered."""
    done = [(future, _error_of(journal.sync)) for journal, future in batch]
    names = _error_of(partial(sync_directory, runs))
    return [(future, error or names) for future, error in done]


def sync_names(batch: Iterable[Work]) -> None:
    """Behind the answers: the name of the keeper's directory, which was moved into the run's."""
    for journal, _ in batch:
        _error_of(partial(sync_directory, journal.path.parent))


def _error_of(sync: Callable[[], None]) -> Exception | None:
    """The thread goes on whatever happens: who asked is told."""
    try:
        sync()
    except Exception as error:  # noqa: BLE001
        return error
    return None


def resolve(done: Iterable[Done]) -> None:
    """Answers those who asked."""
    for future, error in done:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
