"""asyncio as it comes: a subprocess, its pipe read into a file; a pty by `add_reader`."""

from __future__ import annotations

import asyncio
import os
import pty
import resource
import time
import tty
from pathlib import Path
from typing import Any

from bench.peers.markers import MARKER, Arm, ms_since

PIECE_BYTES = 1 << 18


def make(scratch: Path) -> Plain:
    return Plain(scratch)


class Plain:
    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch

    def echo(self, count: int) -> dict[str, Any]:
        return {"ms": asyncio.run(self._echo(count))}

    async def _echo(self, count: int) -> list[float]:
        took: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            process = await asyncio.create_subprocess_exec("bash", "-c", "echo hi", stdout=asyncio.subprocess.PIPE)
            out, _ = await process.communicate()
            took.append((time.perf_counter() - began) * 1000)
            if out != b"hi\n" or process.returncode:
                raise RuntimeError(f"wrong output: {out!r}")
        return took

    def marker(self, count: int, size_bytes: int, program: str, *, pty: bool) -> dict[str, Any]:
        return {"ms": asyncio.run(self._marker(count, size_bytes, program, pty=pty))}

    async def _marker(self, count: int, size_bytes: int, program: str, *, pty: bool) -> list[float]:
        took: list[float] = []
        with Arm(self.scratch) as arm, (self.scratch / "log").open("wb", buffering=0) as log:
            process, reader = await _start(program, str(arm.path), str(size_bytes), on_pty=pty)
            kept = b""
            while b"ready" not in kept:
                piece = await reader.read(PIECE_BYTES)
                log.write(piece)
                kept = kept[-16:] + piece
            for _ in range(count):
                arm()
                kept = b""
                while (found := MARKER.search(kept)) is None:
                    piece = await reader.read(PIECE_BYTES)
                    log.write(piece)
                    kept = kept[-64:] + piece
                took.append(ms_since(found[1]))
            process.kill()
            await process.wait()
        return took

    def crowd(self, count: int, command: str, expected_bytes: int) -> dict[str, Any]:
        before = resource.getrusage(resource.RUSAGE_SELF)
        began = time.perf_counter()
        outputs = asyncio.run(_crowd(count, command))
        wall_s = time.perf_counter() - began
        after = resource.getrusage(resource.RUSAGE_SELF)
        cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
        lost = sum(expected_bytes - len(out) for out in outputs)
        return {"wall_s": [wall_s], "cpu_s": [cpu_s], "lost_bytes": [lost]}

    def close(self) -> None:
        """Nothing is held."""


async def _start(*argv: str, on_pty: bool) -> tuple[asyncio.subprocess.Process, asyncio.StreamReader]:
    if not on_pty:
        process = await asyncio.create_subprocess_exec(*argv, stdout=asyncio.subprocess.PIPE, limit=PIECE_BYTES)
        assert process.stdout is not None
        return process, process.stdout
    master, slave = pty.openpty()
    tty.setraw(slave)
    process = await asyncio.create_subprocess_exec(*argv, stdin=slave, stdout=slave, start_new_session=True)
    os.close(slave)
    reader = asyncio.StreamReader(PIECE_BYTES)
    protocol = asyncio.StreamReaderProtocol(reader)
    await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(master, "rb", 0))
    return process, reader


async def _crowd(count: int, command: str) -> list[bytes]:
    async def one() -> bytes:
        process = await asyncio.create_subprocess_exec("bash", "-c", command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return out

    return await asyncio.gather(*(one() for _ in range(count)))
