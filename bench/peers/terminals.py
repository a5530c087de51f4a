"""tmux: a server of its own; panes that stay when their command has ended, and control mode to hear what they say."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import time
from pathlib import Path
from typing import Any

from bench.peers import CannotError
from bench.peers.markers import MARKER, Arm, ms_since

OCTAL = re.compile(rb"\\([0-7]{3})")
LINE_BYTES = 64


def make(scratch: Path) -> Terminals:
    return Terminals(scratch)


class Terminals:
    def __init__(self, scratch: Path) -> None:
        self.scratch = scratch
        self.socket = str(scratch / "tmux")
        self.environment = {name: value for name, value in os.environ.items() if not name.startswith("TMUX")}
        self._tmux("-f", "/dev/null", "new-session", "-d", "-s", "bench", "-x", "80", "-y", "24", "sleep 86400")
        self._tmux("set-option", "-g", "remain-on-exit", "on")
        self._tmux("set-option", "-g", "history-limit", "2000")
        self._tmux("set-hook", "-g", "pane-died", "wait-for -S died")
        self.pid = int(self._tmux("display-message", "-p", "#{pid}"))

    def _tmux(self, *arguments: str) -> str:
        return subprocess.run(
            ["tmux", "-S", self.socket, *arguments],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=self.environment,
            text=True,
        ).stdout

    def _window(self, command: str) -> str:
        return self._tmux("new-window", "-d", "-P", "-F", "#{pane_id}", "-t", "bench", command).strip()

    def echo(self, count: int) -> dict[str, Any]:
        took: list[float] = []
        for _ in range(count):
            began = time.perf_counter()
            pane = self._window("echo hi")
            self._tmux("wait-for", "died")
            out = self._tmux("capture-pane", "-p", "-S", "-", "-t", pane)
            took.append((time.perf_counter() - began) * 1000)
            self._tmux("kill-pane", "-t", pane)
            if "hi" not in out.split("\n"):
                raise RuntimeError(f"wrong output: {out!r}")
        return {"ms": took}

    def marker(self, count: int, size_bytes: int, program: str, *, pty: bool) -> dict[str, Any]:
        if not pty:
            raise CannotError("it runs commands on a pty only")
        took: list[float] = []
        with Arm(self.scratch) as arm:
            pane = self._window(f"exec {shlex.join([program, str(arm.path), str(size_bytes)])}")
            while "ready" not in self._tmux("capture-pane", "-p", "-t", pane):
                time.sleep(0.1)  # nothing tells what a pane shows; nothing is measured yet
            with subprocess.Popen(
                ["tmux", "-S", self.socket, "-C", "attach-session", "-t", "bench"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self.environment,
            ) as control:
                assert control.stdin is not None
                assert control.stdout is not None
                control.stdin.write(f"select-window -t {pane}\ndisplay-message -p attached\n".encode())
                control.stdin.flush()
                while control.stdout.readline().strip() != b"attached":
                    pass
                for _ in range(count):
                    arm()
                    kept = b""
                    while (found := MARKER.search(kept)) is None:
                        kept = kept[-64:] + self._said(control.stdout.readline(), pane)
                    took.append(ms_since(found[1]))
                control.stdin.write(b"detach-client\n")
                control.stdin.flush()
                control.stdout.read()
            self._tmux("kill-pane", "-t", pane)
        return {"ms": took}

    def _said(self, line: bytes, pane: str) -> bytes:
        if not line:
            raise RuntimeError("the control client ended")
        head = f"%output {pane} ".encode()
        return (
            OCTAL.sub(lambda octal: bytes([int(octal[1], 8)]), line[len(head) : -1]) if line.startswith(head) else b""
        )

    def crowd(self, count: int, command: str, expected_bytes: int) -> dict[str, Any]:
        before_s = self._cpu_s()
        began = time.perf_counter()
        panes = [self._window(command) for _ in range(count)]
        shown = "#{pane_id} #{pane_dead}"
        while True:
            dead = {line.split()[0] for line in self._listed(shown) if line.endswith(" 1")}
            if dead.issuperset(panes):
                break
            time.sleep(0.02)  # nothing tells that the last of many has died
        wall_s = time.perf_counter() - began
        cpu_s = self._cpu_s() - before_s
        lines = expected_bytes // LINE_BYTES
        lost = 0
        for pane in panes:
            shown = self._tmux("capture-pane", "-p", "-S", "-", "-t", pane).splitlines()
            lost += lines - len({line[:8] for line in shown if line[:8].isdigit()})
            self._tmux("kill-pane", "-t", pane)
        return {"wall_s": [wall_s], "cpu_s": [cpu_s], "lost_bytes": [lost * LINE_BYTES]}

    def _listed(self, shown: str) -> list[str]:
        return self._tmux("list-panes", "-a", "-F", shown).splitlines()

    def close(self) -> None:
        self._tmux("kill-server")

    def _cpu_s(self) -> float:
        return int(Path(f"/proc/{self.pid}/schedstat").read_text().split()[0]) / 1e9
