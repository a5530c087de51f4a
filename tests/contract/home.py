"""A limpet home of its own for a test: its environment, its commands, its daemon, and the sweep after it."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

Answer = dict[str, Any]

LIMPET = str(Path(sys.executable).with_name("limpet"))
# LC_* reaches every run, from whatever surface, so a process that carries this name came from a test's home.
TAG = "LC_LIMPET_TEST"


class Home:
    """One LIMPET_HOME in a short temporary directory, and everything that was started on it."""

    def __init__(self, config: str = "") -> None:
        self.base = Path(tempfile.mkdtemp(prefix="lmp", dir="/tmp"))
        self.path = self.base / "h"
        self.socket = self.path / "daemon.sock"
        self._started: list[subprocess.Popen[bytes]] = []
        for name in ("user", "xdg", "work"):
            (self.base / name).mkdir()
        self.work = self.base / "work"
        self.env: dict[str, str] = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.base / "user"),
            "USER": os.environ.get("USER", "root"),
            "SHELL": "/bin/sh",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "XDG_CONFIG_HOME": str(self.base / "xdg"),
            "LIMPET_HOME": str(self.path),
            TAG: str(self.base),
        }
        if config:
            self.configure(config)

    def configure(self, config: str) -> None:
        self.path.mkdir(mode=0o700, exist_ok=True)
        file = self.path / "config.toml"
        file.write_text(config)
        file.chmod(0o600)

    def limpet(
        self,
        *args: str,
        stdin: bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        timeout_s: float = 60,
    ) -> subprocess.CompletedProcess[bytes]:
        """Run one command of the CLI to its end."""
        return subprocess.run(
            [LIMPET, *args],
            env={**self.env, **(env or {})},
            cwd=cwd or self.work,
            input=stdin or b"",
            capture_output=True,
            timeout=timeout_s,
            check=False,
        )

    def popen(
        self, *args: str, stdin: int = subprocess.DEVNULL, env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Start one command of the CLI and leave it running."""
        process = subprocess.Popen(
            [LIMPET, *args],
            env={**self.env, **(env or {})},
            cwd=self.work,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._started.append(process)
        return process

    def start(self, env: Mapping[str, str] | None = None) -> Answer:
        """Serve in the foreground; the answer is the ready line."""
        return self.serve(env=env)

    def serve(self, *args: str, env: Mapping[str, str] | None = None) -> Answer:
        """The same, with more words on the command line."""
        with (self.base / "serve.err").open("ab") as told:
            process = subprocess.Popen(
                [LIMPET, "serve", "--ready-json", *args],
                env={**self.env, **(env or {})},
                cwd=self.base,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=told,
            )
        self._started.append(process)
        line = read_line(process, 60)
        if not line.strip():
            raise AssertionError(f"serve said nothing: {(self.base / 'serve.err').read_text()[-2000:]}")
        ready: Answer = json.loads(line)
        return ready

    def daemon_pid(self) -> int:
        done = self.limpet("status", "--json")
        assert done.returncode == 0, done
        pid = json.loads(done.stdout)["pid"]
        assert isinstance(pid, int)
        return pid

    def kill_daemon(self) -> int:
        """Injector: SIGKILL to the daemon; returns once its process is gone."""
        pid = self.daemon_pid()
        os.kill(pid, signal.SIGKILL)
        for process in self._started:
            if process.pid == pid:
                process.wait(20)
        until(lambda: not running(pid), f"the daemon {pid} to be gone")
        return pid

    def processes(self) -> list[int]:
        """Every living process that this home started, whatever became of its parents."""
        mark = f"{TAG}={self.base}".encode()
        found: list[int] = []
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError):
                if entry.name.isdigit() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
        return found

    def close(self) -> None:
        try:
            self.limpet("stop", "--kill-runs", timeout_s=30)
        except (OSError, subprocess.TimeoutExpired):
            pass
        finally:
            for _ in range(50):
                for pid in self.processes():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                for process in self._started:
                    process.poll()
                if not self.processes():
                    break
                time.sleep(0.02)
            for process in self._started:
                process.kill()
                process.wait(20)
                for stream in (process.stdin, process.stdout, process.stderr):
                    if stream is not None:
                        with contextlib.suppress(OSError):
                            stream.close()
            shutil.rmtree(self.base, ignore_errors=True)


def running(pid: int) -> bool:
    """Is there such a process, one that has not ended? (A zombie has ended.)"""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(holds: Callable[[], bool], what: str, timeout_s: float = 30) -> None:
    """Wait for a fact of the machine that nothing announces."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, f"waited {timeout_s} s in vain for {what}"
        time.sleep(0.02)


def read_line(process: subprocess.Popen[bytes], timeout_s: float = 30, *, stderr: bool = False) -> bytes:
    """The next line of a process's output, read byte by byte so that nothing more is taken."""
    stream = process.stderr if stderr else process.stdout
    assert stream is not None
    deadline = time.monotonic() + timeout_s
    line = b""
    while not line.endswith(b"\n"):
        left_s = deadline - time.monotonic()
        assert left_s > 0, f"no line within {timeout_s} s, only {line!r}"
        assert select.select([stream], [], [], left_s)[0], f"no line within {timeout_s} s, only {line!r}"
        byte = os.read(stream.fileno(), 1)
        if not byte:
            break
        line += byte
    return line


def json_lines(stdout: bytes) -> Sequence[Any]:
    """What `--json` prints: one object, or one a line, and nothing else."""
    text = stdout.decode()
    try:
        return [json.loads(text)]
    except json.JSONDecodeError:
        return [json.loads(line) for line in text.splitlines()]
