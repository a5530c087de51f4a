"""Simulated histories, one for each seed from 0 on: no violation of what must hold, whatever crashes and fails."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor

from limpet.testing.simulation import Told, Violation, simulate

AT_ONCE = 250


def simulate_all(seeds: range) -> tuple[list[Told], list[str], float]:
    """The histories of these seeds, the violations among them, and the processor's time that they took."""
    told: list[Told] = []
    violations: list[str] = []
    began = time.process_time()
    for seed in seeds:
        try:
            told.append(simulate(seed))
        except Violation as violation:
            violations.append(str(violation))
            print("VIOLATED:", violation, flush=True)
    return told, violations, time.process_time() - began


def prove(count: int) -> str:
    """All seeds below `count`, on every core; an AssertionError names each that showed a violation."""
    began = time.monotonic()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        parts = [range(start, min(start + AT_ONCE, count)) for start in range(0, count, AT_ONCE)]
        done = list(pool.map(simulate_all, parts))
    violations = [violation for _, found, _ in done for violation in found]
    assert not violations, "\n".join(violations)
    return report([each for told, _, _ in done for each in told], sum(cpu_s for *_, cpu_s in done), began)


def report(told: Iterable[Told], cpu_s: float, began: float) -> str:
    """What was seen in all of them."""
    told = list(told)
    faults = Counter(fault for each in told for fault in each.faults)
    runs, daemons, steps = (sum(getattr(each, name) for each in told) for name in ("runs", "daemons", "steps"))
    lines = [
        f"{len(told)} histories from their seeds, 0 violations",
        f"{runs} runs, {daemons} daemons, {steps} steps",
        *(f"{name}: {count}" for name, count in sorted(faults.items())),
        f"{len(told) / cpu_s:.0f} a second of one core's time; {len(told) / (time.monotonic() - began):.0f} a second",
    ]
    return "\n".join(lines)
