"""A daemon on a home of its own, as a user has it, and the in-process engine: the two ways in for scenarios."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

STOP_WITHIN_S = 20.0


class Caller(Protocol):
    """The client of a daemon, and the engine in this process: the same call."""

    async def call(self, op: str, **params: Any) -> dict[str, Any]: ...


async def answer(caller: Caller, op: str, **params: Any) -> dict[str, Any]:
    """The answer of an operation that must succeed."""
    told = await caller.call(op, **params)
    if not told["ok"]:
        raise RuntimeError(f"{op} answered {told}")
    return told


def _limpet(*arguments: str) -> list[str]:
    return [str(Path(sys.executable).with_name("limpet")), *arguments]


class Daemon:
    """`limpet serve` in the foreground, default config, stopped together with its runs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {**os.environ, "LIMPET_HOME": str(home)}

    def __enter__(self) -> Daemon:
        self.process = subprocess.Popen(
            _limpet("serve", "--ready-json"), env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"the daemon ended before it was ready: {self.process.wait()}")
        self.pid: int = json.loads(line)["pid"]
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdout is not None
        subprocess.run(_limpet("stop", "--kill-runs"), env=self.environment, check=False, stdout=subprocess.DEVNULL)
        try:
            self.process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.process.stdout.close()

    @asynccontextmanager
    async def client(self) -> AsyncGenerator[Caller]:
        limpet: Any = importlib.import_module("limpet")
        async with limpet.connect(home=self.home) as client:
            yield client


@asynccontextmanager
async def in_process(home: Path) -> AsyncGenerator[Caller]:
    limpet: Any = importlib.import_module("limpet")
    async with limpet.open(home) as engine:
        yield engine


def has_in_process() -> bool:
    return hasattr(importlib.import_module("limpet"), "open")
