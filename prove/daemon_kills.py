"""The daemon killed with SIGKILL a thousand times under a hundred runs that write numbered lines (F01, F04, M1).

Kills land where they are aimed: at the nth time that the daemon begins some work, and so many microseconds later, or at
any moment. Probes in shared memory tell what it was at when it died. Clients poll all the while by both cursors, others
start short runs with keys. At the end no run, line or exit code may be missing or twice, and every cursor that was ever
answered must still give what it gave.
"""

from __future__ import annotations

import collections
import contextlib
import http.client
import json
import os
import random
import select
import signal
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from prove import probes
from prove.history import Reader
from prove.probes import Sight
from tests.contract.fifos import Gate
from tests.contract.home import Answer, Home, until
from tests.contract.surface import Http

RUNS = 100
AT_LEAST_HIT = 0.9
DIES_WITHIN_S = 10.0
BACK_WITHIN_S = 60.0
PAUSE_S = 0.005

# Bash's own words alone: a hundred of them must cost little. A line down its fifo ends each of them.
WRITER = """
exec 8<>'{go}'; i=0
until read -r -t {pace} -u 8 go; do
  echo $((i++)); if (( i % 32 == 0 )); then for j in {{1..100}}; do echo $((i++)); done; fi
done
echo end $i; exit {code}
"""
ANY_MOMENT_MS = 800
# What is chosen, how often, at which of its beginnings (from 1 to that) and how long after it (up to that, in µs).
AIMS: tuple[tuple[int | None, int, int, int], ...] = (
    (None, 6, 0, 0),
    (probes.IMPORTS, 1, 1, 250_000),
    (probes.OPENING, 2, 1, 15_000),
    (probes.ADOPTING, 4, 1, 30_000),
    (probes.SERVING, 1, 1, 100_000),
    (probes.INGESTING, 4, 60, 30),
    (probes.READING, 2, 20, 5),
    (probes.CLAIMING, 2, 2, 30),
    (probes.RECORDING, 3, 3, 30),
    (probes.ANSWERING, 2, 20, 10),
    (probes.COMMIT_TARGET, 4, 4, 400),
    (probes.SYNC_TARGET, 3, 2, 500),
)


class ProbedHome(Home):
    """A home whose daemon has probes; it is started and killed, and nothing else starts another."""

    def __init__(self) -> None:
        super().__init__()
        self.sight = Sight(self.base / "sight")
        self.daemon: subprocess.Popen[bytes] | None = None

    def spawn_daemon(self) -> subprocess.Popen[bytes]:
        """Begins one, without waiting for it."""
        with (self.base / "serve.err").open("ab") as told:
            self.daemon = subprocess.Popen(
                [sys.executable, probes.__file__, str(self.base / "sight")],
                env=self.env,
                cwd=self.base,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=told,
            )
        return self.daemon

    def end_daemon(self) -> None:
        if self.daemon is not None:
            self.daemon.kill()
            self.daemon.wait()

    def told(self) -> str:
        return (self.base / "serve.err").read_text()[-3000:]


def patiently(stop: threading.Event, ask: Callable[[], int]) -> int:
    """The answer, however many daemons it takes."""
    until_s = time.monotonic() + BACK_WITHIN_S
    while True:
        try:
            return ask()
        except (OSError, http.client.HTTPException, json.JSONDecodeError):
            # It was killed, or is not there yet; half an answer is none.
            assert time.monotonic() < until_s, "no daemon came back"
            stop.wait(PAUSE_S)


class Clients:
    """Those who ask while the daemon comes and goes."""

    def __init__(self, home: ProbedHome, readers: list[Reader], starts: Path) -> None:
        self.http = Http(home)
        self.readers = readers
        self.starts = starts
        self.started: dict[int, str] = {}
        self.stop = threading.Event()
        self._pool = ThreadPoolExecutor(2)
        self._work: list[Future[None]] = [self._pool.submit(work) for work in (self._follow, self._start)]

    def check(self) -> None:
        """Raises what one of them met."""
        for work in self._work:
            if work.done():
                work.result()

    def finish(self) -> None:
        self.stop.set()
        for work in self._work:
            work.result()
        self._pool.shutdown()

    def _follow(self) -> None:
        while not self.stop.is_set():
            for turn, reader in enumerate(self.readers):
                ask = reader.poll if turn % 2 else reader.read
                patiently(self.stop, lambda ask=ask: ask(self.http))
                if self.stop.wait(PAUSE_S):
                    return
            self.readers.append(self.readers.pop(0))

    def _start(self) -> None:
        number = 0
        while not self.stop.wait(4 * PAUSE_S):
            self.ask_to_start(number)
            number += 1

    def ask_to_start(self, number: int) -> str:
        """A short run under a key of its own, asked for until it is answered: the same whenever it is asked for."""
        command = f"echo {number} >>'{self.starts}'; echo said {number}; exit {number % 200}"

        def ask() -> int:
            run_id = self.http.spawn(command, key=f"key-{number}")
            assert self.started.setdefault(number, run_id) == run_id, f"key-{number} started twice"
            return 0

        patiently(self.stop, ask)
        return self.started[number]


@contextlib.contextmanager
def many_runs(count: int, pace_s: float) -> Generator[tuple[ProbedHome, list[str], list[Gate]]]:
    """So many runs that write under a daemon with probes, and what ends each of them."""
    home = ProbedHome()
    with contextlib.ExitStack() as stack:
        gates = [stack.enter_context(Gate(home.base, f"go{number}")) for number in range(count)]
        stack.callback(home.close)
        stack.callback(home.end_daemon)
        home.sight.begin()
        home.spawn_daemon()
        stop = threading.Event()
        patiently(stop, lambda: len(Http(home).ok("daemon.status")))
        commands = [WRITER.format(go=gate.path, pace=pace_s, code=n) for n, gate in enumerate(gates, 1)]
        made = [Http(home).spawn(command, labels=["writer"]) for command in commands]
        for run_id in made:
            assert Http(home).read(run_id, wait_ms=60_000)["total_bytes"] > 0
        yield home, made, gates


class Killer:
    """Kills one daemon after the other, and counts what each of them was at."""

    def __init__(self, home: ProbedHome, seed: int) -> None:
        self.home = home
        self.chance = random.Random(seed)
        self.at: collections.Counter[tuple[int, int, int]] = collections.Counter()
        self.times_ms: list[int] = []
        self.adopting_ms: list[float] = []
        self.begun = 0
        self.not_met = 0

    def kill(self, *, ordered: bool) -> None:
        """Ends the daemon that lives: by the order that it was begun with, or at any moment."""
        daemon = self.home.daemon
        assert daemon is not None
        handle = os.pidfd_open(daemon.pid)
        try:
            death = select.poll()
            death.register(handle, select.POLLIN)
            if not death.poll(DIES_WITHIN_S * 1000 if ordered else self.chance.uniform(0, ANY_MOMENT_MS)):
                self.not_met += ordered
                daemon.send_signal(signal.SIGKILL)
        finally:
            os.close(handle)
        ended = daemon.wait()
        assert ended == -signal.SIGKILL, f"the daemon ended by itself ({ended}): {self.home.told()}"
        self.times_ms.append(time.time_ns() // 1_000_000)
        self.at[self.home.sight.state()] += 1
        took_s = self.home.sight.adopting_s()
        if took_s is not None:
            self.adopting_ms.append(took_s * 1000)

    def begin_and_kill(self) -> None:
        """Begins a daemon that is to die, and sees that it does; the first ones by each aim in turn."""
        weights = [aim[1] for aim in AIMS]
        aim = AIMS[self.begun] if self.begun < len(AIMS) else self.chance.choices(AIMS, weights)[0]
        self.begun += 1
        target, _, entries, delay_us = aim
        if target is None:
            self.home.sight.begin()
        else:
            self.home.sight.begin(target, self.chance.randint(1, entries), self.chance.randint(1, delay_us))
        self.home.spawn_daemon()
        self.kill(ordered=target is not None)

    def table(self) -> list[str]:
        """Kills by what the main thread was at, and what went on beside it."""
        head = f"{'the main thread was at':<28}{'kills':>6}{'while committing':>18}{'while syncing':>15}"
        rows = [head]
        for phase, name in enumerate(probes.PHASES):
            each = {state: number for state, number in self.at.items() if state[0] == phase}
            committing = sum(number for state, number in each.items() if state[1] == probes.COMMITTING)
            syncing = sum(number for state, number in each.items() if state[2] == probes.SYNCING)
            rows.append(f"{name:<28}{sum(each.values()):>6}{committing:>18}{syncing:>15}")
        return rows


def output_of(last: int) -> bytes:
    """What a writer says that came to that number."""
    return b"".join(b"%d\n" % number for number in range(last)) + b"end %d\n" % last


def check_writer(http_: Http, reader: Reader, code: int) -> int:
    """The run ended as it did, and all its lines are there once; how many that were."""
    facts = http_.finish(reader.run_id)
    assert (facts["status"], facts["exit_code"], facts["attempt"]) == ("failed", code, 1), facts
    reader.finish(http_)
    said = bytes(reader.said)
    last = int(said.rstrip(b"\n").rpartition(b"end ")[2])
    assert said == output_of(last), f"{reader.run_id}: {len(said)} bytes are not the numbers up to {last}"
    told = http_.ok("shell", {"action": "poll", "run_id": reader.run_id, "since_seq": reader.since_seq})
    assert (told["items"], told["next_seq"]) == ([], reader.since_seq), (reader.run_id, told)
    return last


def check_started(clients: Clients) -> None:
    """Each short run was started once, and ended as it did."""
    for number, run_id in clients.started.items():
        again = clients.ask_to_start(number)
        assert again == run_id, f"key-{number} started {run_id}, and then {again}"
        facts = clients.http.finish(run_id)
        assert (facts["exit_code"], facts["attempt"]) == (number % 200, 1), facts
        said = clients.http.bytes_of(run_id)
        assert said == b"said %d\n" % number, f"{run_id} (key-{number}) said {said[:100]!r}: {facts}"
    counted = collections.Counter(map(int, clients.starts.read_text().split()))
    assert counted == collections.Counter(list(clients.started)), f"not each was started once: {counted.most_common(3)}"


def least_hit(home: Home, run_ids: list[str], times_ms: list[int]) -> int:
    """How many runs were between their first and their last byte when the daemon was killed, at the least."""
    spans: list[tuple[int, int]] = []
    for run_id in run_ids:
        journal = home.path / "runs" / run_id / "1" / "keeper.journal"
        wrote = [line for line in journal.read_bytes().splitlines() if b'"fact":"wrote"' in line]
        first, last = (json.loads(line[11:])["at"] for line in (wrote[0], wrote[-1]))
        spans.append((first, last))
    return min(sum(first < at < last for first, last in spans) for at in times_ms)


def listed(http_: Http) -> list[str]:
    found: list[str] = []
    page: Answer = {"next_cursor": None}
    while True:
        page = http_.ok("runs.list", {"limit": 1000, "cursor": page["next_cursor"]})
        found += [run["run_id"] for run in page["runs"]]
        if page["next_cursor"] is None:
            return found


def check_listed(clients: Clients, known: set[str]) -> None:
    """There is no run but those that were asked for."""
    found = listed(clients.http)
    assert len(found) == len(set(found)), "a run is listed twice"
    odd = [clients.http.facts(run_id) for run_id in sorted(set(found) ^ known)]
    assert not odd, f"{len(odd)} runs that nobody asked for, or that are not there: {odd[:2]}"


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def prove(kills: int, runs: int = RUNS, pace_s: float = 0.5, seed: int = 1) -> str:
    """So many kills; an AssertionError says what did not hold."""
    with many_runs(runs, pace_s) as (home, made, gates):
        killer = Killer(home, seed)
        readers = [Reader(run_id) for run_id in made]
        clients = Clients(home, list(readers), home.base / "starts")
        try:
            clients.starts.touch()
            killer.kill(ordered=False)
            while len(killer.times_ms) < kills:
                killer.begin_and_kill()
                clients.check()
            home.sight.begin()
            home.spawn_daemon()
        finally:
            clients.finish()
        for gate in gates:
            gate.open()
        lines = sum(check_writer(clients.http, reader, number + 1) for number, reader in enumerate(readers))
        hit = least_hit(home, made, killer.times_ms)
        assert hit >= AT_LEAST_HIT * runs, f"a kill fell between first and last byte of only {hit} runs"
        check_started(clients)
        check_listed(clients, {*made, *clients.started.values()})
        until(lambda: not list(home.path.glob("runs/*/1/control.sock")), "the keepers to be gone")
        found = clients.http.ok("runs.verify")["findings"]
        assert not found, found[:3]
        cursors = sum(reader.check_all(clients.http) for reader in readers)
    took = killer.adopting_ms
    lines_told = [
        f"{kills} times SIGKILL to the daemon under {runs} runs, each between first and last byte of at least {hit}",
        *killer.table(),
        f"({killer.not_met} came from outside because what was aimed at did not come)",
        f"{lines} numbered lines and {runs} exit codes: 0 runs lost, 0 bytes lost or doubled",
        f"{len(clients.started)} short runs under keys, started while the daemon came and went: each once",
        f"{cursors} cursors that were ever answered asked again: the same items and bytes; verify finds nothing",
        f"taking them over: {statistics.median(took):.0f} ms (median), {percentile(took, 0.99):.0f} ms (99 of 100)",
    ]
    return "\n".join(lines_told)
