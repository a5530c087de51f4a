"""Whether what runs on a terminal waits for somebody to type: the kernel's word, where it gives one."""

import contextlib
import os
import platform
import struct
import termios
from pathlib import Path
from typing import Final

import msgspec

_SYSCALLS: Final = {
    "x86_64": {"read": (0,), "poll": (7, 271), "select": (23, 270), "epoll": (232, 281, 441)},
    "aarch64": {"read": (63,), "poll": (73,), "select": (72,), "epoll": (22, 441)},
}
_CALLS: Final = {number: name for name, numbers in _SYSCALLS.get(platform.machine(), {}).items() for number in numbers}
_POLLIN: Final = 1
_MOST_FDS: Final = 1024
_MOST_PROCESSES: Final = 1000


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """Null is what the system does not tell: it has no such file, or another user's process is in front.

    `waits`: a process in the terminal's foreground stands in a read of it, or waits for it among others.
    """

    waits: bool | None
    echo: bool | None
    line_mode: bool | None
    pids: list[int]


UNKNOWN: Final = Input(waits=None, echo=None, line_mode=None, pids=[])


def input_of(leader: int) -> Input:
    """For the terminal of that process, which leads its session. Blocking, some milliseconds."""
    try:
        terminal = os.open(f"/proc/{leader}/fd/1", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return UNKNOWN
    try:
        flags = int(termios.tcgetattr(terminal)[3])
        device = os.fstat(terminal).st_rdev
        group = int(_stat(leader)[5])
    except (OSError, termios.error, ValueError, IndexError):
        return UNKNOWN
    finally:
        os.close(terminal)
    pids = _members(leader, group)
    said = [_waits(pid, device) for pid in pids]
    waits = True if True in said else None if None in said or not said else False
    return Input(waits=waits, echo=bool(flags & termios.ECHO), line_mode=bool(flags & termios.ICANON), pids=pids)


def _stat(pid: int | str) -> list[bytes]:
    """What stands behind the name: state, parent, group, session, terminal, its foreground group."""
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()


def _members(leader: int, group: int) -> list[int]:
    """The processes of that group below the leader."""
    found: list[int] = []
    left = [leader]
    while left and len(found) < _MOST_PROCESSES:
        pid = left.pop()
        with contextlib.suppress(OSError, IndexError):
            if int(_stat(pid)[2]) == group:
                found.append(pid)
            for thread in Path(f"/proc/{pid}/task").iterdir():
                left += map(int, (thread / "children").read_text().split())
    return sorted(found)


def _waits(pid: int, device: int) -> bool | None:
    """Whether one of its threads waits for that terminal."""
    try:
        told = [_thread_waits(pid, thread, device) for thread in Path(f"/proc/{pid}/task").iterdir()]
    except FileNotFoundError:
        return False
    except OSError:
        return None
    return True if True in told else None if None in told else False


def _thread_waits(pid: int, thread: Path, device: int) -> bool | None:
    if not _CALLS:
        return None
    words = (thread / "syscall").read_text().split()
    if not words or not words[0].isdecimal():
        return False  # it runs
    call = _CALLS.get(int(words[0]))
    arguments = [int(word, 16) for word in words[1:7]]
    if call == "read":
        return _is_terminal(pid, arguments[0], device)
    if call == "poll":
        data = _memory(pid, arguments[0], 8 * min(arguments[1], _MOST_FDS))
        asked = struct.iter_unpack("=ihh", data)
        return any(events & _POLLIN and _is_terminal(pid, fd, device) for fd, events, _ in asked)
    if call == "select":
        if not arguments[1]:
            return False
        count = min(arguments[0], _MOST_FDS)
        bits = int.from_bytes(_memory(pid, arguments[1], -(-count // 64) * 8), "little")
        return any(bits >> fd & 1 and _is_terminal(pid, fd, device) for fd in range(count))
    if call == "epoll":
        lines = Path(f"/proc/{pid}/fdinfo/{arguments[0]}").read_text().splitlines()
        waited = [line.split() for line in lines if line.startswith("tfd:")]
        return any(int(line[3], 16) & _POLLIN and _is_terminal(pid, int(line[1]), device) for line in waited)
    return False


def _is_terminal(pid: int, fd: int, device: int) -> bool:
    try:
        found = Path(f"/proc/{pid}/fd/{fd}").stat().st_rdev
    except OSError:
        return False
    return found in (device, _CONTROLLING)


_CONTROLLING: Final = os.makedev(5, 0)
"""/dev/tty: each process's own."""


def _memory(pid: int, address: int, size: int) -> bytes:
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        memory.seek(address)
        return memory.read(size)
