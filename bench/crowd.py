"""S6: 200 runs at once, 1,000 lines each over 2 s: how long, what is lost, what it costs in CPU and memory."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType

from bench.build import limit_program
from bench.daemons import Caller, Daemon, answer
from bench.measure import Beside, Facts, Row, Series, Setting, median
from bench.peers.side import Peers
from bench.process_cost import children, cpu_s, total_pss_kib

RUNS, LINES, EACH, PERIOD_MS = 200, 1000, 10, 20
SAMPLED_EVERY_S = 0.05


def command(lines: int = LINES) -> str:
    return f"exec {limit_program('chatter')} {lines} {EACH} {PERIOD_MS}"


def expected_output() -> str:
    """What one run says, paced or not."""
    return subprocess.run(
        [limit_program("chatter"), str(LINES), str(LINES - 1), "0"], check=True, stdout=-1, text=True
    ).stdout


def nursery_of(daemon_pid: int) -> int:
    """The daemon's child that forks keepers."""
    return next(pid for pid in children(daemon_pid) if b"nursery" in Path(f"/proc/{pid}/cmdline").read_bytes())


def keepers_at_work(daemon_pid: int) -> list[int]:
    """Those that keep a run; idle ones have a launcher under them, whose program is the keeper's own."""
    kept = children(nursery_of(daemon_pid))
    return [pid for pid in kept if any(_program(child) != _program(pid) for child in children(pid))]


def _program(pid: int) -> str:
    return str(Path(f"/proc/{pid}/exe").readlink())


class KeepersCpu:
    """What keepers used, sampled from outside: of each, the last 50 ms before its end may be missing."""

    def __init__(self, daemon_pid: int) -> None:
        self._nursery = nursery_of(daemon_pid)
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample)

    def __enter__(self) -> KeepersCpu:
        self._look()
        self._first = dict(self._last)  # those that wait already
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()

    def _sample(self) -> None:
        while not self._over.wait(SAMPLED_EVERY_S):
            self._look()

    def _look(self) -> None:
        for pid in children(self._nursery):
            try:
                self._last[pid] = cpu_s(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue  # it ended meanwhile

    @property
    def used_s(self) -> float:
        return sum(used - self._first.get(pid, 0.0) for pid, used in self._last.items())


class Crowd:
    """limpet's side, round by round."""

    def __init__(self, caller: Caller, daemon: Daemon) -> None:
        self.caller = caller
        self.daemon = daemon
        self.expected = expected_output()
        self.wall_s: Series = []
        self.cpu_s: Series = []
        self.daemon_cpu_s: Series = []
        self.spawned_s: Series = []
        self.lost_bytes: Series = []

    async def once(self, *, with_cpu: bool) -> None:
        """CPU is sampled in rounds of its own: to sample costs CPU."""
        if not with_cpu:
            self.wall_s.append(await self._run())
            return
        daemon_before_s = cpu_s(self.daemon.pid)
        with KeepersCpu(self.daemon.pid) as keepers:
            await self._run()
        self.daemon_cpu_s.append(cpu_s(self.daemon.pid) - daemon_before_s)
        self.cpu_s.append(self.daemon_cpu_s[-1] + keepers.used_s)

    async def _run(self) -> float:
        began = time.perf_counter()
        said = command()
        spawned = await asyncio.gather(
            *(answer(self.caller, "shell", action="spawn", command=said) for _ in range(RUNS))
        )
        self.spawned_s.append(time.perf_counter() - began)
        run_ids = [each["run_id"] for each in spawned]
        await asyncio.gather(*(self._end(run_id) for run_id in run_ids))
        wall_s = time.perf_counter() - began
        lost = 0
        for run_id in run_ids:
            read = await answer(self.caller, "runs.read", run_id=run_id, stream="stdout", offset=0, max_bytes=1 << 20)
            if not self.expected.startswith(read["data"]):
                raise RuntimeError(f"{run_id} differs from what was said")
            lost += len(self.expected) - len(read["data"])
        self.lost_bytes.append(lost)
        return wall_s

    async def _end(self, run_id: str) -> None:
        await answer(self.caller, "runs.wait", run_ids=[run_id], **{"for": [{"exit": True}]}, timeout_ms=120_000)

    async def pss_kib(self) -> Series:
        """Of each keeper while all runs talk, with its share of what they have in common."""
        spawned = await asyncio.gather(
            *(answer(self.caller, "shell", action="spawn", command=command(50 * LINES)) for _ in range(RUNS))
        )
        pids = keepers_at_work(self.daemon.pid)
        if len(pids) != RUNS:
            raise RuntimeError(f"{len(pids)} keepers for {RUNS} runs")
        each = total_pss_kib(pids) / RUNS
        await asyncio.gather(*(answer(self.caller, "runs.kill", run_id=run["run_id"]) for run in spawned))
        return [each]


def _limit(scratch: Path) -> Facts:
    program = [limit_program("crowd"), str(scratch), str(RUNS), "bash", "-c", command()]
    told: Facts = json.loads(subprocess.run(program, check=True, stdout=subprocess.PIPE).stdout)
    if told["failed"] or told["bytes"] != RUNS * LINES * 64:
        raise RuntimeError(f"the limit lost bytes: {told}")
    return told


async def _measure(setting: Setting, daemon: Daemon) -> list[Row]:
    scratch = setting.directory("limit")
    limit: list[Facts] = []
    beside = Beside()
    async with daemon.client() as client:
        crowd = Crowd(client, daemon)
        with Peers(setting) as peers:
            for _ in range(setting.rounds(4, 1)):
                limit.append(_limit(scratch))
                await crowd.once(with_cpu=False)
                peers.ask(beside, "crowd", count=RUNS, command=command(), expected_bytes=LINES * 64)
                await crowd.once(with_cpu=True)
        pss_kib = await crowd.pss_kib()
    plain_cpu_s = beside.of("cpu_s").get("asyncio", [])
    what = f"{RUNS} runs, {LINES} lines each over {LINES // EACH * PERIOD_MS // 1000} s"
    limit_wall_s, limit_cpu_s = ([told[name] for told in limit] for name in ("seconds", "cpu_s"))
    facts = {"spawned_s": round(median(crowd.spawned_s), 3), "daemon_cpu_s": round(median(crowd.daemon_cpu_s), 3)}
    missing = beside.missing
    return [
        Row(
            "S6",
            what,
            "s",
            crowd.wall_s,
            limit_wall_s,
            at_most=1.15,
            facts=facts,
            peers=beside.of("wall_s"),
            missing=missing,
        ),
        Row("S6", "of that, until all are spawned", "s", crowd.spawned_s),
        Row(
            "S6",
            "its CPU, daemon and keepers (limit: asyncio's)",
            "s",
            crowd.cpu_s,
            plain_cpu_s,
            at_most=2.0 if plain_cpu_s else None,
            facts=facts,
            peers=beside.of("cpu_s"),
        ),
        Row("S6", "its CPU, daemon alone (limit: the C loop)", "s", crowd.daemon_cpu_s, limit_cpu_s),
        Row("S6", "bytes lost", "B", crowd.lost_bytes, at_most=0, of_value=True, peers=beside.of("lost_bytes")),
        Row("S6", "PSS of each keeper", "KiB", pss_kib, at_most=1024, of_value=True),
    ]


def at_once(setting: Setting) -> list[Row]:
    with Daemon(setting.directory("home")) as daemon:
        return asyncio.run(_measure(setting, daemon))
