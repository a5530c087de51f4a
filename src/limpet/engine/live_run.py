"""A run that may still change: its files, its keeper, its state, and those who wait for it."""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Generator, Sequence
from typing import Final

from limpet.engine import clock
from limpet.engine.link import KeeperLink
from limpet.model.facts import (
    AnyFact,
    DaemonFact,
    Ended,
    Looked,
    Requeued,
    Stdin,
    Submitted,
    Synced,
    TerminalAsked,
    Wrote,
)
from limpet.model.items import Item, Place, take_in
from limpet.model.merge import merge_attempts
from limpet.model.run import Run
from limpet.store.journals import DaemonJournal, JournalReader
from limpet.store.run_directory import RunDirectory
from limpet_keeper import system

# How long the keeper goes on telling of output after the last reader left: the next one is often near.
HEARD_FOR_S: Final = 1.0
# How soon a journal that could not be read is tried again.
READ_AGAIN_S: Final = 0.2

_log: Final = logging.getLogger("limpet.engine")

OnChange = Callable[["LiveRun", Sequence[Item]], None]


class LiveRun:
    """The one place where a run's facts arrive. `on_change` hears of each change of its state, and of its new items."""

    def __init__(self, run: Run, directory: RunDirectory, on_change: OnChange) -> None:
        self.run = run
        self.directory = directory
        self.on_change = on_change
        self.link: KeeperLink | None = None
        # Whether what is known of it was taken from the files alone.
        self.is_anew = False
        # Whether somebody may want to follow it who does not know of it yet. Asked at each change.
        self.is_followed = True
        self.keeper_journal = JournalReader(directory.keeper_journal)
        self.daemon_journal = DaemonJournal(directory.daemon_journal)
        # When it was last heard of output, or first looked at, by the monotonic clock.
        self.last_output_s = clock.passed_s()
        # Hears of each fact, before those who wait look again.
        self.on_fact: Callable[[AnyFact], None] = lambda _fact: None
        # In the order in which they came.
        self._waiting: dict[asyncio.Future[None], None] = {}
        # What its programs asked their terminal, and nobody has seen to yet.
        self.questions: list[TerminalAsked] = []
        self._listeners = 0
        self._heard_until: asyncio.TimerHandle | None = None
        self._unread_since: asyncio.TimerHandle | None = None

    # Facts.

    def recall(self, known: Run | None = None, place: Place | None = None) -> list[Item]:
        """Takes what all journals hold behind what is known of the run; its new items.

        Where the files do not go on from there, all that they hold is taken anew. The daemon's own journal, which is
        short, is read whole each time: damage to it is not overlooked.
        """
        if known is None or place is None:
            known, place = Run(run_id=self.run.run_id), Place()
        self._close_journals()
        daemon, keeper = JournalReader(self.directory.daemon_journal), self._keeper_journal(place.attempt)
        asked = [fact for fact in daemon.read_new() if fact.n > place.daemon_records]
        goes_on = daemon.chain_at(place.daemon_bytes) == place.daemon_chain
        goes_on = keeper.go_to(place.keeper_bytes, place.keeper_chain, place.keeper_records) and goes_on
        last = place.attempt + sum(isinstance(fact, Requeued) for fact in asked)
        keepers = [keeper, *(self._keeper_journal(attempt) for attempt in range(place.attempt + 1, last + 1))]
        until = Ended if _awaits_watchers(known, asked) else None
        seen = [each.read_new(until if each is keepers[-1] else None) for each in keepers] if goes_on else []
        is_odd = not goes_on or daemon.damaged() or any(each.damaged() for each in keepers)
        self.daemon_journal = DaemonJournal(daemon.path, daemon)
        self.keeper_journal, self.directory.attempt = keepers[-1], last
        for each in (daemon, *keepers[:-1]):
            each.close()
        if is_odd and place != Place():
            return self.recall()
        self.is_anew = place == Place()
        self.run = known
        return [item for fact in merge_attempts(seen, asked) for item in self._know(fact)]

    def begin_attempt(self) -> None:
        """From now on the files of the run's latest attempt are looked at."""
        self.keeper_journal.close()
        self.directory.attempt = self.run.attempt
        self.keeper_journal = self._keeper_journal(self.run.attempt)

    def _keeper_journal(self, attempt: int) -> JournalReader:
        return JournalReader(RunDirectory(self.directory.path, attempt).keeper_journal)

    def ask(self, make: Callable[[int, int, int], DaemonFact]) -> None:
        """Records what was asked: `make` gets its number, the time, and the keeper's record it stands behind."""
        fact = make(self.daemon_journal.records + 1, clock.now_ms(), self.keeper_journal.records)
        self.daemon_journal.append(fact)
        self._take([fact])

    def catch_up(self) -> None:
        """Takes what the keeper wrote since the last time; an end once watchers have seen all that comes before."""
        was_held = self.keeper_journal.is_held
        self._take(self.keeper_journal.read_new(Ended if self.run.awaits_watchers else None))
        if self.keeper_journal.is_held and not was_held:
            self.wake_all()

    def _take(self, facts: list[AnyFact]) -> None:
        if not facts:
            return
        items = [item for fact in facts for item in self._know(fact)]
        self.wake_all()
        if items or not all(isinstance(fact, Wrote | Stdin | Synced) for fact in facts):
            self.on_change(self, items)

    def _know(self, fact: AnyFact) -> list[Item]:
        self.run, items = take_in(self.run, fact)
        if isinstance(fact, Wrote):
            self.last_output_s = clock.passed_s()
        elif isinstance(fact, TerminalAsked):
            self.questions.append(fact)
        self.on_fact(fact)
        return items

    def place(self) -> Place:
        """How far both journals were taken in."""
        keeper, daemon = self.keeper_journal, self.daemon_journal
        if self.run.attempt > self.directory.attempt:
            # It was requeued just now: of the attempt to come nothing was taken in.
            keeper = JournalReader(keeper.path)
        return Place(
            attempt=max(self.run.attempt, self.directory.attempt),
            keeper_bytes=keeper.position,
            keeper_chain=keeper.chain,
            keeper_records=keeper.records,
            daemon_bytes=daemon.position,
            daemon_chain=daemon.chain,
            daemon_records=daemon.records,
        )

    # The keeper.

    def attach(self, link: KeeperLink, on_lost: Callable[["LiveRun"], None]) -> None:
        """From now on the keeper's wakeups are heard."""
        self.link = link
        link.on_wake = self.hear
        link.on_lost = lambda: on_lost(self)
        if self._listeners:
            link.post("wake", on="every")
        if not link.is_open:
            asyncio.get_running_loop().call_soon(link.on_lost)

    def hear(self) -> None:
        """What cannot be read now (no descriptor is left, say) is read soon: the keeper is not gone for that."""
        try:
            self.catch_up()
        except OSError as error:
            if self._unread_since is None:
                _log.warning("run %s cannot be read: %s", self.run.run_id, error)
                self._unread_since = asyncio.get_running_loop().call_later(READ_AGAIN_S, self._hear_again)

    def _hear_again(self) -> None:
        self._unread_since = None
        if self.link is not None:
            self.hear()

    def detach(self) -> None:
        """Lets go of the keeper and of the open files; the run itself is not touched."""
        if self.link is not None:
            self.link.on_lost = lambda: None
            self.link.close()
            self.link = None
        if self._heard_until is not None:
            self._heard_until.cancel()
        if self._unread_since is not None:
            self._unread_since.cancel()
        self._close_journals()

    def _close_journals(self) -> None:
        self.keeper_journal.close()
        self.daemon_journal.close()

    @property
    def is_settled(self) -> bool:
        """Whether nothing more can come: no keeper, and an end."""
        return self.link is None and self.run.is_over

    def is_unresponsive(self) -> bool:
        """Whether its keeper stands still because somebody stopped it: its run goes on, and all comes when it does."""
        if self.run.keeper is None or self.is_settled:
            return False
        return system.is_stopped(self.run.keeper.pid, self.run.keeper.start_time)

    # Waiting.

    async def wait_until(self, holds: Callable[[Run], bool], within_s: float | None, *, output: bool = False) -> bool:
        """Whether `holds` came true in time. With `output` it is asked after every byte, else after every state."""
        with self.heard() if output else contextlib.nullcontext(), contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while not holds(self.run):
                    if self.is_settled:
                        return False
                    with self.next_change() as change:
                        await change
        return holds(self.run)

    @contextlib.contextmanager
    def next_change(self) -> Generator["asyncio.Future[None]"]:
        """A future that is done at the next change from here on."""
        change: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.tell(change)
        try:
            yield change
        finally:
            self.tell_no_more(change)

    def tell(self, change: "asyncio.Future[None]") -> None:
        """Has this future done at the next change from here on; it may stand for several runs."""
        self._waiting[change] = None

    def tell_no_more(self, change: "asyncio.Future[None]") -> None:
        self._waiting.pop(change, None)

    def wake_all(self) -> None:
        """Lets every waiter look again."""
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    @contextlib.contextmanager
    def heard(self) -> Generator[None]:
        """Meanwhile the keeper tells of every byte, not of every state alone."""
        self._listen()
        try:
            yield
        finally:
            self._unlisten()

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


def _awaits_watchers(known: Run, asked: Sequence[AnyFact]) -> bool:
    """Whether, with what was asked since, watchers have not looked through all of the latest attempt."""
    is_watched, is_looked_through = bool(known.watch), known.looked_whole
    for fact in asked:
        if isinstance(fact, Submitted):
            is_watched = bool(fact.watch)
        elif isinstance(fact, Looked | Requeued):
            is_looked_through = isinstance(fact, Looked) and fact.whole
    return is_watched and not is_looked_through
