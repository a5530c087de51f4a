"""S2 of the keeper alone: start `echo hi`, know its end, read its output; and where that time goes."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from bench.build import limit_program
from bench.keepers import Kept, Nursery
from bench.measure import Facts, Row, Series, Setting, summary

COMMAND = ("bash", "-c", "echo hi")
HOPS = {
    "claim": "rename of the prepared directory",
    "start_reply": "start frame sent -> its reply",
    "exec": "start frame sent -> first instruction of the command's main",
    "wrote": "the command writes (and exits at once) -> `wrote` is known",
    "exited": "the command writes (and exits at once) -> `exited` is known",
    "ended": "the command writes (and exits at once) -> `ended` is known",
    "read": "spool opened, read, closed",
    "sealed": "`ended` known -> `sealed` known",
}


def limit_ms(scratch: Path, count: int) -> Series:
    told = subprocess.run(
        [limit_program("spawn"), str(scratch / "spawned"), str(count)], check=True, stdout=subprocess.PIPE
    )
    return [int(line) / 1e6 for line in told.stdout.split()]


class Claims:
    """Keepers prepared ahead, one used up by each start."""

    def __init__(self, nursery: Nursery, scratch: Path, wake: str) -> None:
        self.nursery = nursery
        self.runs = scratch / f"runs-{wake}"
        self.runs.mkdir()
        self.wake = wake
        self.count = 0
        self.idle: list[Kept] = []

    def prepare(self, count: int) -> None:
        """All at once and ahead: a keeper that is claimed has been idle for a while, and its memory is cold."""
        self.idle = [self.nursery.prepare(self.wake) for _ in range(count)]

    def next(self) -> Kept:
        self.count += 1
        return self.idle.pop(0)

    def echo_ms(self) -> float:
        keeper = self.next()
        began = time.perf_counter()
        keeper.claim(self.runs / str(self.count))
        keeper.start(*COMMAND)
        ended = keeper.follow("ended")
        text = keeper.spool("stdout").read_bytes()
        took_ms = (time.perf_counter() - began) * 1000
        if text != b"hi\n" or ended["streams"]["stdout"]["end"] != 3:
            raise RuntimeError(f"wrong output: {text!r}, {ended}")
        keeper.end()
        return took_ms

    def hops_ms(self) -> dict[str, float]:
        """One start of a program that says when it ran, with a mark at each station."""
        keeper = self.next()
        known: dict[str, int] = {}

        def seen(fact: Facts) -> None:
            known.setdefault(fact["fact"], time.monotonic_ns())

        asked = time.monotonic_ns()
        keeper.claim(self.runs / str(self.count))
        claimed = time.monotonic_ns()
        keeper.start(limit_program("stamp"))
        replied = time.monotonic_ns()
        keeper.follow("ended", seen)
        ended = time.monotonic_ns()
        handle = os.open(keeper.spool("stdout"), os.O_RDONLY)
        ran = int(os.pread(handle, 64, 0))
        os.close(handle)
        read = time.monotonic_ns()
        keeper.follow("sealed", seen)
        keeper.end()
        hops = {
            "claim": claimed - asked,
            "start_reply": replied - claimed,
            "exec": ran - claimed,
            "wrote": known["wrote"] - ran,
            "exited": known["exited"] - ran,
            "ended": known["ended"] - ran,
            "read": read - ended,
            "sealed": known["sealed"] - known["ended"],
        }
        return {name: took_ns / 1e6 for name, took_ns in hops.items()}


def keeper_alone(setting: Setting) -> list[Row]:
    scratch = setting.directory("background")
    rounds, each = setting.rounds(8, 3), setting.rounds(25, 10)
    limit: Series = []
    took: dict[str, Series] = {"state": [], "every": []}
    hops: dict[str, list[dict[str, float]]] = {"state": [], "every": []}
    with Nursery(scratch) as nursery:
        claims = {wake: Claims(nursery, scratch, wake) for wake in took}
        for _ in range(rounds):
            for claim in claims.values():
                claim.prepare(each + each // 2)
            limit += limit_ms(scratch, each)
            for wake in took:
                took[wake] += [claims[wake].echo_ms() for _ in range(each)]
                hops[wake] += [claims[wake].hops_ms() for _ in range(each // 2)]
    rows = [
        Row(
            "S2k",
            f"`echo hi` by a keeper alone, wake {wake}",
            "ms",
            took[wake],
            limit,
            at_most=1.5,
            facts=summary(took[wake]),
        )
        for wake in took
    ]
    for wake in took:
        for name, what in HOPS.items():
            series = [hop[name] for hop in hops[wake]]
            rows.append(Row("S2k", f"hop, wake {wake}: {what}", "ms", series, facts=summary(series)))
    return rows
