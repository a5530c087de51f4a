"""One history: what a seed has clients, commands and faults do, until all has come to rest and is checked."""

import asyncio
import itertools
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from limpet.config import Config, RunConfig, StoreConfig
from limpet.dialects.shell.operations import shell
from limpet.dialects.shell.types import ShellRequest
from limpet.engine.engine import Engine
from limpet.model.errors import Refusal
from limpet.model.operation import Caller
from limpet.store.runs import RunFilter
from limpet.testing.simulation.checks import check_rest
from limpet.testing.simulation.commands import draw_script
from limpet.testing.simulation.daemon import Daemon, Lost
from limpet.testing.simulation.ground import SeenStore
from limpet.testing.simulation.machine import Attempt, Machine
from limpet.testing.simulation.watching import Asked
from limpet.testing.simulation.world import World

GRACE_MS: Final = 400
CALLS_FOR_S: Final = 5.0
# When all faults are over and everything is brought to its end.
REST_AT_S: Final = 7.0
# By then all must have ended that was killed.
AT_REST_WITHIN_S: Final = 120
# What a time limit may be late by where everything else takes its time.
LATE_S: Final = 4.0
CALLER: Final = Caller("simulation", cwd="/", env={})
FAULTS: Final = (
    "crash",
    "crash",
    "crash",
    "crash at change",
    "crash at change",
    "crash at change",
    "stop",
    "kill keeper",
)
MORE_FAULTS: Final = ("kill keeper at write", "reboot", "power cut", "full", "bad sync", "nursery", "clock", "database")


class Told(msgspec.Struct, frozen=True):
    """How a history went."""

    seed: int
    digest: str
    steps: int
    runs: int
    daemons: int
    faults: list[str]
    trace: list[str]


class History:
    """`run` it once."""

    def __init__(self, seed: int, home: Path, *, keeps_trace: bool = False) -> None:
        self.world = World(seed)
        self.world.keeps_trace = keeps_trace
        self.machine = Machine(self.world, home)
        self.machine.on_started = self._on_started
        chance = self.world.random
        run = RunConfig(kill_grace_ms=GRACE_MS, sync_ms=200, max_parallel=chance.choice((1, 2, 64)), shell="/bin/sh")
        self.config = Config(run=run, store=StoreConfig(min_free_bytes=1))
        self.store = SeenStore(self.machine)
        self.daemon: Daemon | None = None
        self.asked: list[Asked] = []
        self.daemons = 0
        self.faults: list[str] = []
        self._has_pruned = False
        # Nobody asks for anything new any more.
        self.is_ending = False
        self.is_at_rest = False
        self._downtime_s = 0.1
        self._numbers = itertools.count(1)

    def run(self) -> Told:
        """A Violation says what did not hold."""
        self.machine.home.mkdir(mode=0o700)
        try:
            with self.machine.in_place():
                self._draw()
                while not self.is_at_rest:
                    self._live_once()
                self.machine.reboot()
                self.store = SeenStore(self.machine, self.store.done)
                check_rest(self.machine, self.store, self.asked)
        finally:
            with self.machine.in_place():
                self.machine.close()
        return Told(
            seed=self.world.seed,
            digest=self.world.digest(),
            steps=self.world.steps,
            runs=len({attempt.run_id for attempt in self.machine.attempts}),
            daemons=self.daemons,
            faults=self.faults,
            trace=self.world.trace,
        )

    def _live_once(self) -> None:
        self.daemons += 1
        self.store = SeenStore(self.machine, self.store.done)
        self.daemon = daemon = Daemon(self.machine, self.config, self.store)
        daemon.live()
        self.daemon = None
        if not self.is_at_rest:
            self.world.run_for(self._downtime_s)

    # What the seed has happen.

    def _draw(self) -> None:
        chance = self.world.random
        for _ in range(chance.randint(1, 5)):
            self.world.after(chance.random() * CALLS_FOR_S, self._draw_start)
        for _ in range(chance.randint(3, 12)):
            self.world.after(chance.random() * CALLS_FOR_S, self._draw_call)
        for _ in range(chance.choice((0, 1, 1, 2, 2, 3))):
            fault = chance.choice(FAULTS + MORE_FAULTS)
            self.faults.append(fault)
            self.world.after(chance.random() * CALLS_FOR_S, lambda fault=fault: self.strike(fault))
        self.machine.files.remembers = "power cut" in self.faults
        self.world.after(REST_AT_S, self.rest)

    def _draw_start(self) -> None:
        chance, number = self.world.random, next(self._numbers)
        script = "!" if chance.random() < 0.03 else draw_script(chance)
        request = ShellRequest(
            action="spawn",
            command=script,
            session_id=chance.choice((None, "a", "a", "b")),
            key=chance.choice((None, f"k{number}")),
            on_lost=chance.choice((None, None, "fail")),
            timeout_secs=chance.choice((None, None, 0.3, 1.5)),
            queue_timeout_secs=chance.choice((None, None, None, 0.5)),
            max_output_bytes=chance.choice((None, None, None, 0, 1000, 5001)),
            env={"CALL": str(number)},
        )
        self.start(Asked(self.world, number, request))
        if request.key is not None and chance.random() < 0.2:  # twice at once
            self.start(self.asked[-1])

    def start(self, asked: Asked) -> None:
        """A client asks for a run, again where that is safe."""
        if asked not in self.asked:
            self.asked.append(asked)

        def hear(answer: Any, error: BaseException | None) -> None:
            self.world.say("start", asked.number, answer.run_id if answer else _word(error))
            if error is None:
                asked.answered(str(answer.run_id))
            elif isinstance(error, Refusal) and error.code == "gone" and self._has_pruned:
                asked.is_pruned = True
            elif asked.request.key is not None and not self._is_resting():
                self.world.after(0.3, lambda: self.start(asked))
            elif isinstance(error, Refusal) and asked.run_id is not None and error.code != "unavailable":
                raise self.world.violation(f"call {asked.number} was answered, and is refused now: {error}")

        self._call(lambda engine: shell(engine, asked.request, CALLER), hear)

    def _draw_call(self) -> None:
        chance = self.world.random
        known = [asked for asked in self.asked if asked.run_id is not None and not asked.is_pruned]
        if chance.random() < 0.04:
            self._prune()
        elif known:
            asked = chance.choice(known)
            kind = chance.choice(("poll", "poll", "poll", "log", "log", "kill"))
            if kind == "kill":
                self.ask(asked, ShellRequest(action="kill", run_id=asked.run_id))
            elif kind == "poll":
                since = chance.choice((0, asked.cursor))
                self.ask(asked, ShellRequest(action="poll", run_id=asked.run_id, since_seq=since))
            else:
                stream = chance.choice((None, "stdout", "stderr"))
                limit = chance.choice((1, 2, 200))
                since = chance.choice((0, asked.cursor))
                self.ask(
                    asked,
                    ShellRequest(action="log", run_id=asked.run_id, since_seq=since, stream=stream, limit=limit),
                )
        if chance.random() < 0.7 and not self._is_resting():
            self.world.after(chance.random() * 0.5, self._draw_call)

    def ask(self, asked: Asked, request: ShellRequest) -> None:
        """A client asks about a run."""
        power = self.world.boot

        def hear(answer: Any, error: BaseException | None) -> None:
            self.world.say(request.action, asked.run_id, answer.status if answer else _word(error))
            if isinstance(error, Refusal):
                self._refused(asked, request, error)
            elif error is None and power == self.world.boot:
                if request.action == "poll":
                    asked.polled(answer, request.since_seq)
                elif request.action == "log":
                    asked.logged(answer, request.since_seq, request.stream)

        self._call(lambda engine: shell(engine, request, CALLER), hear)

    def _refused(self, asked: Asked, request: ShellRequest, error: Refusal) -> None:
        if error.code == "gone" and self._has_pruned:
            asked.is_pruned = True
        elif error.code != "unavailable" and not (error.code == "invalid_argument" and self._had_power_cut()):
            raise self.world.violation(f"{request.action} of {asked.run_id} was refused: {error.code}, {error}")

    def _prune(self) -> None:
        self._has_pruned = True

        def hear(answer: Any, error: BaseException | None) -> None:
            self.world.say("prune", answer.runs if answer else _word(error))
            for asked in self.asked:
                if answer is not None and asked.run_id in answer.runs:
                    asked.is_pruned = True

        self._call(lambda engine: engine.prune(None, 0, dry_run=False), hear)

    def _call(self, ask: Callable[[Engine], Any], hear: Callable[[Any, BaseException | None], None]) -> None:
        def answer(result: Any, error: BaseException | None) -> None:
            if error is not None and not isinstance(error, Lost | Refusal):
                raise self.world.violation(f"a call was answered with {error!r}") from error
            hear(result, error)

        if self.daemon is None or not self.daemon.is_open:
            if not self._is_resting():
                self.world.after(0.1, lambda: self._call(ask, hear))
        else:
            self.daemon.call(ask, answer)

    # Faults.

    def strike(self, fault: str) -> None:
        """One of the faults happens now, if there is what it happens to."""
        chance, machine, daemon = self.world.random, self.machine, self.daemon
        self.world.say("fault", fault)
        self._downtime_s = chance.choice((0.01, 0.1, 1.0))
        living = sorted(machine.keepers.values(), key=lambda keeper: keeper.own_pid)
        match fault:
            case "crash" if daemon is not None:
                daemon.crash()
            case "crash at change":
                machine.files.crash_in = chance.randint(1, 60)
            case "stop" if daemon is not None and daemon.is_open:
                daemon.stop()
            case "kill keeper" if living:
                chance.choice(living).die()
            case "kill keeper at write":
                machine.system.kills_in = chance.randint(1, 40)
            case "full":
                machine.files.is_full = True
                self.world.after(chance.random() * 3, self._make_room)
            case "bad sync":
                machine.files.bad_syncs = chance.randint(1, 3)
            case "nursery" if daemon is not None and daemon.is_open and daemon.ground.nursery is not None:
                daemon.ground.nursery.die()
            case "clock":
                self.world.wall_off_ms += chance.choice((-3_600_000, -5000, 5000, 3_600_000))
            case "database":
                count = chance.choice((0, chance.randint(0, len(self.store.done))))
                self.store.roll_back(count and max(count, self._sure_rows()))
                if daemon is not None:
                    daemon.crash()
            case "reboot" | "power cut":
                self._reboot(fault == "power cut")
            case _:
                pass

    def _make_room(self) -> None:
        self.machine.files.is_full = False

    def _reboot(self, is_power_cut: bool) -> None:
        daemon = self.daemon
        self.machine.files.is_daemon_dead = True
        self.machine.reboot()
        if not is_power_cut:
            self.machine.files.put_all_on_disk()
        else:
            for attempt in self.machine.attempts:
                # A keeper that could not sync its last record had no other way to say so than to leave it out.
                attempt.is_kept_to_the_end &= not self.machine.files.has_failed
            for asked in self.asked:
                last = asked.last()
                if last is None or not last.is_kept_to_the_end:
                    asked.forget()
            if daemon is not None:
                daemon.when_gone(self._cut_power)
            else:
                self._cut_power()
        if daemon is not None:
            daemon.crash()

    def _cut_power(self) -> None:
        self.machine.files.cut_power()
        self.store.roll_back(self.world.random.randint(0, len(self.store.done)))

    def _sure_rows(self) -> int:
        """How many changes of the database no later loss takes singly. It may be lost whole at any time; but once a
        daemon had compared its rows with what a power cut left, and flushed them, those of before do not come back.
        """
        return self.machine.flushed.get(self.world.boot, 0) if self._had_power_cut() else 0

    def _had_power_cut(self) -> bool:
        return "power cut" in self.faults and self.world.boot > 1

    # Commands.

    def _on_started(self, attempt: Attempt) -> None:
        number = int(attempt.keeper.settings.env["CALL"])
        asked = next(each for each in self.asked if each.number == number)
        asked.began(attempt)
        session = asked.session
        for other in self.asked:
            if session is None or other is asked or other.session != session:
                continue
            last = other.last()
            if last is not None and last.process.is_alive:
                raise self.world.violation(f"{attempt.run_id} runs beside {last.run_id} of its session")
        for run in self.store.runs():
            if run.session_id == session and run.run_id < attempt.run_id and not run.is_over:
                raise self.world.violation(f"{attempt.run_id} overtook {run.run_id} in its session")

    # The end.

    def _is_resting(self) -> bool:
        return self.is_ending or self.world.now_s >= 1000 + REST_AT_S

    def rest(self) -> None:
        """All faults are over, and everything is brought to its end."""
        files = self.machine.files
        files.is_full, files.bad_syncs, files.crash_in, self.machine.system.kills_in = False, 0, None, None
        if self.daemon is not None and self.daemon.is_open:
            self.daemon.stop(self._end_all)
        else:
            self.world.after(0.1, self.rest)

    async def _end_all(self, engine: Engine) -> None:
        """Has everything end, and reads it all once more."""
        until_s = self.world.now_s + AT_REST_WITHIN_S
        while left := [
            run for run in await engine.list(RunFilter(limit=1000)) if not engine.find(run.run_id).is_settled
        ]:
            if self.world.now_s > until_s:
                raise self.world.violation(f"it does not end: {left[0].run_id} is {left[0].phase}")
            for run in left:
                request = ShellRequest(action="kill", run_id=run.run_id)
                try:
                    await shell(engine, request, CALLER)
                except Refusal as error:
                    if error.code != "unavailable":
                        raise self.world.violation(f"{run.run_id} is not to be ended: {error}") from error
            await asyncio.sleep(1.0)
        for asked in self.asked:
            if asked.run_id is not None and not asked.is_pruned:
                await self._read_whole(engine, asked)
        self.is_at_rest = True

    async def _read_whole(self, engine: Engine, asked: Asked) -> None:
        request = ShellRequest(action="poll", run_id=asked.run_id, limit=1000)
        try:
            asked.polled(await shell(engine, request, CALLER), 0)
        except Refusal as error:
            self._refused(asked, request, error)


def _word(error: BaseException | None) -> str:
    """What the trace says of a refusal: nothing that differs from machine to machine."""
    return error.code if isinstance(error, Refusal) else type(error).__name__


def simulate(seed: int, *, keeps_trace: bool = False) -> Told:
    """One history, from its seed alone; a Violation is raised where something does not hold."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="limpet-sim-", dir=base) as home:
        return History(seed, Path(home) / "h", keeps_trace=keeps_trace).run()
