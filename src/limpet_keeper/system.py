"""What the keeper needs of the kernel beyond Python's os: each call says what it returns where the system lacks it."""

from __future__ import annotations

import errno
import os
import sys
import time

from limpet_keeper.bare import c_function, c_int, c_int64, signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

CHILD_ENDED = (signal.SIGCHLD,)
BY_DEFAULT, NOTHING = signal.SIG_DFL, signal.SIG_IGN

LINUX = sys.platform == "linux"

AGAIN_TRIES = 50
AGAIN_S = 0.001

_PR_SET_CHILD_SUBREAPER = 36
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2

if LINUX:
    _prctl = c_function("prctl", c_int, c_int, c_int, c_int, c_int)
    _fallocate = c_function("fallocate", c_int, c_int, c_int64, c_int64)


# What a terminal or a service manager sends to groups, and what a write can bring.
IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


def reset_signals() -> None:
    """Every signal does again what it does by default, whatever was inherited, and none is blocked."""
    signal.set_wakeup_fd(-1)
    # SIGKILL and SIGSTOP have no disposition to reset.
    handle(signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def handle(numbers: Iterable[int], how: signal.Handlers) -> None:
    """From now on these signals do what they do by default, or nothing."""
    for number in numbers:
        signal.signal(number, how)


def become_subreaper() -> bool:
    """From now on every orphan among this process's descendants becomes its child."""
    return LINUX and _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def reserve(fd: int, offset: int, length: int) -> bool:
    """Sets room aside without changing the file's size; False where it cannot be had."""
    return LINUX and _fallocate(fd, _FALLOC_FL_KEEP_SIZE, offset, length) == 0


def punch(fd: int, offset: int, length: int) -> bool:
    """Gives the room of these bytes back and leaves every offset as it was; False where the file system cannot."""
    return LINUX and _fallocate(fd, _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE, offset, length) == 0


def write_at(fd: int, data: bytes | memoryview, offset: int) -> int:
    """One write, of which some bytes went in. "Not now" is nobody's business but ours, unless it stays so."""
    for _ in range(AGAIN_TRIES):
        try:
            return os.pwrite(fd, data, offset)
        except BlockingIOError:
            time.sleep(AGAIN_S)
    return os.pwrite(fd, data, offset)


def free_bytes(fd: int) -> int:
    """What an ordinary user could still write on the file system that holds `fd`."""
    state = os.fstatvfs(fd)
    return state.f_bavail * state.f_frsize


def read_small(path: str) -> bytes:
    """A file of /proc or a cgroup, whole; empty when it is not there (any more)."""
    parts: list[bytes] = []
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            while part := os.read(fd, 4096):
                parts.append(part)
        finally:
            os.close(fd)
    except OSError:
        return b""
    return b"".join(parts)


def boot_id() -> str:
    """Names this boot of the machine; empty where the system does not say."""
    return read_small("/proc/sys/kernel/random/boot_id").decode().strip()


def process_state(pid: int) -> tuple[bool, int, int] | None:
    """Whether a process lives, its parent, and its start time in ticks since boot; None when there is none."""
    fields = _stat(pid)
    if not fields:
        return None
    # One whose first thread has ended looks like a zombie while its other threads live on.
    alive = fields[0] not in b"ZX" or int(fields[17]) > 1
    return alive, int(fields[1]), int(fields[19])


def is_stopped(pid: int, start_time: int) -> bool:
    """Whether that process stands still because of a signal or a debugger."""
    fields = _stat(pid)
    return bool(fields) and int(fields[19]) == start_time and fields[0] in b"Tt"


def _stat(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; none when there is no such process."""
    stat = read_small(f"/proc/{pid}/stat")
    # The name in parentheses may hold anything, parentheses too.
    return stat[stat.rfind(b")") + 2 :].split()


def start_time(pid: int) -> int:
    """Start time of a process in ticks since boot; 0 when unknown. With the pid it names a process for good."""
    state = process_state(pid)
    return state[2] if state else 0


def error_name(error: OSError) -> str:
    """ENOSPC and the like."""
    return errno.errorcode.get(error.errno or 0, str(error.errno))


def signal_number(name: str) -> int | None:
    """The number of `SIGTERM` and the like; None for a name that is none."""
    number = getattr(signal, name, None) if name.startswith("SIG") and not name.startswith("SIG_") else None
    return int(number) if number is not None else None


def signal_name(number: int) -> str:
    """The name of a signal; real-time ones count from SIGRTMIN."""
    # The first in the alphabet is the one in use: SIGABRT, not SIGIOT.
    for name in dir(signal):
        if signal_number(name) == number:
            return name
    return f"SIGRTMIN+{number - signal.SIGRTMIN}" if hasattr(signal, "SIGRTMIN") else f"SIG{number}"
