"""Keepers of a simulated machine: the real code, with real files, pipes and sockets, and processes that are none."""

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from limpet.testing.simulation.commands import Process
from limpet.testing.simulation.loop import ConnectedSocket
from limpet.testing.simulation.system import KeeperKilled, Listener
from limpet_keeper import lean_json
from limpet_keeper.keeper import Keeper
from limpet_keeper.launcher import Launcher
from limpet_keeper.loop import Loop
from limpet_keeper.prepare import prepare, remove
from limpet_keeper.settings import Settings
from limpet_keeper.tree import Found, Tree

if TYPE_CHECKING:
    from limpet.testing.simulation.machine import Machine


class SeenLoop(Loop):
    """The keeper's loop, which never waits and remembers whether anything happened."""

    happened = False

    def turn(self, wait_s: float | None) -> bool:  # noqa: ARG002
        self.happened = super().turn(0)
        return self.happened


class Children(Tree):
    """The processes of a run, as the kernel would show them to its keeper."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[Process] = []
        # Those that ended, with what `waitpid` says of them.
        self.zombies: list[tuple[int, int]] = []

    def living(self) -> dict[int, Found]:
        return {each.pid: Found(each.pid, 0, each.pid) for each in self.processes if each.is_alive}

    def signal(self, *numbers: int) -> int:
        there = [each for each in self.processes if each.is_alive]
        for process in there:
            for number in numbers:
                process.get(number)
        return len(there)

    def kill(self) -> None:
        self.signal(9)

    def has_any(self) -> bool:
        return bool(self.zombies) or any(each.is_alive for each in self.processes)


class SeenLauncher(Launcher):
    """The command-to-be, which starts in the world's own time."""

    def __init__(self, keeper: "SimulatedKeeper") -> None:
        super().__init__()
        self.keeper = keeper
        self.child_fds: list[int] = []
        self.script = ""

    def fork(self, cgroup: str | None, umask: int) -> None:  # noqa: ARG002
        system = self.keeper.machine.system
        child_in, self.stdin = system.pipe()
        self.stdout, child_out = system.pipe()
        self.stderr, child_err = system.pipe()
        self.status, child_status = system.pipe()
        self.child_fds = [child_in, child_out, child_err, child_status]
        self.keeper.fds.difference_update(self.child_fds)
        for fd in (child_out, child_err):
            os.set_blocking(fd, False)
        self.pid = self.start_time = self.keeper.machine.world.new_pid()

    def in_cgroup(self) -> bool:
        return False

    def tell(self, run: Settings, terminal: str | None) -> None:  # noqa: ARG002
        self.script = run.argv[-1]

    def go(self) -> None:
        self.keeper.machine.world.soon(self._become)

    def _become(self) -> None:
        if not self.child_fds:
            return
        keeper, world = self.keeper, self.keeper.machine.world
        child_in, child_out, child_err, child_status = self.child_fds
        self.child_fds = []
        script = self.script
        if script.startswith("!"):
            os.write(child_status, lean_json.encode({"part": "cwd", "errno": "ENOENT", "message": "none"}).encode())
        else:
            process = Process(keeper.machine, keeper.run or "", script.split(), os.dup(child_out), os.dup(child_err))
            process.pid = self.pid
            process.on_end, process.on_fork, process.on_wrote = keeper.child_ended, keeper.adopt, keeper.poke
            keeper.adopt(process)
            keeper.machine.started(keeper, process)
            world.soon(process.go_on)
        for fd in (child_in, child_out, child_err, child_status):
            os.close(fd)
        keeper.poke()

    def abandon(self) -> None:
        for fd in self.child_fds:
            os.close(fd)
        self.child_fds = []


class SimulatedKeeper(Keeper):
    """One keeper's process."""

    def __init__(self, machine: "Machine", path: str) -> None:
        super().__init__()
        self._syncing = machine.system.made
        self.machine = machine
        self.own_pid = machine.world.new_pid()
        self.is_alive = True
        # Everything that its process holds open.
        self.fds: set[int] = set()
        self.tree = self.ladder.tree = self.children = Children()
        self.launcher = SeenLauncher(self)
        self.loop = self.control.loop = self.storage.loop = self.seen = SeenLoop()
        self.sockets: list[ConnectedSocket] = []
        self._is_awake = False
        self._alarm_s: float | None = None
        with machine.acting(self):
            prepare(self, path, None, 0o077)
            self.open_bell()
        self.inode = os.fstat(self.directory_fd).st_ino
        self._set_alarm()

    # Its processes.

    def adopt(self, process: Process) -> None:
        self.children.processes.append(process)

    def child_ended(self, process: Process, status: int) -> None:
        self.machine.ended(self, process, status)
        if self.is_alive:
            self.children.zombies.append((process.pid, status))
            self.ring()
            self.poke()

    def ring(self) -> None:
        """A child ended, or a sync is done."""
        os.write(self.ringer, b"\0")

    def begin_thread(self, run: Callable[[], None]) -> None:
        """The thread that syncs begins."""
        self._syncing.run = run
        self._syncing.release()

    # Its turns.

    def door(self) -> Listener:
        """Where connections wait."""
        return cast(Listener, cast(object, self.control.listener))

    def connect(self) -> ConnectedSocket:
        """The other end of a new connection."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        theirs.setblocking(False)
        self.door().wait_at(ours)
        connected = ConnectedSocket(fileno=theirs.detach())
        connected.poke = self.poke
        self.sockets.append(connected)
        self.poke()
        return connected

    def poke(self) -> None:
        """Something happened that it will see at its next turn."""
        if self.is_alive and not self._is_awake:
            self._is_awake = True
            self.machine.world.soon(self._act)

    def _act(self) -> None:
        self._is_awake = False
        if not self.is_alive:
            return
        try:
            with self.machine.acting(self):
                self.turn(0)
                if self.gone:
                    self._go()
        except KeeperKilled:
            self.die()
        for connected in self.sockets:
            if connected.transport is not None:
                connected.transport.arrive()
        if self.is_alive:
            if self.seen.happened:
                self.poke()
            self._set_alarm()

    def _set_alarm(self) -> None:
        wait_s = self.timers.next_s()
        if wait_s is None:
            return
        when_s = self.machine.world.now_s + wait_s
        if self._alarm_s is None or when_s < self._alarm_s or self._alarm_s <= self.machine.world.now_s:
            self._alarm_s = when_s
            self.machine.world.after(wait_s, self.poke)

    def _go(self) -> None:
        """As the nursery ends one that has done its work."""
        is_unclaimed = self.run is None
        if is_unclaimed:
            self.launcher.abandon()
        self.leave()
        if is_unclaimed:
            remove(self)
        else:
            self.machine.left(self)
        self._close_all()

    def die(self) -> None:
        """Its process is killed: what it held is closed, its command goes on without it."""
        if self.is_alive:
            self.launcher.abandon()
            self.machine.killed(self)
            self._close_all()

    def _close_all(self) -> None:
        self.is_alive = False
        for connection in self.control.connections:
            connection.socket.close()
        for waiting in self.door().waiting:
            waiting.close()
        for fd in self.fds:
            os.close(fd)
        self.fds.clear()
        self.machine.keepers.pop(self.inode, None)
        for connected in self.sockets:
            if connected.transport is not None:
                connected.transport.arrive()
