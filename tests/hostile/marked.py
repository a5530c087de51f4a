"""Marks all processes of one hostile run, tells whether any is left, names those it finds, and sweeps them up."""

from __future__ import annotations

import os
import re
import secrets
import select
import shutil
import signal
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from tests.hostile.cgroups import hierarchy, remove

LONGEST_S = 60
PREFIX = "limpet-hostile-"
MOST_PROCESSES = 250


@dataclass(frozen=True, slots=True)
class Left:
    """A process that carries a marker: its state, as one letter, and its command line."""

    pid: int
    state: str
    command: str


def carries(task: Path, marker: bytes) -> bool:
    """Whether a thread has the marker in its arguments or its environment (a dead first thread has neither)."""
    for name in ("cmdline", "environ"):
        try:
            if marker in (task / name).read_bytes():
                return True
        except OSError:
            continue
    return False


def is_marked(pid: int, marker: str) -> bool:
    """Whether any thread of the process carries the marker."""
    try:
        return any(carries(task, marker.encode()) for task in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return False


def scan(marker: str) -> list[Left]:
    """Every process with the marker, whoever its parent is; one that hops faster than this reads is not seen."""
    found: list[Left] = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            if is_marked(int(process.name), marker):
                state = (process / "stat").read_text("latin-1").rpartition(")")[2].split()[0]
                command = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode("latin-1")
                found.append(Left(int(process.name), state, command))
        except OSError:
            continue  # gone while it was looked at
    return found


class Marked:
    """One marker: a directory named by it, with the lifeline and the log that all processes of the run hold open."""

    def __init__(self, programs: Path, life_s: int = LONGEST_S) -> None:
        self.programs = programs
        self.home = Path(tempfile.mkdtemp(prefix=PREFIX + secrets.token_hex(8) + "-"))
        self.home.chmod(0o755)
        self.fuse_at_s = int(time.monotonic()) + life_s
        self.line, self.log = self.home / "line", self.home / "log"
        os.mkfifo(self.line)
        self.log.touch()
        for file in (self.line, self.log):
            file.chmod(0o666)
        self.bound = self.make_bound()
        self.reader = os.open(self.line, os.O_RDONLY | os.O_NONBLOCK)

    def __enter__(self) -> Marked:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sweep()

    def make_bound(self) -> Path | None:
        """A pids cgroup, which each program joins: none may multiply past it, should it go wrong."""
        mount = hierarchy("pids")
        if mount is None:
            return None
        bound = mount / self.home.name
        bound.mkdir()
        (bound / "pids.max").write_text(str(MOST_PROCESSES))
        (self.home / "bound").write_text(str(bound / "cgroup.procs"))
        return bound

    def argv(self, program: str, *options: str) -> list[str]:
        return [str(self.programs / program), str(self.home), str(self.fuse_at_s), *options]

    @property
    def env(self) -> dict[str, str]:
        return {"PATH": "/usr/bin:/bin", "MARKER": self.home.name}

    def alive(self) -> bool:
        """Whether any process holds the lifeline. Exact: no session, parent, name, state or speed hides from it."""
        try:
            return os.read(self.reader, 1) != b""
        except BlockingIOError:
            return True

    def wait_dead(self, within_s: float) -> bool:
        """Whether all are dead within that time; the end of the lifeline wakes this up."""
        poll = select.poll()
        poll.register(self.reader, 0)  # the hang-up alone
        return not self.alive() or bool(poll.poll(within_s * 1000))

    def left(self) -> list[Left]:
        return scan(self.home.name)

    def said(self, what: str, program: str | None = None) -> list[tuple[str, int]]:
        """Who noted that in the log: program and pid, as often as it was."""
        lines = re.findall(r"^(\w+) (\w+) (\d+)$", self.log.read_text(), re.MULTILINE)
        return [(name, int(pid)) for noted, name, pid in lines if noted == what and program in (None, name)]

    def counts(self, what: str) -> Counter[str]:
        return Counter(name for name, _ in self.said(what))

    def kill(self, pid: int) -> bool:
        """SIGKILL to that process, if it has the marker, looked at after the pidfd was opened; whether it was sent."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError:
            return False
        try:
            if not is_marked(pid, self.home.name):
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except ProcessLookupError:
            return False
        finally:
            os.close(handle)
        return True

    def sweep(self) -> None:
        """Ends whatever is left: without the lifeline's file nothing forks on, then all that can be seen are killed."""
        if not self.home.exists():
            return
        self.line.unlink(missing_ok=True)
        deadline = time.monotonic() + 10
        while not self.wait_dead(0.05) and time.monotonic() < deadline:
            for each in self.left():
                self.kill(each.pid)
        os.close(self.reader)
        shutil.rmtree(self.home)
        if self.bound is not None:
            remove(self.bound)
