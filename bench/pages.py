"""S7: 64 KiB at a random place of a finished log of 1 GiB, through the socket; at its ends, of a small log."""

from __future__ import annotations

import asyncio
import random
import subprocess
import time
from pathlib import Path

from bench.build import limit_program
from bench.daemons import Caller, Daemon, answer
from bench.measure import Row, Series, Setting, quantile, summary
from bench.streams import spool_of_run

KIB, MIB = 1 << 10, 1 << 20
PAGE_BYTES = 64 * KIB
NO_PEER = "keeps no log that can be read from a place in it"


class Pages:
    """Pages of one log, from one part of it."""

    def __init__(self, what: str, run_id: str, low: int, high: int, page_bytes: int) -> None:
        self.what = what
        self.run_id = run_id
        self.low, self.high = low, high
        self.page_bytes = page_bytes
        self.chance = random.Random(1)
        self.took_ms: Series = []

    async def read(self, caller: Caller, count: int) -> None:
        asked = {"run_id": self.run_id, "stream": "stdout", "max_bytes": self.page_bytes}
        for _ in range(count):
            offset = self.chance.randrange(self.low, self.high - self.page_bytes)
            began = time.perf_counter()
            page = await answer(caller, "runs.read", offset=offset, **asked)
            self.took_ms.append((time.perf_counter() - began) * 1000)
            if len(page["data"]) != self.page_bytes:
                raise RuntimeError(f"{len(page['data'])} bytes at {offset}")


def limit_ms(spool: Path, count: int) -> Series:
    told = subprocess.run([limit_program("page"), str(spool), str(PAGE_BYTES), str(count)], check=True, stdout=-1)
    return [int(line) / 1e6 for line in told.stdout.split()]


async def _log(client: Caller, size_bytes: int) -> str:
    command = f"exec {limit_program('produce')} {size_bytes}"
    run_id = (await answer(client, "shell", action="spawn", command=command))["run_id"]
    await answer(client, "runs.wait", run_ids=[run_id], **{"for": [{"exit": True}]}, timeout_ms=300_000)
    return run_id


async def _measure(setting: Setting, daemon: Daemon) -> list[Row]:
    large = (64 if setting.quick else 1024) * MIB
    rounds, each = setting.rounds(10, 3), setting.rounds(100, 30)
    limit: Series = []
    async with daemon.client() as client:
        run_id, small_id = await _log(client, large), await _log(client, MIB)
        spool = spool_of_run(daemon.home, run_id, "stdout")
        name = f"of {large // MIB} MiB"
        sides = [
            Pages(f"64 KiB at a random place {name}", run_id, 0, large, PAGE_BYTES),
            Pages(f"64 KiB in the first MiB {name}", run_id, 0, MIB, PAGE_BYTES),
            Pages(f"64 KiB in the last MiB {name}", run_id, large - MIB, large, PAGE_BYTES),
            Pages("64 KiB at a random place of 1 MiB", small_id, 0, MIB, PAGE_BYTES),
            Pages(f"1 KiB at a random place {name}", run_id, 0, large, KIB),
            Pages(f"1 MiB at a random place {name}", run_id, 0, large, MIB),
        ]
        for number in range(rounds):
            limit += limit_ms(spool, each)
            for side in (*sides[number % len(sides) :], *sides[: number % len(sides)]):
                await side.read(client, each if side.page_bytes < MIB else each // 10)
    rows: list[Row] = []
    for side in sides:
        at_most = 0.3 if side.page_bytes <= PAGE_BYTES else None
        facts = summary(side.took_ms) | {"p90": quantile(side.took_ms, 0.9)}
        missing = {"asyncio, pexpect, tmux, SWE-ReX, codex exec-server": NO_PEER} if setting.peers and not rows else {}
        own = limit if side.page_bytes == PAGE_BYTES else []
        rows.append(
            Row("S7", side.what, "ms", side.took_ms, own, at_most=at_most, of_value=True, facts=facts, missing=missing)
        )
    return rows


def at_random(setting: Setting) -> list[Row]:
    with Daemon(setting.directory("home")) as daemon:
        return asyncio.run(_measure(setting, daemon))
