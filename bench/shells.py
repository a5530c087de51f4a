"""S1: `true` in an open bash on a pty, as one call of a conversation; S1 path: as `runs.write` and `runs.read`."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time

from bench.build import limit_program
from bench.daemons import Caller, Daemon, answer
from bench.measure import Row, Series, Setting, median, quantile, summary

PROMPT = re.compile(r"\a(\d+)\a")
# The outer shell is not interactive and would drop a PS1 of its environment.
OPEN = "stty -echo; export PS1=$'\\a$?\\a'; exec bash --norc --noprofile --noediting -i"
PROMPT_WITHIN_MS = 30_000


def limit_ms(count: int) -> Series:
    told = subprocess.run([limit_program("shell_pty"), str(count)], check=True, stdout=subprocess.PIPE)
    return [int(line) / 1e6 for line in told.stdout.split()]


class Shell:
    """An open shell behind a client, its prompt reduced to the exit code between two bells."""

    def __init__(self, caller: Caller) -> None:
        self.caller = caller
        self.offset = 0
        self.seen = ""
        self.calls_ms: dict[str, Series] = {"runs.write": [], "runs.read": []}

    async def open(self) -> None:
        asked = {"action": "spawn", "command": OPEN, "pty": True, "env": {"HISTFILE": ""}}
        self.run_id = (await answer(self.caller, "shell", **asked))["run_id"]
        await self.exit_code()

    async def exit_code(self) -> int:
        """Reads on to the next prompt."""
        while (found := PROMPT.search(self.seen)) is None:
            read = await answer(
                self.caller,
                "runs.read",
                run_id=self.run_id,
                stream="pty",
                offset=self.offset,
                max_bytes=65536,
                wait_ms=PROMPT_WITHIN_MS,
            )
            if read["next_offset"] == self.offset:
                raise RuntimeError(f"no prompt in {self.seen!r}: {read}")
            self.offset = read["next_offset"]
            self.seen += read["data"]
        self.seen = self.seen[found.end() :]
        return int(found[1])

    async def run(self, line: str) -> int:
        began = time.perf_counter()
        await answer(self.caller, "runs.write", run_id=self.run_id, text=line + "\n")
        written = time.perf_counter()
        code = await self.exit_code()
        self.calls_ms["runs.write"].append((written - began) * 1000)
        self.calls_ms["runs.read"].append((time.perf_counter() - written) * 1000)
        return code

    async def true_ms(self) -> float:
        began = time.perf_counter()
        code = await self.run("true")
        took_ms = (time.perf_counter() - began) * 1000
        if code:
            raise RuntimeError(f"`true` ended with {code}")
        return took_ms


async def _measure(setting: Setting, daemon: Daemon) -> list[Row]:
    rounds, each = setting.rounds(10, 3), setting.rounds(100, 30)
    limit: Series = []
    took: Series = []
    async with daemon.client() as client:
        shell = Shell(client)
        await shell.open()
        if await shell.run("false") != 1:
            raise RuntimeError("the exit code does not come through")
        for _ in range(rounds):
            limit += limit_ms(each)
            took += [await shell.true_ms() for _ in range(each)]
        await answer(client, "runs.kill", run_id=shell.run_id)
    facts = summary(took) | {"limit": summary(limit)}
    spread = quantile(took, 0.99) / median(took)
    calls = [Row("S1 path", f"of that, {name}", "ms", ms, facts=summary(ms)) for name, ms in shell.calls_ms.items()]
    return [
        Row("S1 path", "`true` by runs.write + runs.read, two calls", "ms", took, limit, facts=facts),
        *calls,
        Row("S1 path", "its p99 / p50", "x", [spread], at_most=4.0, of_value=True),
    ]


async def _measure_conversation(setting: Setting, daemon: Daemon) -> list[Row]:
    rounds, each = setting.rounds(10, 3), setting.rounds(100, 30)
    limit: Series = []
    took: Series = []
    async with daemon.client() as client:
        told = await answer(client, "pty.run", conversation_id="bench", cmd="false")
        if told["exit_code"] != 1:
            raise RuntimeError("the exit code does not come through")
        for _ in range(rounds):
            limit += limit_ms(each)
            for _ in range(each):
                began = time.perf_counter()
                await answer(client, "pty.run", conversation_id="bench", cmd="true")
                took.append((time.perf_counter() - began) * 1000)
        await answer(client, "pty.close", conversation_id="bench")
    facts = summary(took) | {"limit": summary(limit)}
    return [
        Row("S1", "`true` by pty.run, one call", "ms", took, limit, facts=facts, at_most=2.5),
        Row("S1", "its p99 / p50", "x", [quantile(took, 0.99) / median(took)], at_most=4.0, of_value=True),
    ]


def in_a_conversation(setting: Setting) -> list[Row]:
    with Daemon(setting.directory("home")) as daemon:
        return asyncio.run(_measure_conversation(setting, daemon))


def through_the_daemon(setting: Setting) -> list[Row]:
    with Daemon(setting.directory("home")) as daemon:
        return asyncio.run(_measure(setting, daemon))
