"""Nurseries and keepers as a daemon would use them, with no daemon: prepare, claim, start, follow the journal, read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import limpet_keeper
from bench.measure import Facts
from bench.process_cost import wait_gone
from tests.keeper.driver import Connection

# As the engine starts it: nothing that the machine adds to its Python gets in.
KEEPER_PROGRAM = str(Path(limpet_keeper.__file__).with_name("__main__.py"))
# Small enough that no memory has to be mapped for it: what is measured is the keeper.
PIECE_BYTES = 1 << 16
GONE_WITHIN_S = 20.0
# With wakeups for states only, all of a long output passes in silence.
NEWS_WITHIN_S = 300.0


class Nursery:
    """A nursery, and every keeper it forked: none of them outlives the `with`."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.keepers: list[Kept] = []
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-S", KEEPER_PROGRAM, "nursery"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for keeper in self.keepers:
            keeper.end()
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait(GONE_WITHIN_S)

    def prepare(self, wake: str = "state") -> Kept:
        """A keeper that waits to be told its run, its connection open."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        directory = self.base / f"idle-{len(self.keepers)}-{os.getpid()}"
        began = time.perf_counter()
        self.process.stdin.write(json.dumps({"prepare": str(directory)}).encode() + b"\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        ready = time.perf_counter()
        if "ready" not in answer:
            raise RuntimeError(f"the nursery could not prepare a keeper: {answer}")
        keeper = Kept(directory, answer["pid"], wake)
        keeper.marks["prepare"] = ready - began
        keeper.marks["connect"] = time.perf_counter() - ready
        self.keepers.append(keeper)
        return keeper


class Kept:
    """One keeper that listens: its directory, its connection, and how far its journal was read."""

    def __init__(self, directory: Path, pid: int, wake: str) -> None:
        self.directory = directory
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.journal = os.open(directory / "keeper.journal", os.O_RDONLY)
        self.read_to = 0
        self.facts: list[Facts] = []
        self.marks: dict[str, float] = {}
        self.connection = Connection(directory)
        self._ok(self.connection.call("hello", protocol=1, wake=wake))

    def claim(self, to: Path) -> None:
        """The keeper's directory becomes the run's: a rename."""
        self.directory.rename(to)
        self.directory = to

    def start(self, *argv: str, **fields: Any) -> Facts:
        request: Facts = {"run": "r1", "argv": list(argv), "cwd": "/", "env": {"PATH": os.environ["PATH"]}}
        return self._ok(self.connection.call("start", **(request | fields)))

    def news(self) -> list[Facts]:
        """What the journal holds since it was last read; a torn tail waits."""
        data = bytearray()
        while piece := os.pread(self.journal, PIECE_BYTES, self.read_to + len(data)):
            data += piece
        whole = data.rfind(b"\n") + 1
        self.read_to += whole
        found: list[Facts] = [json.loads(line.split(b" ", 2)[2]) for line in bytes(data[:whole]).splitlines()]
        self.facts += found
        return found

    def follow(self, until: str, seen: Callable[[Facts], None] | None = None) -> Facts:
        """Reads on, wakeup by wakeup, to the first fact of that name."""
        over = False
        while True:
            for fact in self.news():
                if seen is not None:
                    seen(fact)
            for fact in self.facts:
                if fact["fact"] == until:
                    return fact
            if over:
                raise RuntimeError(f"the keeper went away without `{until}`: {self.facts}")
            try:
                self.connection.wakeup(NEWS_WITHIN_S)
            except (EOFError, ConnectionError):
                over = True  # its last facts may have come without a wakeup of their own

    def spool(self, stream: str) -> Path:
        return self.directory / f"{stream}.spool"

    def end(self) -> None:
        """Ends what is left of the run, then waits for the keeper's own end."""
        if self.pidfd < 0:
            return
        if not wait_gone(self.pidfd, 0):
            try:
                if self.facts:
                    self.connection.call("kill", signal="SIGKILL")
            except (OSError, EOFError):
                pass  # it ended meanwhile
            self.connection.close()
            if not wait_gone(self.pidfd, GONE_WITHIN_S):
                raise RuntimeError(f"keeper {self.pid} in {self.directory} does not end")
        self.connection.close()
        os.close(self.journal)
        os.close(self.pidfd)
        self.pidfd = -1

    def _ok(self, reply: Facts) -> Facts:
        if not reply["ok"]:
            raise RuntimeError(f"the keeper refused: {reply}")
        return reply
