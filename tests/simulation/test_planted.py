"""Faults planted in keepers, engine and store: the simulation sees each of them within some hundred seeds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from limpet.engine import adoption, starting
from limpet.engine.durable import Record, Synced
from limpet.engine.live_run import LiveRun
from limpet.engine.queue import Queue
from limpet.engine.retention import Retention
from limpet.model.facts import Requeued
from limpet.model.items import Place
from limpet.model.run import Run
from limpet.model.tombstone import Tombstone
from limpet.store.memory import MemoryRunStore
from limpet.testing.simulation import Violation, ground, simulate
from limpet_keeper import system
from limpet_keeper.journal import Journal
from limpet_keeper.ladder import Ladder
from limpet_keeper.spool import Spool
from tests.simulation.test_histories import REMEMBERED
from tests.simulation.test_model import Machine

MOST_SEEDS = 2000

Plant = Callable[[pytest.MonkeyPatch], None]


def nothing_synced(patch: pytest.MonkeyPatch) -> None:
    """Starts are answered before they are on disk."""

    def write_nothing(batch: list[Record]) -> list[Synced]:
        return [(record, None) for record in batch]

    def name_nothing(batch: list[Record], _runs: object) -> list[Synced]:
        return write_nothing(batch)

    patch.setattr(ground, "sync_records", write_nothing)
    patch.setattr(ground, "sync_names", name_nothing)


def a_fact_dropped(patch: pytest.MonkeyPatch) -> None:
    """The keeper does not write down how the command ended."""
    append = Journal.append

    def forgetful(self: Journal, fact: str, **more: Any) -> None:
        if fact != "exited":
            append(self, fact, **more)

    patch.setattr(Journal, "append", forgetful)


def a_wrong_exit(patch: pytest.MonkeyPatch) -> None:
    """The keeper writes down another exit code than the command's."""
    append = Journal.append

    def off_by_one(self: Journal, fact: str, **more: Any) -> None:
        append(self, fact, **more | ({"code": more["code"] + 1} if more.get("code") else {}))

    patch.setattr(Journal, "append", off_by_one)


def keys_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A key does not lead to the run that was started with it."""

    def find_nothing(_store: MemoryRunStore, _key: str) -> None: ...

    patch.setattr(MemoryRunStore, "find_key", find_nothing)


def no_turns(patch: pytest.MonkeyPatch) -> None:
    """Runs of a session do not wait for each other."""
    enter = Queue.enter

    def enter_alone(self: Queue, run_id: str, _session_id: str) -> bool:
        return enter(self, run_id, run_id)

    patch.setattr(Queue, "enter", enter_alone)


class Backwards(Queue):
    """Whoever came last is the next of its session."""

    def leave(self, run_id: str) -> list[str]:
        line = self._sessions.get(self._session_of.get(run_id, ""))
        if line is not None and line[0] == run_id and len(line) > 2:
            line.append(line[1])
            del line[1]
        return super().leave(run_id)


def last_in_first_out(patch: pytest.MonkeyPatch) -> None:
    """Whoever came last is the next of its session."""
    patch.setattr(starting, "Queue", Backwards)


def bytes_dropped(patch: pytest.MonkeyPatch) -> None:
    """What a short write left is not written."""

    def once(self: Spool) -> None:
        try:
            self.size += system.write_at(self.fd, self.waiting, self.size)
            self.waiting, self.error = memoryview(b""), None
        except OSError as error:
            self.error = error

    patch.setattr(Spool, "flush", once)


def journal_ahead(patch: pytest.MonkeyPatch) -> None:
    """The journal says of more bytes than are in the spool."""
    wrote = Journal.append_wrote

    def one_more(self: Journal, stream: str, start: int, end: int, cut: int) -> None:
        wrote(self, stream, start, end + 1, cut)

    patch.setattr(Journal, "append_wrote", one_more)


def grace_without_end(patch: pytest.MonkeyPatch) -> None:
    """What ignores the first signal is never killed."""

    def do_nothing(_ladder: Ladder) -> None: ...

    patch.setattr(Ladder, "_kill", do_nothing)


def lost_is_requeued(patch: pytest.MonkeyPatch) -> None:
    """A run that ended is started again when its keeper died before it could seal it."""
    settle = adoption.settle_dead

    def start_again(live: LiveRun, *, may_requeue: bool = False) -> None:
        if live.run.is_over and not live.run.survivors:
            live.run = Run(run_id=live.run.run_id, session_id=live.run.session_id, created_at=1)
            number = live.directory.attempt + 1
            live.ask(lambda n, at, after: Requeued(n=n, at=at, after=after, attempt=number, streams={}))
        else:
            settle(live, may_requeue=may_requeue)

    patch.setattr(adoption, "settle_dead", start_again)


def place_of_the_last_attempt(patch: pytest.MonkeyPatch) -> None:
    """Behind `requeued` the place still names the attempt before."""
    place = LiveRun.place

    def old_place(self: LiveRun) -> Place:
        known, self.run = self.run, Run(run_id=self.run.run_id, attempt=self.directory.attempt)
        found = place(self)
        self.run = known
        return found

    patch.setattr(LiveRun, "place", old_place)


def pruned_for_nobody(patch: pytest.MonkeyPatch) -> None:
    """What is pruned is not remembered."""

    def forget(_retention: Retention, _stone: Tombstone) -> None: ...

    patch.setattr(Retention, "_bury", forget)


@pytest.mark.parametrize(
    "plant",
    [
        nothing_synced,
        a_fact_dropped,
        a_wrong_exit,
        keys_forgotten,
        no_turns,
        last_in_first_out,
        bytes_dropped,
        journal_ahead,
        grace_without_end,
        lost_is_requeued,
        pruned_for_nobody,
    ],
)
def test_is_seen(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Injector: the fault that `plant` describes."""
    plant(monkeypatch)
    with pytest.raises(Violation, match=r"^seed \d+: "):
        simulate_many()


def requeue_and_crash(seed: int) -> None:
    """A run that is begun again by a daemon which crashes right then; the seed says what the database has by then."""
    machine = Machine()
    try:
        machine.start_daemon()
        machine.spawn(steps=["o5"], end="h", session=None, has_key=True, timeout_secs=None, on_lost=None)
        machine.let(0.5)
        machine.crash()
        for keeper in list(machine.history.machine.keepers.values()):
            keeper.die()
        machine.begin_daemon()
        while len(machine.history.machine.attempts) < 2:
            machine.let(0.001)
        machine.history.world.random.seed(seed)
        machine.crash()
        machine.let(0.1)
    finally:
        machine.teardown()


ROLLS_BACK = range(20)


def test_a_run_begun_again_holds() -> None:
    """Injectors: the daemon crashes, every keeper is killed, and the next daemon crashes too."""
    for seed in ROLLS_BACK:
        requeue_and_crash(seed)


def test_a_place_of_the_last_attempt_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Injector: the fault that the plant describes, in histories aimed at it: seeds seldom come by."""
    place_of_the_last_attempt(monkeypatch)

    def all_ways() -> None:
        for seed in ROLLS_BACK:
            requeue_and_crash(seed)

    with pytest.raises(Violation, match="beside itself"):
        all_ways()


def simulate_many() -> None:
    for seed in (*REMEMBERED, *range(MOST_SEEDS)):
        simulate(seed)
