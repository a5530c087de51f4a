"""What a process costs, from /proc: memory as it is shared out, its peak, and time on a CPU."""

from __future__ import annotations

import select
from collections.abc import Iterable
from pathlib import Path


def _field_kib(path: Path, name: str) -> int:
    for line in path.read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])
    raise RuntimeError(f"{path} has no {name}")


def pss_kib(pid: int) -> int:
    """Memory of the process, each shared page divided among those that share it."""
    return _field_kib(Path(f"/proc/{pid}/smaps_rollup"), "Pss")


def private_kib(pid: int) -> int:
    """What would be given back if only this process ended."""
    path = Path(f"/proc/{pid}/smaps_rollup")
    return _field_kib(path, "Private_Clean") + _field_kib(path, "Private_Dirty")


def total_pss_kib(pids: Iterable[int]) -> int:
    return sum(pss_kib(pid) for pid in pids)


def rss_kib(pid: int) -> int:
    return _field_kib(Path(f"/proc/{pid}/status"), "VmRSS")


def peak_rss_kib(pid: int) -> int:
    return _field_kib(Path(f"/proc/{pid}/status"), "VmHWM")


def cpu_s(pid: int) -> float:
    """Seconds on a CPU so far, of all threads that live, in nanosecond steps."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def switches(pid: int) -> int:
    """How often it gave up a CPU by itself: how often it waited."""
    return _field_kib(Path(f"/proc/{pid}/status"), "voluntary_ctxt_switches")


def wait_gone(pidfd: int, within_s: float) -> bool:
    """Whether the process behind this pidfd ended within that time."""
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    return bool(poller.poll(within_s * 1000))


def children(pid: int) -> list[int]:
    """The processes that its threads started and that live."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(child) for task in tasks for child in (task / "children").read_text().split()]
