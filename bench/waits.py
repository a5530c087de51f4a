"""S4: from a marker's write to the return of `runs.wait`, with little and much in the log, on pipes and on a pty."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from bench.build import limit_program
from bench.daemons import Caller, Daemon, answer
from bench.measure import Beside, Facts, Row, Series, Setting, median, quantile, summary
from bench.peers.markers import TEXT, Arm, ms_since
from bench.peers.side import Peers

KIB, MB = 1 << 10, 10**6
FILLED_WITHIN_MS = 400_000
MARKED_WITHIN_MS = 30_000


@dataclass
class Log:
    """A run with so much in its log, that writes a marker when it is armed."""

    caller: Caller
    scratch: Path
    pty: bool
    size_bytes: int
    took_ms: Series = field(default_factory=list[float])

    async def fill(self, arm: Arm) -> None:
        self.arm = arm
        command = f"exec {limit_program('marker')} {arm.path} {self.size_bytes}"
        self.run_id = (await answer(self.caller, "shell", action="spawn", command=command, pty=self.pty))["run_id"]
        # from the end on: nothing is gained by looking through what is filled in here
        await answer(self.caller, "runs.wait", run_ids=[self.run_id], **{"for": [self._beyond()]}, **_within())
        stream = "pty" if self.pty else "stdout"
        read = await answer(self.caller, "runs.get", run_id=self.run_id)
        total = read["streams"][stream]["bytes"]
        self.place: Facts = {self.run_id: {stream: max(0, total - 64)}}
        found = await self._wait("ready", FILLED_WITHIN_MS)
        self.place = found["from"]

    def _beyond(self) -> Facts:
        return {"offset": self.size_bytes, "stream": "pty" if self.pty else "stdout"}

    async def _wait(self, regex: str, timeout_ms: int) -> Facts:
        asked = {"for": [{"regex": regex}], "from": self.place}
        return await answer(self.caller, "runs.wait", run_ids=[self.run_id], timeout_ms=timeout_ms, **asked)

    async def mark(self) -> None:
        self.arm()
        found = await self._wait(TEXT, MARKED_WITHIN_MS)
        self.took_ms.append(ms_since(found["hit"]["match"].strip("@")))
        self.place = found["from"]


def _within() -> Facts:
    return {"timeout_ms": FILLED_WITHIN_MS}


def limit_ms(scratch: Path, count: int, *, pty: bool) -> Series:
    with Arm(scratch) as arm:
        kind, log = "pty" if pty else "pipe", str(scratch / "log")
        command = [limit_program("marker"), str(arm.path), str(KIB)]
        program = [limit_program("await_marker"), kind, log, str(count), str(arm.path), *command]
        told = subprocess.run(program, check=True, stdout=subprocess.PIPE)
    return [int(line) / 1e6 for line in told.stdout.split()]


def _sizes(setting: Setting) -> dict[bool, list[int]]:
    much = 10 * MB if setting.quick else 100 * MB
    return {False: [KIB, much, 100 * much], True: [KIB, much]}


def size_name(size_bytes: int) -> str:
    return (
        f"{size_bytes // 10**9} GB" if size_bytes >= 10**9 else f"{size_bytes // MB} MB" if size_bytes >= MB else "1 KB"
    )


async def _measure(setting: Setting, daemon: Daemon) -> list[Row]:
    rounds, each = setting.rounds(8, 2), setting.rounds(30, 10)
    scratch = setting.directory("markers")
    limit: dict[bool, Series] = {False: [], True: []}
    beside = {False: Beside(), True: Beside()}
    with ExitStack() as stack:
        async with daemon.client() as client:
            peers = stack.enter_context(Peers(setting))
            logs = [
                Log(client, scratch, pty, size_bytes) for pty, sizes in _sizes(setting).items() for size_bytes in sizes
            ]
            for log in logs:
                await log.fill(stack.enter_context(Arm(scratch)))
            for number in range(rounds):
                for pty in (False, True):
                    limit[pty] += limit_ms(scratch, each, pty=pty)
                    if number % 4 == 0:  # a peer fills its log anew each time
                        params = {"count": 2 * each, "size_bytes": _sizes(setting)[pty][1]}
                        peers.ask(beside[pty], "marker", program=limit_program("marker"), pty=pty, **params)
                for log in (*logs[number % len(logs) :], *logs[: number % len(logs)]):
                    for _ in range(each):
                        await log.mark()
            for log in logs:
                await answer(client, "runs.kill", run_id=log.run_id)
    return [row for log in logs for row in _rows(log, limit[log.pty], beside[log.pty], _sizes(setting)[log.pty])]


def _rows(log: Log, limit: Series, beside: Beside, sizes: list[int]) -> list[Row]:
    what = f"marker to the waiter's return, {'pty' if log.pty else 'pipes'}, {size_name(log.size_bytes)} in the log"
    is_main = log.size_bytes == sizes[1]
    facts = summary(log.took_ms) | {"limit": summary(limit)}
    peers, missing = (beside.of("ms"), beside.missing) if is_main else ({}, {})
    spread = quantile(log.took_ms, 0.99) / median(log.took_ms)
    return [
        Row("S4", what, "ms", log.took_ms, limit, at_most=2.5, facts=facts, peers=peers, missing=missing),
        Row("S4", "  its p99 / p50", "x", [spread], at_most=3.0, of_value=True),
    ]


def on_markers(setting: Setting) -> list[Row]:
    with Daemon(setting.directory("home")) as daemon:
        return asyncio.run(_measure(setting, daemon))
