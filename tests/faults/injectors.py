"""Faults on a running process: each is a context manager that undoes itself and can tell whether it happened."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.faults.disks import need, run

ATTACH_WITHIN_S = 20.0


@contextmanager
def immutable(path: Path) -> Generator[None]:
    """`path` refuses every writer, those that have it open included; fails where the file system takes no such flag."""
    need("chattr")
    run("chattr", "+i", path)
    try:
        try:
            os.close(os.open(path, os.O_WRONLY))
        except PermissionError:
            pass
        else:
            raise AssertionError(f"{path} is still writable")
        yield
    finally:
        run("chattr", "-i", path)


@contextmanager
def file_size_limit(pid: int, limit_bytes: int) -> Generator[None]:
    """RLIMIT_FSIZE of a running process, lowered and raised again."""
    before = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (limit_bytes, before[1]))
    try:
        yield
    finally:
        with suppress(ProcessLookupError):  # it ended meanwhile
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)


class Trace:
    """strace on a running process; what it did is read from its log once it is detached."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.log = log

    def detach(self) -> None:
        """Lets the process go on untouched, from now on."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.wait(ATTACH_WITHIN_S)

    def wait_end(self, within_s: float) -> None:
        """Waits for the traced process's end."""
        self.process.wait(within_s)

    def lines(self) -> list[str]:
        assert self.process.poll() is not None, "read the log when the trace is over"
        return self.log.read_text(errors="replace").splitlines()

    def injected(self) -> int:
        """How many calls were answered by the injector instead of the kernel."""
        return sum("(INJECTED)" in line for line in self.lines())

    def delayed(self) -> int:
        return sum("(DELAYED)" in line for line in self.lines())

    def killed(self) -> bool:
        """Whether a traced call was the process's last."""
        lines = self.lines()
        return any("+++ killed by SIGKILL +++" in line for line in lines) and any("= ?" in line for line in lines)


@contextmanager
def traced(
    pid: int, log: Path, *, calls: str, inject: Sequence[str] = (), paths: Sequence[Path] = (), follow: bool = True
) -> Generator[Trace]:
    """Attaches strace to all threads of `pid` (and, with `follow`, what they start from now on).

    `calls` are the system calls to watch, `inject` strace's own expressions, `paths` the only files they act on.
    """
    need("strace")
    command = ["strace", "-o", str(log), "-e", "signal=KILL", "-e", f"trace={calls}", "-p", str(pid)]
    command += ["-f"] if follow else []
    for expression in inject:
        command += ["-e", f"inject={expression}"]
    for path in paths:
        command += ["-P", str(path)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    with process.stderr as messages:
        try:
            said = b""
            while b" attached" not in said:
                line = messages.readline()
                assert line, f"strace ended: {process.wait()}: {said.decode()}"
                said += line
            yield Trace(process, log)
        finally:
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(ATTACH_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class Preload:
    """The half-write shim: the environment that loads it into a keeper, its switch, and what it did."""

    def __init__(self, directory: Path, file: str, mode: str) -> None:
        self.armed = directory / "armed"
        self.log = directory / "faults.log"
        library = directory / "half_write.so"
        source = Path(__file__).with_name("half_write.c")
        run("gcc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl")
        self.env = os.environ | {
            "LD_PRELOAD": str(library),
            "FAULT_FILE": f"/{file}",
            "FAULT_MODE": mode,
            "FAULT_ARMED": str(self.armed),
            "FAULT_LOG": str(self.log),
        }

    def arm(self) -> None:
        self.armed.touch()

    def disarm(self) -> None:
        self.armed.unlink(missing_ok=True)

    def happened(self) -> list[tuple[str, int, int]]:
        """Each fault: mode, bytes asked, bytes written (-1: ENOSPC)."""
        if not self.log.exists():
            return []
        words = (line.split() for line in self.log.read_text().splitlines())
        return [(mode, int(asked), int(result)) for mode, asked, result in words]


@contextmanager
def half_writes(directory: Path, file: str, mode: str) -> Generator[Preload]:
    """Real short writes on the keeper's `file`: mode "one" or "half" (see half_write.c)."""
    if shutil.which("gcc") is None:
        pytest.skip("not on this machine: gcc")
    directory.mkdir(parents=True, exist_ok=True)
    shim = Preload(directory, file, mode)
    try:
        yield shim
    finally:
        shim.disarm()
