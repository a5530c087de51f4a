"""Finds every process of the run and signals it, whatever session, group or parent it chose."""

from __future__ import annotations

import os

from limpet_keeper import system
from limpet_keeper.bare import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

# A hydra is stopped in a few rounds; after this many, what is known so far is killed, and the search begins anew.
FREEZE_ROUNDS = 200


class Found:
    """A process as it was seen in the tree: the parent and start time tell it from a later one of the same pid."""

    __slots__ = ("parent", "pid", "start_time")

    def __init__(self, pid: int, parent: int, start_time: int) -> None:
        self.pid = pid
        self.parent = parent
        self.start_time = start_time


def _children(pid: int) -> Iterator[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        for child in system.read_small(f"/proc/{pid}/task/{task}/children").split():
            yield int(child)


def _all_by_parent() -> dict[int, list[int]]:
    by_parent: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (state := system.process_state(int(name))):
            by_parent.setdefault(state[1], []).append(int(name))
    return by_parent


def descendants(root: int) -> dict[int, Found]:
    """Every living process below `root`, by pid. One that forks meanwhile may be found only the next time.

    A pid alone proves nothing: its process may end and the number go to a stranger at any moment. So a process counts
    only as a child of one that is still itself after the child was looked at, or as a child of `root`, which is us.
    """
    # A kernel without the children file has every process looked at instead.
    by_parent = None if os.path.exists(f"/proc/{root}/task/{root}/children") else _all_by_parent()
    found: dict[int, Found] = {}
    unvisited = [Found(root, 0, system.start_time(root))]
    while unvisited:
        above = unvisited.pop()
        seen: list[Found] = []
        for pid in _children(above.pid) if by_parent is None else by_parent.get(above.pid, ()):
            state = system.process_state(pid)
            if pid not in found and state is not None and state[0] and state[1] in (above.pid, root):
                seen.append(Found(pid, state[1], state[2]))
        if above.pid != root and system.start_time(above.pid) != above.start_time:
            seen = [each for each in seen if each.parent == root]
        for each in seen:
            found[each.pid] = each
            unvisited.append(each)
    return found


def send(process: Found, number: int) -> bool:
    """Signals exactly the process that was found; False when it is gone. PermissionError is the caller's to tell."""
    if not hasattr(os, "pidfd_open"):
        os.kill(process.pid, number)
        return True
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        state = system.process_state(process.pid)
        # One whose parent went meanwhile was adopted by the subreaper: by us.
        if state is None or state[2] != process.start_time or state[1] not in (process.parent, os.getpid()):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


class Tree:
    """The processes below the keeper, and those among them that it was not allowed to signal."""

    def __init__(self) -> None:
        self.cgroup: str | None = None
        self.denied: dict[int, int] = {}

    def living(self) -> dict[int, Found]:
        """Everything of the run that lives now."""
        return descendants(os.getpid())

    def signal(self, *numbers: int) -> int:
        """Sends each of `numbers` to every process of the run; how many it reached."""
        return sum(self._send(process, *numbers) for process in self.living().values())

    def _send(self, process: Found, *numbers: int) -> bool:
        try:
            return all([send(process, number) for number in numbers])  # noqa: C419  (each is to be sent)
        except PermissionError:
            self.denied[process.pid] = process.start_time
            return False

    def kill(self) -> None:
        """Stops all, looks again until nobody new is there, and kills all. What is forked meanwhile comes next time."""
        if self.cgroup is not None:
            try:
                write_file(f"{self.cgroup}/cgroup.kill", b"1")
            except OSError:
                pass  # an old kernel: the walk below does it alone
        stopped: dict[int, Found] = {}
        for _ in range(FREEZE_ROUNDS):
            fresh = [each for each in self.living().values() if not _is_known(each, stopped)]
            if not fresh:
                break
            for process in fresh:
                stopped[process.pid] = process
                self._send(process, signal.SIGSTOP)
        for process in stopped.values():
            self._send(process, signal.SIGKILL)

    def only_denied_left(self) -> bool:
        """Whether nothing lives any more but what may not be signalled."""
        living = self.living()
        return bool(living) and all(self.denied.get(pid) == process.start_time for pid, process in living.items())


def _is_known(process: Found, stopped: dict[int, Found]) -> bool:
    known = stopped.get(process.pid)
    return known is not None and known.start_time == process.start_time


def write_file(path: str, data: bytes) -> None:
    """Writes a control file of the kernel's in one write."""
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, data)
    finally:
        os.close(fd)
