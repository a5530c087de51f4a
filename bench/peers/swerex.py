"""SWE-ReX: its server as it is deployed, asked by its own client over HTTP."""

from __future__ import annotations

import asyncio
import importlib
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from bench.peers import CannotError

TOKEN = "bench"
ALIVE_WITHIN_S = 60.0


def make(scratch: Path) -> SweRex:
    return SweRex(scratch)


class SweRex:
    def __init__(self, scratch: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.abstract: Any = importlib.import_module("swerex.runtime.abstract")
        self.remote: Any = importlib.import_module("swerex.runtime.remote")
        program = str(Path(sys.executable).with_name("swerex-remote"))
        arguments = ["--host", "127.0.0.1", "--port", str(self.port), "--auth-token", TOKEN]
        self.process = subprocess.Popen(
            [program, *arguments], cwd=scratch, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        asyncio.run(self._alive())

    def _runtime(self) -> Any:
        return self.remote.RemoteRuntime(host="http://127.0.0.1", port=self.port, auth_token=TOKEN)

    async def _alive(self) -> None:
        await self._runtime().wait_until_alive(timeout=ALIVE_WITHIN_S)

    def echo(self, count: int) -> dict[str, Any]:
        return {"ms": asyncio.run(self._echo(count))}

    async def _echo(self, count: int) -> list[float]:
        runtime = self._runtime()
        took: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            answer = await runtime.execute(self.abstract.Command(command="echo hi", shell=True))
            took.append((time.perf_counter() - began) * 1000)
            if answer.stdout != "hi\n" or answer.exit_code:
                raise RuntimeError(f"wrong output: {answer}")
        return took

    def marker(self, count: int, size_bytes: int, program: str, *, pty: bool) -> dict[str, Any]:  # noqa: ARG002
        raise CannotError("it tells of output only when a command ends, or a session's expect is over")

    def crowd(self, count: int, command: str, expected_bytes: int) -> dict[str, Any]:  # noqa: ARG002
        raise CannotError("its server runs one command at a time")

    def close(self) -> None:
        self.process.terminate()
        self.process.wait()
