"""SIGKILL to the daemon at each of its system calls, from the request for a run to that run's end (F04, M4).

First a run is traced to its end, which tells all calls that the daemon makes for it, thread by thread. Then one daemon
after the other dies as it enters the nth of each of them. strace counts for each thread and each call by itself.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import tempfile
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from tests.contract.fifos import Gate
from tests.contract.home import Answer, Home, running, until
from tests.contract.surface import Http
from tests.faults.injectors import traced

CALL = re.compile(r"^(\d+) +(\w+)\(")
# Always under way in some thread when strace comes, and so no place to die at.
WAITING = ("epoll_wait", "epoll_pwait", "futex", "restart_syscall")
DIES_WITHIN_S = 30
SAID = b"".join(b"%d\n" % n for n in range(1, 2001)) + b"more\n"


@dataclass(slots=True)
class Sweep:
    """One home, and a run in it for each death."""

    home: Home
    place: Path
    gate: Gate
    runs: int = 0
    pid: int = 0
    is_opened: bool = False

    def start(self) -> int:
        self.pid = self.home.start()["pid"]
        return self.pid

    def end(self) -> None:
        """SIGKILL to the daemon, which is no part of the sweep."""
        if running(self.pid):
            os.kill(self.pid, signal.SIGKILL)
            until(lambda: not running(self.pid), "the daemon to be gone")

    def open(self) -> None:
        """Lets the run go on, if nobody did."""
        if not self.is_opened:
            self.gate.open()
        self.is_opened = True

    def ask(self, key: str) -> str:
        command = f"echo {key} >>'{self.place}/starts'; seq 1 2000; {self.gate.wait}echo more; echo err >&2; exit 7"
        return Http(self.home).spawn(command, key=key, labels=[key])

    def follow(self, key: str) -> None:
        """Asks for a run and follows it to its end: all that the daemon does for one."""
        http_ = Http(self.home)
        run_id = self.ask(key)
        while http_.read(run_id, wait_ms=60_000)["total_bytes"] < len(SAID) - 5:
            pass
        self.open()
        told: Answer = http_.finish(run_id)
        assert told["exit_code"] == 7, told
        http_.ok("shell", {"action": "log", "run_id": run_id})

    def calls(self) -> Counter[str]:
        """How often at the most one thread makes each call for a run."""
        with traced(self.start(), self.place / "all", calls="all") as trace:
            self.follow("traced")
            trace.detach()
        self.end()
        self.runs += 1
        by_thread = Counter(found.groups() for line in trace.lines() if (found := CALL.match(line)))
        most: Counter[str] = Counter()
        for (_, name), count in by_thread.items():
            most[name] = max(most[name], count)
        return Counter({name: count for name, count in most.items() if name not in WAITING})

    def die(self, call: str, nth: int) -> bool:
        """One daemon that dies there, if it comes there; then the next one's word on all of it."""
        key = f"{call}-{nth}"
        self.is_opened = False
        inject = f"{call}:signal=KILL:when={nth}"
        with traced(self.start(), self.place / key, calls=call, inject=[inject]) as trace:
            try:
                self.follow(key)
                trace.detach()
            except (OSError, http.client.HTTPException):
                trace.wait_end(DIES_WITHIN_S)
        died = not running(self.pid)
        assert died == trace.killed(), f"{key}: killed by the injector: {trace.killed()}"
        (self.place / key).unlink()
        self.end()
        self.runs += 1
        self.check(key)
        return died

    def check(self, key: str) -> None:
        """Asked for again it is the one run there is; it was started once, and nothing of it is missing."""
        self.start()
        http_ = Http(self.home)
        run_id = self.ask(key)
        self.open()
        facts = http_.finish(run_id)
        assert (facts["exit_code"], facts["attempt"], facts["ended_by"]) == (7, 1, "self"), (key, facts)
        assert (http_.bytes_of(run_id), http_.bytes_of(run_id, "stderr")) == (SAID, b"err\n"), key
        assert [run["run_id"] for run in http_.ok("runs.list", {"label": key})["runs"]] == [run_id], key
        assert (self.place / "starts").read_text().split().count(key) == 1, f"{key} was started more than once"
        assert http_.ok("daemon.status")["runs"]["total"] == self.runs, f"{key}: a run that nobody asked for"
        found = http_.ok("runs.verify")["findings"]
        assert not found, (key, found[:3])
        self.end()


def prove(most_deaths: int, each: int = 1000, only: Collection[str] = ()) -> str:
    """Dies at most so often, at the first `each` of each call (of some alone); an AssertionError says what was lost."""
    reached: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(contextlib.closing(Home()))
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="limpet-prove-")))
        sweep = Sweep(home, place, stack.enter_context(Gate(place)))
        calls = sweep.calls()
        points = [(name, nth) for name in sorted(calls) for nth in range(1, min(each, calls[name]) + 1)]
        points = [point for point in points if not only or point[0] in only]
        for name, nth in points[:most_deaths]:
            reached[name] += sweep.die(name, nth)
    kinds = [f"{name} {count}" for name, count in sorted(reached.items()) if count]
    told = [
        f"the daemon killed at {reached.total()} calls of {len(kinds)} kinds, from the request for a run to its end:",
        "each run was there once, started once, whole, with its exit code; verify found nothing",
        f"({len(points)} calls were to be met; not all come in each run) {', '.join(kinds)}",
    ]
    return "\n".join(told)
