"""A simulated machine under one home: its files, its keepers, its commands; and the names it stands in the place of."""

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Callable, Generator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from limpet.engine import clock, link, nursery, remains
from limpet.model.facts import Started, Starting, Witness
from limpet.store import disk
from limpet.testing.simulation.commands import Process
from limpet.testing.simulation.files import Files
from limpet.testing.simulation.keepers import SimulatedKeeper
from limpet.testing.simulation.loop import ConnectedSocket
from limpet.testing.simulation.system import Kernel
from limpet.testing.simulation.world import World
from limpet_keeper import (
    control,
    journal,
    keeper,
    launcher,
    output,
    prepare,
    requests,
    spool,
    stdin,
    storage,
    sync,
    system,
    timers,
)


class Attempt:
    """One time that a command was executed."""

    def __init__(self, keeper: SimulatedKeeper, process: Process, number: int, at_s: float) -> None:
        self.run_id = process.run_id
        self.number = number
        self.process = process
        self.keeper = keeper
        self.at_s = at_s
        self.status: int | None = None
        self.ended_at_s: float | None = None
        # Whether its keeper lived to say all, and put it on disk.
        self.is_kept_to_the_end = False


class Machine:
    """Holds no daemon: that is the history's."""

    def __init__(self, world: World, home: Path) -> None:
        self.world = world
        self.home = home
        self.files = Files(world, home)
        self.keepers: dict[int, SimulatedKeeper] = {}
        self.attempts: list[Attempt] = []
        # By boot: how many changes of the database were on disk when a daemon had compared them with the files.
        self.flushed: dict[int, int] = {}
        # What is told of each command that begins.
        self.on_started: Callable[[Attempt], None] = lambda _attempt: None
        self._acting: list[SimulatedKeeper] = []
        self._latest: dict[int, Attempt] = {}
        self.system = Kernel(self)

    def actor(self) -> SimulatedKeeper:
        """The keeper whose code runs now."""
        return self._acting[-1]

    @contextlib.contextmanager
    def acting(self, keeper: SimulatedKeeper) -> Generator[None]:
        self._acting.append(keeper)
        try:
            yield
        finally:
            self._acting.pop()

    # Keepers.

    def prepare(self, path: str) -> SimulatedKeeper:
        """A keeper made ready there; OSError where it cannot be."""
        if self.files.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        keeper = SimulatedKeeper(self, path)
        self.keepers[keeper.inode] = keeper
        return keeper

    def dial(self, directory: Path) -> ConnectedSocket:
        keeper = self.keepers.get(directory.stat().st_ino)
        if keeper is None:
            raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        return keeper.connect()

    def started(self, keeper: SimulatedKeeper, process: Process) -> None:
        # Where its directory stands now says which attempt it is.
        number = int(Path(f"/proc/self/fd/{keeper.directory_fd}").readlink().name) if keeper.is_alive else 0
        attempt = Attempt(keeper, process, number, self.world.now_s)
        self.world.say("exec", process.run_id, number)
        self.attempts.append(attempt)
        self._latest[process.pid] = attempt
        self.on_started(attempt)

    def ended(self, keeper: SimulatedKeeper, process: Process, status: int) -> None:  # noqa: ARG002
        self.world.say("exit", process.run_id, process.pid, status)
        if process.is_main:
            attempt = self._latest[process.pid]
            attempt.status, attempt.ended_at_s = status, self.world.now_s

    def left(self, keeper: SimulatedKeeper) -> None:
        self.world.say("sealed", keeper.run)
        for attempt in self.attempts:
            if attempt.keeper is keeper:
                attempt.is_kept_to_the_end = True

    def killed(self, keeper: SimulatedKeeper) -> None:
        self.world.say("keeper killed", keeper.run, keeper.phase)

    def end_session(self, started: Started | Starting, keeper: Witness) -> list[int]:  # noqa: ARG002
        for attempt in self.attempts:
            if attempt.process.pid == started.pid:
                for process in attempt.keeper.children.processes:
                    process.end(9)
        return []

    def kill_exactly(self, process: Witness) -> None:
        for each in list(self.keepers.values()):
            if each.own_pid == process.pid:
                each.die()

    def reboot(self) -> None:
        """Every process is gone, and none of them could say so."""
        for each in list(self.keepers.values()):
            each.die()
        for attempt in self.attempts:
            for process in attempt.keeper.children.processes:
                process.on_end = lambda _process, _status: None
                process.end(9)
        self.world.boot += 1
        prepare.BOOT_ID = self.world.boot_id()  # pyright: ignore[reportConstantRedefinition]
        self.world.say("reboot")

    def close(self) -> None:
        self.reboot()
        shutil.rmtree(self.home, ignore_errors=True)

    # In whose place it stands.

    def _places(self) -> list[tuple[ModuleType, str, Any]]:
        world, files, kernel = self.world, self.files, self.system
        system_as_os = kernel.as_os()
        with_os = (prepare, keeper, sync, spool, journal, launcher, output, stdin, requests, control)
        return [
            *((module, "os", system_as_os) for module in with_os),
            *((module, "time", kernel) for module in (timers, storage, journal)),
            (sync, "_thread", kernel),
            (control, "socket", SimpleNamespace(socket=kernel.make_door, AF_UNIX=socket.AF_UNIX)),
            (control, "accept", kernel.accept),
            (prepare, "BOOT_ID", world.boot_id()),
            *((system, name, getattr(kernel, name)) for name in ("write_at", "reserve", "start_time", "is_stopped")),
            (system, "boot_id", world.boot_id),
            (system, "free_bytes", files.free_bytes),
            (clock, "now_ms", world.wall_ms),
            (clock, "passed_s", world.monotonic_s),
            (link, "dial", self.dial),
            (remains, "end_session", self.end_session),
            (remains, "kill_exactly", self.kill_exactly),
            (nursery, "IDLE_KEEPERS", 1),
            (nursery, "MOST_IDLE_KEEPERS", 2),
            (nursery, "FEW_KEEPERS", 1),
            *((disk, name, getattr(files, name)) for name in _DISK),
            (disk, "sync_data", files.sync),
        ]

    @contextlib.contextmanager
    def in_place(self) -> Generator[None]:
        """While it is, the code of keepers and engine runs on this machine, and on no other."""
        real = [(module, name, getattr(module, name)) for module, name, _ in self._places()]
        for module, name, stand_in in self._places():
            setattr(module, name, stand_in)
        try:
            yield
        finally:
            for module, name, was in real:
                setattr(module, name, was)


_DISK = ("open_to_write", "write_at", "cut", "sync", "make_directory", "rename", "remove", "remove_tree", "free_bytes")
