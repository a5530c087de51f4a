"""The daemon's process in a history: one engine after another on one machine, and calls that may lose it."""

import asyncio
import contextlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from limpet.config import Config
from limpet.engine.engine import Engine
from limpet.testing.simulation.ground import SeenStore, SimulatedGround
from limpet.testing.simulation.loop import Crash, Dead, VirtualLoop
from limpet.testing.simulation.machine import Machine

Answer = Callable[[Any, BaseException | None], None]


class Lost(Exception):  # noqa: N818  (nothing is wrong with the call)
    """The daemon went away before it answered."""


class Daemon:
    """One process of it: `live` from its start to its end, however that comes, or `begin` and `go_on` bit by bit."""

    def __init__(self, machine: Machine, config: Config, store: SeenStore) -> None:
        self.machine = machine
        self.loop = VirtualLoop(machine.world)
        self.ground = SimulatedGround(machine, self.loop, store)
        self.engine = Engine(machine.home, config, ground=self.ground)
        self.is_open = False
        self.has_begun = False
        self.has_crashed = False
        self._life: asyncio.Task[None]
        self._leave: asyncio.Event
        self._when_gone: list[Callable[[], object]] = []
        self._last: Callable[[Engine], Awaitable[None]] | None = None
        self._calls: dict[asyncio.Task[Any], Answer] = {}

    def live(self) -> None:
        """Returns when its process has ended."""
        self.begin()
        while self.has_begun:
            self.go_on(3600)

    def begin(self) -> None:
        """Its process starts."""
        self.machine.files.is_daemon_dead = False
        self.machine.world.say("daemon starts")
        self._life = self.loop.create_task(self._main())
        self.has_begun = True

    def go_on(self, seconds: float) -> None:
        """All that happens in so much time, or until its process has ended."""
        if not self.has_begun:
            return
        world = self.machine.world
        self.loop.after(seconds, self.loop.stop)
        self._life.add_done_callback(self._stop_loop)
        try:
            self.loop.run_forever()
            if not self._life.done():
                self._life.remove_done_callback(self._stop_loop)
                return
            self._life.result()
            world.say("daemon ends")
        except (Crash, Dead):
            self.has_crashed = True
            world.say("daemon crashed")
        except BaseException:
            self._end()
            raise
        self._end()

    def _stop_loop(self, _life: asyncio.Task[None]) -> None:
        self.loop.stop()

    def _end(self) -> None:
        self.has_begun = False
        self.machine.files.is_daemon_dead = True
        self.machine.files.crash_in = None
        self._clean_up()

    async def _main(self) -> None:
        self._leave = asyncio.Event()
        async with self.engine as engine:
            self.is_open = True
            self.machine.world.say("daemon is up")
            await self._leave.wait()
            if self._last is not None:
                await self._last(engine)
            self.is_open = False
            for task in self._calls:
                task.cancel()
            await asyncio.gather(*self._calls, return_exceptions=True)

    def stop(self, last: Callable[[Engine], Awaitable[None]] | None = None) -> None:
        """Ends it as a signal would; `last` is done before."""
        self._last = last
        self._leave.set()

    def crash(self) -> None:
        """Kills it, now."""
        self.machine.files.is_daemon_dead = True
        raise Crash

    def when_gone(self, call: Callable[[], object]) -> None:
        """Has something happen right when its process has ended."""
        self._when_gone.append(call)

    def call(self, ask: Callable[[Engine], Awaitable[Any]], answer: Answer) -> None:
        """A client calls; it hears an answer, a refusal, or that its daemon went away."""

        async def calling() -> Any:
            return await ask(self.engine)

        task = self.loop.create_task(calling())
        self._calls[task] = answer
        task.add_done_callback(self._answered)

    def _answered(self, task: asyncio.Task[Any]) -> None:
        answer = self._calls.pop(task, None)
        if answer is None:
            return
        if not self.loop.is_alive or self.machine.files.is_daemon_dead or task.cancelled():
            answer(None, Lost())
            return
        error = task.exception()
        answer(None, Lost()) if isinstance(error, Dead | Crash) else answer(
            task.result() if error is None else None, error
        )

    def _clean_up(self) -> None:
        """What a process leaves to the system when it ends."""
        self.is_open = False
        # In the order in which they called; that in which tasks end is nobody's.
        calls, self._calls = self._calls, {}
        for answer in calls.values():
            answer(None, Lost())
        held = {fd for keeper in self.machine.keepers.values() for fd in keeper.fds}
        self.loop.end()
        for nursery in [self.ground.nursery] if self.ground.nursery is not None else []:
            for process in nursery.processes:
                process.close()
        if self.has_crashed:
            self.ground.store.crash()
            self._close_files(held)
        for call in self._when_gone:
            call()

    def _close_files(self, held: set[int]) -> None:
        """Its open files: those under its home that no keeper has."""
        home = str(self.machine.home)
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(OSError):
                if str(link.readlink()).startswith(home) and int(link.name) not in held:
                    os.close(int(link.name))
