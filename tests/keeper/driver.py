"""Drives one real keeper over its files and its socket, with no daemon: what every keeper test stands on."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

Fact = dict[str, Any]
Frame = dict[str, Any]

REPLY_WITHIN_S = 30.0


def read_journal(path: Path) -> list[Fact]:
    """The facts of a journal up to its torn tail; a break of the chain before that is an AssertionError."""
    facts: list[Fact] = []
    chain = 0
    lines = path.read_bytes().split(b"\n")
    for place, line in enumerate(lines[:-1]):
        version, crc, body = line.split(b" ", 2)
        assert version == b"1", line
        chain = zlib.crc32(body, chain)
        if f"{chain:08x}".encode() != crc:
            assert place == len(lines) - 2, f"the chain breaks at record {place + 1}, before the tail"
            break
        facts.append(json.loads(body))
        assert facts[-1]["n"] == len(facts)
    return facts


class Connection:
    """One control connection: requests and their replies by id; wakeups are counted aside."""

    def __init__(self, directory: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        try:  # by descriptor: pytest's paths can be longer than a socket's name may be
            self.socket.connect(f"/proc/self/fd/{handle}/control.sock")
        finally:
            os.close(handle)
        self.unread = b""
        self.wakeups: list[Frame] = []
        self.replies: dict[int | None, Frame] = {}
        self.last_id = 0

    def __del__(self) -> None:
        self.socket.close()

    def post(self, do: str, **fields: Any) -> int:
        """Sends a request without waiting for its reply; returns its id."""
        self.last_id += 1
        self.send_raw(json.dumps({"do": do, "id": self.last_id, **fields}).encode() + b"\n")
        return self.last_id

    def send_raw(self, data: bytes) -> None:
        self.socket.sendall(data)

    def receive(self, within_s: float = REPLY_WITHIN_S) -> Frame:
        """The next frame, whatever it is; TimeoutError or EOFError otherwise."""
        self.socket.settimeout(within_s)
        while b"\n" not in self.unread:
            data = self.socket.recv(1 << 16)
            if not data:
                raise EOFError("the keeper closed the connection")
            self.unread += data
        line, self.unread = self.unread.split(b"\n", 1)
        return json.loads(line)

    def reply(self, to: int | None, within_s: float = REPLY_WITHIN_S) -> Frame:
        deadline = time.monotonic() + within_s
        while to not in self.replies:
            frame = self.receive(max(0.001, deadline - time.monotonic()))
            if "re" in frame:
                self.replies[frame["re"]] = frame
            else:
                self.wakeups.append(frame)
        return self.replies.pop(to)

    def call(self, do: str, **fields: Any) -> Frame:
        return self.reply(self.post(do, **fields))

    def wakeup(self, within_s: float = REPLY_WITHIN_S) -> Frame:
        """The next wakeup, or one that came earlier and was not taken yet."""
        deadline = time.monotonic() + within_s
        while not self.wakeups:
            frame = self.receive(max(0.001, deadline - time.monotonic()))
            if "re" in frame:
                self.replies[frame["re"]] = frame
            else:
                self.wakeups.append(frame)
        return self.wakeups.pop(0)

    def close(self) -> None:
        self.socket.close()


class Keeper:
    """A keeper started cold in `directory`, and a connection to it that hears every fact."""

    def __init__(
        self,
        directory: Path,
        *,
        cgroup: Path | None = None,
        prefix: Sequence[str] = (),
        env: dict[str, str] | None = None,
    ) -> None:
        """`prefix` goes before the keeper's own command line: strace, prlimit, setpriv, ..."""
        self.directory = directory
        command = [*prefix, sys.executable, "-m", "limpet_keeper", "keep", str(directory)]
        if cgroup is not None:
            command += ["--cgroup", str(cgroup)]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=env)
        assert self.process.stdout is not None
        with self.process.stdout as ready:
            line = ready.readline()
        answer: Frame = json.loads(line) if line else {}
        if "ready" not in answer:
            raise AssertionError(f"the keeper ended with {self.process.wait()} before it was ready: {answer}")
        self.pid: int = answer["pid"]
        self.connection = Connection(directory)
        assert self.connection.call("hello", protocol=1, wake="every")["ok"]

    def __enter__(self) -> Keeper:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Ends whatever the test left: the run by its ladder, then the keeper, then what is left below it."""
        try:
            self.call("kill", signal="SIGKILL")
        except (OSError, EOFError, AssertionError):
            self.kill_afresh()
        self.connection.close()  # one that was never started goes with its last connection
        try:
            self.wait_gone(10)
        except subprocess.TimeoutExpired:
            for pid in [*descendants(self.pid), self.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if self.process.poll() is None:
                self.process.kill()
        self.process.wait()

    def kill_afresh(self) -> None:
        """The same `kill` over a connection of its own, where the test gave up the first one."""
        with suppress(OSError, EOFError), closing(Connection(self.directory)) as connection:
            connection.call("kill", signal="SIGKILL")

    def call(self, do: str, **fields: Any) -> Frame:
        return self.connection.call(do, **fields)

    def hello(self) -> Frame:
        """The greeting once more, hearing every fact as before."""
        return self.call("hello", protocol=1, wake="every")

    def start(self, *argv: str, **fields: Any) -> Frame:
        """Starts argv with sensible defaults; the reply, which may be a refusal."""
        request: Frame = {
            "run": "r1",
            "argv": list(argv),
            "cwd": "/",
            "env": {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"},
        }
        return self.call("start", **(request | fields))

    def sh(self, script: str, **fields: Any) -> Frame:
        return self.start("/bin/sh", "-c", script, **fields)

    def write(self, data: bytes, **fields: Any) -> Frame:
        return self.call("write", data=base64.b64encode(data).decode(), **fields)

    def facts(self) -> list[Fact]:
        return read_journal(self.directory / "keeper.journal")

    def named(self, name: str) -> list[Fact]:
        return [fact for fact in self.facts() if fact["fact"] == name]

    def spool(self, stream: str = "stdout") -> bytes:
        return (self.directory / f"{stream}.spool").read_bytes()

    def wait_fact(self, name: str, within_s: float = REPLY_WITHIN_S) -> Fact:
        """The first fact of that name; waits for it on wakeups, never by sleeping."""
        return self.wait_until(
            lambda facts: next((fact for fact in facts if fact["fact"] == name), None), within_s, name
        )

    def wait_until(
        self, seen: Callable[[list[Fact]], Any], within_s: float = REPLY_WITHIN_S, what: str = "that"
    ) -> Any:
        """The first true answer of `seen(facts)`."""
        deadline = time.monotonic() + within_s
        while True:
            facts = self.facts()
            if answer := seen(facts):
                return answer
            try:
                self.connection.wakeup(max(0.001, deadline - time.monotonic()))
            except (TimeoutError, EOFError, ConnectionError) as error:
                answer = seen(self.facts())
                if answer and isinstance(error, TimeoutError):
                    raise AssertionError(f"{what} came, and no wakeup told of it") from error
                if answer:
                    return answer
                raise AssertionError(f"no {what} within {within_s} s ({error!r}); facts: {self.facts()}") from error

    def wait_gone(self, within_s: float = REPLY_WITHIN_S) -> int:
        """Waits for the keeper's own exit, and says its exit code."""
        return self.process.wait(within_s)

    def is_locked(self) -> bool:
        """Whether somebody holds the journal's lock: the keeper, if it is alive."""
        with (self.directory / "keeper.journal").open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            return False


def descendants(pid: int) -> list[int]:
    """Every process below `pid`, as /proc tells it now."""
    found: list[int] = []
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                found += [int(child), *descendants(int(child))]
    except FileNotFoundError:
        pass
    return found


class Foreign(subprocess.Popen[bytes]):
    """A process that is no child of ours, watched through a pidfd; its exit code is not ours to know (always 0)."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)
        self.returncode = None

    def __del__(self, *_: Any) -> None:
        os.close(self.pidfd)

    def poll(self) -> int | None:
        return 0 if select.select([self.pidfd], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        if not select.select([self.pidfd], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(f"pid {self.pid}", timeout or 0)
        return 0

    def send_signal(self, sig: int) -> None:
        signal.pidfd_send_signal(self.pidfd, sig)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


class WarmKeeper(Keeper):
    """A keeper that a nursery prepared, and a connection to it that hears every fact."""

    def __init__(self, directory: Path, pid: int) -> None:
        self.directory = directory
        self.pid = pid
        self.process = Foreign(pid)
        self.connection = Connection(directory)
        assert self.connection.call("hello", protocol=1, wake="every")["ok"]


class Nursery:
    """A nursery, and what it answered."""

    def __init__(self, *, prefix: Sequence[str] = ()) -> None:
        command = [*prefix, sys.executable, "-m", "limpet_keeper", "nursery"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout

    def __enter__(self) -> Nursery:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.stdout.close()

    def prepare(self, directory: Path) -> Frame:
        """The answer for one directory, `ready` or `failed`."""
        self.stdin.write(json.dumps({"prepare": str(directory)}).encode() + b"\n")
        self.stdin.flush()
        line = self.stdout.readline()
        assert line, "the nursery ended without an answer"
        return json.loads(line)

    def keeper(self, directory: Path) -> WarmKeeper:
        answer = self.prepare(directory)
        assert answer.get("ready") == str(directory), answer
        return WarmKeeper(directory, answer["pid"])
