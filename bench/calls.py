"""S2 as a user has it: `echo hi` in the background through the daemon, and through the engine in this process."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack

from bench.background import limit_ms
from bench.daemons import Caller, Daemon, answer, has_in_process, in_process
from bench.measure import Beside, Row, Series, Setting, summary
from bench.peers.side import Peers

CALLS = ("shell spawn", "runs.wait", "runs.read")


class Echo:
    """One way in, and what each of its three calls took."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.took_ms: Series = []
        self.calls_ms: dict[str, Series] = {name: [] for name in CALLS}

    async def once(self) -> None:
        marks = [time.perf_counter()]
        run_id = (await answer(self.caller, "shell", action="spawn", command="echo hi"))["run_id"]
        marks.append(time.perf_counter())
        await answer(self.caller, "runs.wait", run_ids=[run_id], **{"for": [{"exit": True}]}, timeout_ms=30_000)
        marks.append(time.perf_counter())
        read = await answer(self.caller, "runs.read", run_id=run_id, stream="stdout", offset=0, max_bytes=65536)
        marks.append(time.perf_counter())
        if read["data"] != "hi\n":
            raise RuntimeError(f"wrong output: {read}")
        self.took_ms.append((marks[-1] - marks[0]) * 1000)
        for name, began, ended in zip(CALLS, marks, marks[1:], strict=False):
            self.calls_ms[name].append((ended - began) * 1000)


async def _measure(setting: Setting, daemon: Daemon) -> list[Row]:
    scratch = setting.directory("limit")
    rounds, each = setting.rounds(10, 3), setting.rounds(25, 10)
    limit: Series = []
    beside = Beside()
    async with AsyncExitStack() as stack:
        peers = stack.enter_context(Peers(setting))
        sides = {"through the daemon": Echo(await stack.enter_async_context(daemon.client()))}
        if has_in_process():
            engine = await stack.enter_async_context(in_process(setting.directory("home-of-engine")))
            sides["in this process"] = Echo(engine)
        for _ in range(rounds):
            limit += limit_ms(scratch, each)
            for side in sides.values():
                for _ in range(each):
                    await side.once()
            peers.ask(beside, "echo", count=each)
    goals = {"through the daemon": 2.0, "in this process": 1.5}
    rows: list[Row] = []
    for name, side in sides.items():
        rows.append(
            Row(
                "S2",
                f"`echo hi`, {name}",
                "ms",
                side.took_ms,
                limit,
                at_most=goals[name],
                facts=summary(side.took_ms),
                peers={} if rows else beside.of("ms"),
                missing={} if rows else beside.missing,
            )
        )
        for call, series in side.calls_ms.items():
            rows.append(Row("S2", f"of that, {call}, {name}", "ms", series, facts=summary(series)))
    return rows


def background(setting: Setting) -> list[Row]:
    with Daemon(setting.directory("home")) as daemon:
        return asyncio.run(_measure(setting, daemon))
