"""What keepers ask of a simulated machine's kernel: descriptors that are theirs, children, time, and a thread."""

import contextlib
import errno
import os
import socket
from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

from limpet_keeper import system

if TYPE_CHECKING:
    from limpet.testing.simulation.keepers import SimulatedKeeper
    from limpet.testing.simulation.machine import Machine

_write_at: Final = system.write_at
_DESCRIPTORS: Final = ("open", "dup", "pipe", "close", "fdatasync")
_OF_OS: Final = (*_DESCRIPTORS, "getpid", "waitpid", "wait4", "waitid", "umask", "fchdir", "chdir")


class KeeperKilled(BaseException):
    """The keeper's process ends here."""


class Listener:
    """A keeper's door: an eventfd in the place of a socket's name in a directory."""

    def __init__(self, kernel: "Kernel") -> None:
        self._kernel = kernel
        self.waiting: list[socket.socket] = []
        self._fd = kernel.hold(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC))

    def bind(self, name: str) -> None:
        directory = self._kernel.actor().directory_fd
        os.close(os.open(name, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600, dir_fd=directory))

    def listen(self, _backlog: int) -> None: ...

    def setblocking(self, _flag: bool) -> None: ...

    def fileno(self) -> int:
        return self._fd

    def wait_at(self, connected: socket.socket) -> None:
        """Somebody connects."""
        self.waiting.append(connected)
        os.eventfd_write(self._fd, 1)

    def accept(self) -> socket.socket:
        if not self.waiting:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self._fd)
            raise BlockingIOError
        return self.waiting.pop(0)

    def close(self) -> None:
        self._kernel.close(self._fd)


class Turn:
    """The lock that a keeper's syncing thread waits for: here it comes back when there is work, in the world's time."""

    class Parked(BaseException):
        """The thread waits."""

    def __init__(self, kernel: "Kernel") -> None:
        self._kernel = kernel
        self._is_in_thread = False
        self.run: Callable[[], None] | None = None

    def acquire(self) -> None:
        if self._is_in_thread:
            raise Turn.Parked

    def release(self) -> None:
        keeper = self._kernel.actor()
        self._kernel.machine.world.soon(lambda: self._work(keeper))

    def _work(self, keeper: "SimulatedKeeper") -> None:
        if keeper.is_alive and self.run is not None:
            self._is_in_thread = True
            with self._kernel.machine.acting(keeper), contextlib.suppress(Turn.Parked):
                self.run()
            self._is_in_thread = False
            keeper.poke()


class Kernel:
    """Answers the keeper whose code runs now."""

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        # After so many of their writes a keeper is killed in the middle of one; None: none is.
        self.kills_in: int | None = None
        # The lock of the keeper that was made last.
        self.made = Turn(self)

    def actor(self) -> "SimulatedKeeper":
        return self.machine.actor()

    def as_os(self) -> SimpleNamespace:
        """`os` as keepers see it."""
        return SimpleNamespace(**vars(os) | {name: getattr(self, name) for name in _OF_OS})

    # Descriptors.

    def hold(self, fd: int) -> int:
        """The keeper has it open, until its process ends."""
        self.actor().fds.add(fd)
        return fd

    def open(self, path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        return self.hold(os.open(path, flags, mode, dir_fd=dir_fd))

    def dup(self, fd: int) -> int:
        return self.hold(os.dup(fd))

    def pipe(self) -> tuple[int, int]:
        reads, writes = os.pipe()
        return self.hold(reads), self.hold(writes)

    def close(self, fd: int) -> None:
        self.actor().fds.discard(fd)
        os.close(fd)

    def fdatasync(self, fd: int) -> None:
        self.machine.files.put_on_disk(fd)

    def write_at(self, fd: int, data: bytes | memoryview, offset: int) -> int:
        """As `limpet_keeper.system.write_at`: it can be short, refused, or the keeper's last."""
        chance, keeper = self.machine.world.random, self.actor()
        if self.kills_in is not None and keeper.run is not None:
            self.kills_in -= 1
            if self.kills_in <= 0:
                self.kills_in = None
                _write_at(fd, data[: chance.randint(0, len(data))], offset)
                raise KeeperKilled
        in_reserve = fd == keeper.journal.fd and offset + len(data) <= keeper.journal.reserved
        if self.machine.files.is_full and not in_reserve:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if len(data) > 1 and chance.random() < 0.02:
            data = data[: chance.randint(1, len(data) - 1)]
        return _write_at(fd, data, offset)

    def reserve(self, _fd: int, _offset: int, _length: int) -> bool:
        return not self.machine.files.is_full

    # What is not to change this process.

    def umask(self, _mask: int) -> int:
        return 0o077

    def fchdir(self, _fd: int) -> None: ...

    def chdir(self, _path: str) -> None: ...

    # Processes.

    def getpid(self) -> int:
        return self.actor().own_pid

    def start_time(self, pid: int) -> int:
        """No pid comes again here."""
        return pid

    def is_stopped(self, _pid: int, _start_time: int) -> bool:
        return False

    def waitpid(self, _pid: int, _options: int) -> tuple[int, int]:
        children = self.actor().children
        if children.zombies:
            return children.zombies.pop(0)
        if children.has_any():
            return 0, 0
        raise ChildProcessError

    def wait4(self, pid: int, options: int) -> tuple[int, int, Any]:
        return (*self.waitpid(pid, options), SimpleNamespace(ru_utime=0, ru_stime=0))

    def waitid(self, kind: int, _pid: int, _options: int) -> None:
        if kind == os.P_ALL and not self.actor().children.has_any():
            raise ChildProcessError

    # Sockets, time and threads.

    def make_door(self, _family: int) -> Listener:
        return Listener(self)

    def accept(self, listener: Listener) -> socket.socket:
        return listener.accept()

    def time_ns(self) -> int:
        return self.machine.world.wall_ms() * 1_000_000

    def monotonic(self) -> float:
        return self.machine.world.now_s

    def sleep(self, _seconds: float) -> None: ...

    def allocate_lock(self) -> Turn:
        self.made = Turn(self)
        return self.made

    def start_new_thread(self, run: Callable[[], None], _arguments: tuple[()]) -> None:
        self.actor().begin_thread(run)
