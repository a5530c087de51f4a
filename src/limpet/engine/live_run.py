"""A run that may still change: its files, its keeper, its state, and those who wait for it."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final

from limpet.engine.link import KeeperLink
from limpet.model.facts import AnyFact, DaemonFact, Prepared, Stdin, Synced, Witness, Wrote
from limpet.model.merge import merge
from limpet.model.run import Run, fold
from limpet.store.journals import DaemonJournal, JournalReader
from limpet.store.run_directory import RunDirectory
from limpet_keeper import system

# How long the keeper goes on telling of output after the last reader left: the next one is often near.
HEARD_FOR_S: Final = 1.0


class LiveRun:
    """The one place where a run's facts arrive. `on_change` hears of each change of its state."""

    def __init__(self, run: Run, directory: RunDirectory, on_change: Callable[["LiveRun"], None]) -> None:
        self.run = run
        self.directory = directory
        self.on_change = on_change
        self.link: KeeperLink | None = None
        self._witness: Witness | None = None
        self.keeper_journal = JournalReader(directory.keeper_journal)
        self.daemon_journal = DaemonJournal(directory.daemon_journal)
        self._waiting: set[asyncio.Future[None]] = set()
        self._listeners = 0
        self._heard_until: asyncio.TimerHandle | None = None

    # Facts.

    def recall(self) -> None:
        """Takes what both journals hold, from the first record on: the run as far as files tell."""
        self.keeper_journal.close()
        self.daemon_journal.close()
        known = JournalReader(self.daemon_journal.path)
        asked = known.read_new()
        self.daemon_journal = DaemonJournal(known.path, known)
        known.close()
        self.keeper_journal = JournalReader(self.keeper_journal.path)
        self.run = Run(run_id=self.run.run_id)
        for fact in merge(self.keeper_journal.read_new(), asked):
            self._know(fact)

    def ask(self, make: Callable[[int, int, int], DaemonFact]) -> None:
        """Records what was asked: `make` gets its number, the time, and the keeper's record it stands behind."""
        fact = make(self.daemon_journal.records + 1, time.time_ns() // 1_000_000, self.keeper_journal.records)
        self.daemon_journal.append(fact)
        self._take([fact])

    def catch_up(self) -> None:
        """Takes what the keeper wrote since the last time."""
        self._take(self.keeper_journal.read_new())

    def _take(self, facts: list[AnyFact]) -> None:
        if not facts:
            return
        for fact in facts:
            self._know(fact)
        self.wake_all()
        if not all(isinstance(fact, Wrote | Stdin | Synced) for fact in facts):
            self.on_change(self)

    def _know(self, fact: AnyFact) -> None:
        self.run = fold(self.run, fact)
        if isinstance(fact, Prepared):
            self._witness = fact.keeper

    # The keeper.

    def attach(self, link: KeeperLink, on_lost: Callable[["LiveRun"], None]) -> None:
        """From now on the keeper's wakeups are heard."""
        self.link = link
        link.on_wake = self.catch_up
        link.on_lost = lambda: on_lost(self)
        if not link.is_open:
            asyncio.get_running_loop().call_soon(link.on_lost)

    def detach(self) -> None:
        """Lets go of the keeper and of the open files; the run itself is not touched."""
        if self.link is not None:
            self.link.on_lost = lambda: None
            self.link.close()
            self.link = None
        if self._heard_until is not None:
            self._heard_until.cancel()
        self.keeper_journal.close()
        self.daemon_journal.close()

    @property
    def is_settled(self) -> bool:
        """Whether nothing more can come: no keeper, and an end."""
        return self.link is None and self.run.is_over

    def is_unresponsive(self) -> bool:
        """Whether its keeper stands still because somebody stopped it: its run goes on, and all comes when it does."""
        if self._witness is None or self.is_settled:
            return False
        return system.is_stopped(self._witness.pid, self._witness.start_time)

    # Waiting.

    async def wait_until(self, holds: Callable[[Run], bool], within_s: float | None, *, output: bool = False) -> bool:
        """Whether `holds` came true in time. With `output` it is asked after every byte, else after every state."""
        if output:
            self._listen()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    while not holds(self.run):
                        if self.is_settled:
                            return False
                        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                        self._waiting.add(future)
                        try:
                            await future
                        finally:
                            self._waiting.discard(future)
            return holds(self.run)
        finally:
            if output:
                self._unlisten()

    def wake_all(self) -> None:
        """Lets every waiter look again."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    def _listen(self) -> None:
        self._listeners += 1
        if self._heard_until is not None:
            self._heard_until.cancel()
            self._heard_until = None
        elif self._listeners == 1 and self.link is not None and self.link.is_open:
            self.link.post("wake", on="every")
            self.catch_up()  # what was written before it heard that is in the journal

    def _unlisten(self) -> None:
        self._listeners -= 1
        if not self._listeners:
            self._heard_until = asyncio.get_running_loop().call_later(HEARD_FOR_S, self._stop_listening)

    def _stop_listening(self) -> None:
        self._heard_until = None
        if self.link is not None and self.link.is_open:
            self.link.post("wake", on="state")
