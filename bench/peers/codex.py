"""codex's exec-server over stdio: JSON-RPC by lines, what a command says as notifications of base64."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.peers import environment
from bench.peers.markers import MARKER, Arm, ms_since

Message = dict[str, Any]


def make(scratch: Path) -> Codex:
    return Codex(scratch)


class Codex:
    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        home = scratch / "home"
        home.mkdir()
        self.process = subprocess.Popen(
            [str(environment.codex()), "exec-server", "--listen", "stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(home), "CODEX_HOME": str(home)},
        )
        self.asked = 0
        self.told: list[Message] = []
        self._ask("initialize", clientName="bench")
        self._send({"method": "initialized", "params": {}})

    def echo(self, count: int) -> dict[str, Any]:
        took: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            name = self._start("bash", "-c", "echo hi")
            out, after, closed = b"", None, False
            while not closed:
                read = self._ask("process/read", processId=name, afterSeq=after, maxBytes=65536, waitMs=10_000)
                out += b"".join(base64.b64decode(chunk["chunk"]) for chunk in read["chunks"])
                after, closed = read["nextSeq"] - 1, read["closed"]
            took.append((time.perf_counter() - began) * 1000)
            self.told.clear()
            if out != b"hi\n":
                raise RuntimeError(f"wrong output: {out!r}")
        return {"ms": took}

    def marker(self, count: int, size_bytes: int, program: str, *, pty: bool) -> dict[str, Any]:
        took: list[float] = []
        with Arm(self.scratch) as arm:
            name = self._start(program, str(arm.path), str(size_bytes), tty=pty)
            kept = b""
            while b"ready" not in kept:
                kept = kept[-16:] + self._said(self._next())
            for _ in range(count):
                arm()
                kept = b""
                while (found := MARKER.search(kept)) is None:
                    kept = kept[-64:] + self._said(self._next())
                took.append(ms_since(found[1]))
            self._ask("process/terminate", processId=name)
            self.told.clear()
        return {"ms": took}

    def crowd(self, count: int, command: str, expected_bytes: int) -> dict[str, Any]:
        before_s = self._cpu_s()
        began = time.perf_counter()
        for _ in range(count):
            self._start("bash", "-c", command)
        said, closed = 0, 0
        while closed < count:
            message = self._next()
            said += len(self._said(message))
            closed += message["method"] == "process/closed"
        wall_s = time.perf_counter() - began
        cpu_s = self._cpu_s() - before_s
        return {"wall_s": [wall_s], "cpu_s": [cpu_s], "lost_bytes": [expected_bytes * count - said]}

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()

    def _start(self, *argv: str, tty: bool = False) -> str:
        name = f"p{self.asked}"
        env = {"PATH": os.environ["PATH"]}
        cwd = "file:///"
        self._ask("process/start", processId=name, argv=argv, cwd=cwd, env=env, tty=tty, pipeStdin=False, arg0=None)
        return name

    def _ask(self, method: str, **params: Any) -> Message:
        self.asked += 1
        self._send({"id": self.asked, "method": method, "params": params})
        while True:
            message = self._receive()
            if message.get("id") != self.asked:
                self.told.append(message)
            elif "error" in message:
                raise RuntimeError(f"{method}: {message['error']}")
            else:
                return message["result"]

    def _next(self) -> Message:
        return self.told.pop(0) if self.told else self._receive()

    def _said(self, message: Message) -> bytes:
        return base64.b64decode(message["params"]["chunk"]) if message["method"] == "process/output" else b""

    def _send(self, message: Message) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def _receive(self) -> Message:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the exec-server ended")
        return json.loads(line)

    def _cpu_s(self) -> float:
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
