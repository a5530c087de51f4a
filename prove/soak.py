"""Ten minutes of runs that come and go (M16): the daemon takes no more memory and no more descriptors than it did.

Clients wait for short runs one after the other, as many as the machine gives; old runs are pruned by the daemon itself.
Every few seconds somebody looks at what the daemon holds, and lets it verify all that is kept.
"""

from __future__ import annotations

import contextlib
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.contract.home import Home, json_lines, until
from tests.contract.surface import Http

CONFIG = "[retention]\nmax_bytes = 25165824\ncheck_s = 5\n"
CLIENTS = 4
LOOK_EVERY_S = 10.0
# What comes first is warming up: caches, threads, the first pruned runs.
WARM_SHARE = 0.25
GROWTH_KIB = 1024
MORE_DESCRIPTORS = 12
WAL_MAX_BYTES = 64 << 20
VERIFIED_WITHIN_S = 600
COMMANDS = ("true", "echo out; echo err >&2; exit 3", "seq 1 3000", "printf '\\377\\0'; exit 1")


@dataclass(frozen=True, slots=True)
class Look:
    """What the daemon held at a moment."""

    at_s: float
    anonymous_kib: int
    descriptors: int
    wal_bytes: int
    zombies: int
    kept: int


class Load:
    """Clients that run commands until they are told to stop."""

    def __init__(self, home: Home) -> None:
        self.done = 0
        self.stop = threading.Event()
        self._home = home
        self._turn = threading.Lock()

    def work(self, number: int) -> None:
        http = Http(self._home)
        for turn in range(1 << 62):
            if self.stop.is_set():
                return
            command = COMMANDS[(turn + number) % len(COMMANDS)]
            answer = http.call("shell", {"command": command, "key": f"k{number}-{turn}", "session_id": f"s{number}"})
            # It may have been pruned before its answer could be read: the bound is small.
            assert answer["ok"] or (answer["error"], answer["reason"]) == ("gone", "pruned"), answer
            with self._turn:
                self.done += 1


def status_field(pid: int, name: str) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1])


def zombies_below(pid: int) -> int:
    """Dead processes that the daemon, or a child of its, has not reaped."""
    parents: dict[int, int] = {}
    dead: list[int] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                parents[int(entry.name)] = int(parent)
                if state == "Z":
                    dead.append(int(entry.name))
    return sum(pid in (parents[each], parents.get(parents[each])) for each in dead)


def look(home: Home, pid: int, began_s: float) -> Look:
    wal = home.path / "memory" / "sessions.db-wal"
    return Look(
        at_s=time.monotonic() - began_s,
        anonymous_kib=status_field(pid, "RssAnon"),
        descriptors=len(list(Path(f"/proc/{pid}/fd").iterdir())),
        wal_bytes=wal.stat().st_size if wal.exists() else 0,
        zombies=zombies_below(pid),
        kept=Http(home).ok("daemon.status")["runs"]["total"],
    )


def prove(seconds: int, look_every_s: float = LOOK_EVERY_S, growth_kib: float = GROWTH_KIB) -> str:
    """So long; an AssertionError says what grew."""
    looks: list[Look] = []
    verified = 0
    with contextlib.closing(Home(CONFIG)) as home, ThreadPoolExecutor(CLIENTS) as pool:
        pid = home.start()["pid"]
        load = Load(home)
        began_s = time.monotonic()
        busy = [pool.submit(load.work, n) for n in range(CLIENTS)]
        try:
            while time.monotonic() - began_s < seconds:
                next_s = began_s + (len(looks) + 1) * look_every_s
                until(lambda due_s=next_s: time.monotonic() >= due_s, "the next look", look_every_s + 60)
                for each in busy:
                    if each.done():
                        each.result()
                looks.append(look(home, pid, began_s))
                (told,) = json_lines(home.limpet("verify", "--json", timeout_s=VERIFIED_WITHIN_S).stdout)
                assert told["sound"], told["findings"][:3]
                verified += 1
        finally:
            load.stop.set()
        took_s = time.monotonic() - began_s
        for each in busy:
            each.result(60)
        until(lambda: zombies_below(pid) == 0, "the last dead to be reaped")
    warm = looks[int(len(looks) * WARM_SHARE) :]
    slope = statistics.linear_regression([each.at_s for each in warm], [each.anonymous_kib for each in warm]).slope
    grown_kib = slope * (warm[-1].at_s - warm[0].at_s)
    most_fds, least_fds = max(each.descriptors for each in warm), min(each.descriptors for each in warm)
    wal_bytes = max(each.wal_bytes for each in looks)
    zombies = [each.zombies for each in looks]
    told = (
        f"{load.done} runs in {took_s:.0f} s ({load.done / took_s:.0f} a second), {looks[-1].kept} kept at the end\n"
        f"memory of its own: {warm[0].anonymous_kib} KiB after a quarter, {warm[-1].anonymous_kib} KiB at the end, "
        f"{grown_kib:+.0f} KiB by the slope ({growth_kib} allowed)\n"
        f"descriptors: {least_fds} to {most_fds}; WAL: {wal_bytes >> 10} KiB at most; "
        f"unreaped at a look: {max(zombies)} at most; verified {verified} times: nothing found"
    )
    assert grown_kib <= growth_kib, told
    assert most_fds - least_fds <= MORE_DESCRIPTORS, told
    assert wal_bytes <= WAL_MAX_BYTES, told
    assert statistics.median(zombies) == 0, told
    return told
