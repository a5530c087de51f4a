"""pexpect: every command on a pty, tuned as its manual says (no delays, large reads, a search window)."""

from __future__ import annotations

import importlib
import resource
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from bench.peers import CannotError
from bench.peers.markers import TEXT, Arm, ms_since

WITHIN_S = 120


def make(scratch: Path) -> Expecting:
    return Expecting(scratch, importlib.import_module("pexpect"))


class Expecting:
    def __init__(self, scratch: Path, pexpect: Any) -> None:
        self.scratch = scratch
        self.pexpect = pexpect

    def _spawn(self, *argv: str) -> Any:
        child = self.pexpect.spawn(argv[0], list(argv[1:]), timeout=WITHIN_S, maxread=1 << 16, searchwindowsize=4096)
        child.delayafterclose = child.delayafterterminate = child.ptyproc.delayafterclose = 0.001
        child.ptyproc.delayafterterminate = 0.001
        return child

    def echo(self, count: int) -> dict[str, Any]:
        took: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            child = self._spawn("bash", "-c", "echo hi")
            child.expect(self.pexpect.EOF)
            out = child.before
            child.close()
            took.append((time.perf_counter() - began) * 1000)
            if out != b"hi\r\n" or child.exitstatus:
                raise RuntimeError(f"wrong output: {out!r}")
        return {"ms": took}

    def marker(self, count: int, size_bytes: int, program: str, *, pty: bool) -> dict[str, Any]:
        if not pty:
            raise CannotError("it runs commands on a pty only")
        took: list[float] = []
        with Arm(self.scratch) as arm:
            child = self._spawn(program, str(arm.path), str(size_bytes))
            child.expect("ready")
            for _ in range(count):
                arm()
                child.expect(TEXT)
                took.append(ms_since(child.match[1]))
            child.close(force=True)
        return {"ms": took}

    def crowd(self, count: int, command: str, expected_bytes: int) -> dict[str, Any]:
        before = resource.getrusage(resource.RUSAGE_SELF)
        began = time.perf_counter()

        def one(_: int) -> int:
            child = self._spawn("bash", "-c", command)
            child.expect(self.pexpect.EOF)
            said = len(child.before.replace(b"\r\n", b"\n"))
            child.close()
            return said

        with ThreadPoolExecutor(count) as threads:
            said = sum(threads.map(one, range(count)))
        wall_s = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        return {"wall_s": [wall_s], "cpu_s": [cpu_s], "lost_bytes": [expected_bytes * count - said]}

    def close(self) -> None:
        """Nothing is held."""
