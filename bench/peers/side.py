"""The peers from the bench's side: one driver process each, asked by lines of JSON, in turns with limpet."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.measure import Beside, Setting
from bench.peers import environment

MODULES = {
    "asyncio": "plain",
    "pexpect": "expecting",
    "tmux": "terminals",
    "SWE-ReX": "swerex",
    "codex exec-server": "codex",
}
CLOSED_WITHIN_S = 20.0


class Driver:
    """One peer's process."""

    def __init__(self, module: str, scratch: Path) -> None:
        interpreter = environment.python() if environment.python().exists() else Path(sys.executable)
        self.process = subprocess.Popen(
            [str(interpreter), "-m", "bench.peers.drive", module, str(scratch)],
            cwd=environment.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(environment.ROOT)},
        )

    def ask(self, what: str, **params: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"do": what, **params}).encode() + b"\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            return {"missing": f"its driver ended with {self.process.wait()}"}
        return json.loads(line)

    def close(self) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.close()
        self.process.stdout.close()
        try:
            self.process.wait(CLOSED_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Peers:
    """All that are to be measured; none without `--peers`. One that cannot do something is asked for it no more."""

    def __init__(self, setting: Setting, *names: str) -> None:
        self.drivers: dict[str, Driver] = {}
        self.missing: dict[str, str] = {}
        if not setting.peers:
            return
        self.missing = {name: why for name, why in environment.set_up().items() if name in (names or MODULES)}
        for name in names or MODULES:
            if name not in self.missing:
                scratch = setting.directory(f"peer-{MODULES[name]}")
                self.drivers[name] = Driver(MODULES[name], scratch)

    def __enter__(self) -> Peers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for driver in self.drivers.values():
            driver.close()

    def ask(self, beside: Beside, what: str, **params: Any) -> None:
        """Asks each in turn; each figure of an answer goes to the series of that name."""
        for name, driver in self.drivers.items():
            if name in beside.missing:
                continue
            answer = driver.ask(what, **params)
            if "missing" in answer:
                beside.missing[name] = answer["missing"]
                beside.series.pop(name, None)
                continue
            beside.take(name, answer)
        for name, why in self.missing.items():
            beside.missing.setdefault(name, why)
