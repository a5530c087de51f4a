"""MEM: what a keeper weighs, idle and at work, alone and as one of 100, and how fast a nursery makes them."""

from __future__ import annotations

import time
from pathlib import Path

from bench.keepers import Kept, Nursery
from bench.measure import Row, Setting, summary
from bench.process_cost import children, cpu_s, private_kib, pss_kib, rss_kib, total_pss_kib

MANY = 100
QUIET_S = 3.0


def keepers(setting: Setting) -> list[Row]:
    with Nursery(setting.directory("memory")) as nursery:
        nursery_idle_kib = pss_kib(nursery.process.pid)
        first = nursery.prepare()
        idle = _weight(first)
        sleep(first, setting.scratch / "run-first")
        running = _weight(first)
        began = time.perf_counter()
        kept = [first, *(nursery.prepare() for _ in range(MANY - 1))]
        created_s = time.perf_counter() - began
        idle_together_kib = [_idle_pss_kib(keeper) for keeper in kept[1:]]
        for number, keeper in enumerate(kept[1:]):
            sleep(keeper, setting.scratch / f"run-{number}")
        pids = [keeper.pid for keeper in kept]
        each_kib = [pss_kib(pid) for pid in pids]
        total_kib = total_pss_kib([*pids, nursery.process.pid])
        before_s = sum(map(cpu_s, pids))
        time.sleep(QUIET_S)  # the quantity measured is what happens in this time: nothing should
        idle_cpu_percent = (sum(map(cpu_s, pids)) - before_s) / QUIET_S * 100
        prepared_ms = [keeper.marks["prepare"] * 1000 for keeper in kept[1:]]
        connected_ms = [keeper.marks["connect"] * 1000 for keeper in kept[1:]]
    return [
        Row(
            "MEM",
            f"PSS of each of {MANY} keepers that run `sleep`",
            "KiB",
            list(map(float, each_kib)),
            at_most=1024,
            of_value=True,
        ),
        Row("MEM", f"PSS of each of {MANY - 1} idle keepers and what waits under it", "KiB", idle_together_kib),
        Row("MEM", f"PSS of {MANY} keepers and their nursery together", "KiB", [float(total_kib)]),
        Row("MEM", "one keeper alone, idle: PSS", "KiB", [idle["pss"]], facts=idle | {"nursery_pss": nursery_idle_kib}),
        Row("MEM", "one keeper alone, running `sleep`: PSS", "KiB", [running["pss"]], facts=running),
        Row("MEM", f"CPU of {MANY} idle runs together", "%", [idle_cpu_percent], at_most=0.05, of_value=True),
        Row("MEM", "prepare, asked to ready", "ms", prepared_ms, facts=summary(prepared_ms)),
        Row("MEM", "connect and hello", "ms", connected_ms, facts=summary(connected_ms)),
        Row("MEM", "keepers prepared and greeted a second", "/s", [(MANY - 1) / created_s]),
    ]


def sleep(keeper: Kept, directory: Path) -> None:
    keeper.claim(directory)
    keeper.start("sleep", "600")
    keeper.news()


def _weight(keeper: Kept) -> dict[str, float]:
    return {"pss": pss_kib(keeper.pid), "private": private_kib(keeper.pid), "rss": rss_kib(keeper.pid)}


def _idle_pss_kib(keeper: Kept) -> float:
    """With the process that waits to become its command, where there is one."""
    return float(total_pss_kib([keeper.pid, *children(keeper.pid)]))
