"""GROW: slopes: poll and log against stored items, the daemon's CPU against watchers and against live runs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from bench.build import limit_program
from bench.crowd import EACH, LINES, PERIOD_MS, command
from bench.daemons import Caller, Daemon, answer
from bench.matching import REGEXES
from bench.measure import Row, Series, Setting
from bench.process_cost import cpu_s
from limpet.engine.home import Home
from limpet.model.items import Item, Place
from limpet.model.run import Phase, Run
from limpet.model.stream import Stream
from limpet.store.sqlite import SqliteRunStore

MIB = 1 << 20
ITEM_BYTES = 100
WINDOW_S = 3.0


def slopes(setting: Setting) -> list[Row]:
    home = setting.directory("home")
    counts = [10**3, 10**5] if setting.quick else [10**3, 10**4, 10**5, 10**6]
    _fill(home, counts)
    with Daemon(home) as daemon:
        return asyncio.run(_measure(setting, daemon, counts))


def _run_id(count: int) -> str:
    return f"{count:013d}"


def _fill(home: Path, counts: list[int]) -> None:
    """Finished runs with so many items each, as an earlier daemon would have left them."""
    store = SqliteRunStore(Home(home).database)
    for count in counts:
        size = count * ITEM_BYTES
        spool = home / "runs" / _run_id(count) / "1" / "stdout.spool"
        spool.parent.mkdir(parents=True)
        with spool.open("wb") as file:
            for _ in range(0, size, 1000 * ITEM_BYTES):
                file.write((b"x" * (ITEM_BYTES - 1) + b"\n") * 1000)
        stream = Stream(bytes=size, head_end=size, shown=size, durable=size, open=False, ended_at=size)
        run = Run(
            run_id=_run_id(count),
            session_id=_run_id(count),
            command="make",
            phase=Phase.ENDED,
            created_at=1,
            started_at=1,
            finished_at=2,
            exit_code=0,
            last_seq=count,
            sealed=True,
            streams={"stdout": stream},
            tail=(("stdout", size - ITEM_BYTES, size),),
        )
        for begin in range(0, count, 10_000):
            items = [
                Item(seq=n + 1, ts=n, kind="output", stream="stdout", start=n * ITEM_BYTES, end=(n + 1) * ITEM_BYTES)
                for n in range(begin, min(begin + 10_000, count))
            ]
            store.put(run, "completed", items, Place(keeper_records=count))
            store.flush()
    store.close()


async def _measure(setting: Setting, daemon: Daemon, counts: list[int]) -> list[Row]:
    async with daemon.client() as client:
        return [
            *await _by_items(setting, client, counts),
            *await _by_watchers(setting, client, daemon),
            *await _by_runs(setting, client, daemon),
        ]


async def _by_items(setting: Setting, client: Caller, counts: list[int]) -> list[Row]:
    rounds = setting.rounds(5, 2)
    rows: list[Row] = []
    for action in ("poll", "log"):
        took: dict[int, Series] = {count: [] for count in counts}
        for _ in range(rounds):
            for count, series in took.items():
                for _ in range(30):
                    asked = {"action": action, "run_id": _run_id(count), "since_seq": count // 2, "limit": 100}
                    began = time.perf_counter()
                    page = await answer(client, "shell", **asked)
                    series.append((time.perf_counter() - began) * 1000)
                    if len(page["items"]) != 100:
                        raise RuntimeError(f"{len(page['items'])} items of {count}")
        for count in counts[1:]:
            few = took[counts[0]]
            rows.append(
                Row("GROW", f"{action}, 100 of {count} items (limit: {counts[0]})", "ms", took[count], few, at_most=1.5)
            )
    return rows


async def _by_watchers(setting: Setting, client: Caller, daemon: Daemon) -> list[Row]:
    size = (32 if setting.quick else 256) * MIB
    used: dict[int, Series] = {0: [], 1: [], 10: [], 50: []}
    for _ in range(setting.rounds(2, 1)):
        for count, series in used.items():
            watch = [
                {"regex": REGEXES[number % len(REGEXES)].replace("%d", str(90000 + number)), "event": f"e{number}"}
                for number in range(count)
            ]
            before_s = cpu_s(daemon.pid)
            said = f"exec {limit_program('produce')} {size}"
            run_id = (await answer(client, "shell", action="spawn", command=said, watch=watch))["run_id"]
            await answer(client, "runs.wait", run_ids=[run_id], **{"for": [{"exit": True}]}, timeout_ms=300_000)
            series.append(cpu_s(daemon.pid) - before_s)
    name = f"the daemon's CPU for {size // MIB} MiB"
    return [
        Row("GROW", f"{name}, {count} watchers that find nothing (limit: one)", "s", series, used[1])
        for count, series in used.items()
    ]


async def _by_runs(setting: Setting, client: Caller, daemon: Daemon) -> list[Row]:
    counts = [1, 10, 30] if setting.quick else [1, 10, 100, 300]
    used: dict[int, Series] = {count: [] for count in counts}
    for _ in range(setting.rounds(2, 1)):
        for count, series in used.items():
            spawned = await asyncio.gather(
                *(answer(client, "shell", action="spawn", command=command(1000 * LINES)) for _ in range(count))
            )
            before_s = cpu_s(daemon.pid)
            await asyncio.sleep(WINDOW_S)  # what is measured is what is used in this time
            series.append((cpu_s(daemon.pid) - before_s) / WINDOW_S * 100)
            await asyncio.gather(*(answer(client, "runs.kill", run_id=run["run_id"]) for run in spawned))
            for run in spawned:
                await answer(client, "runs.wait", run_ids=[run["run_id"]], timeout_ms=60_000)
    pace = f"{EACH * 1000 // PERIOD_MS} lines a second each, nobody listens"
    return [Row("GROW", f"the daemon's CPU, {count} live runs, {pace}", "%", used[count]) for count in counts]
