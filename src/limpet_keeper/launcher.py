"""The process that becomes the command: forked ahead, it waits where it will run and then executes the program."""

from __future__ import annotations

import marshal
import os
import resource  # also what wait4 answers with: imported once in the nursery, not in every keeper
import sys

from limpet_keeper import lean_json, system
from limpet_keeper.bare import signal
from limpet_keeper.settings import Settings
from limpet_keeper.tree import write_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Json = dict[str, Any]
    Request = tuple[list[str], str, dict[str, str], dict[str, int], list[Json], str, str | None, str | None]

# Done once ahead, with a program that is none: what the way to a real one touches is then in memory of its own.
REHEARSAL = Settings()
REHEARSAL.argv, REHEARSAL.env = ["", "-c", ""], {"PATH": "/", "HOME": "/", "LANG": "C"}

# Small enough that no memory has to be mapped for it.
READ_BYTES = 1 << 16
# How many bytes say how long the request is.
LENGTH_BYTES = 8
GO = b"!"
DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"


class Launcher:
    """The keeper's end: pipes to the command-to-be, and a channel that says whether it could be executed."""

    def __init__(self) -> None:
        self.stdin = self.stdout = self.stderr = self.status = self._go = -1
        self.pid = 0
        self.start_time = 0

    def fork(self, cgroup: str | None, umask: int) -> None:
        """Begins the process that waits; it joins that cgroup."""
        child_in, self.stdin = os.pipe()
        self.stdout, child_out = os.pipe()
        self.stderr, child_err = os.pipe()
        child_go, self._go = os.pipe()
        self.status, child_status = os.pipe()
        ours = (self.stdin, self.stdout, self.stderr, self._go, self.status)
        self.pid = os.fork()
        if self.pid == 0:
            for fd in ours:
                os.close(fd)
            _wait_and_become(child_go, child_status, (child_in, child_out, child_err), cgroup, umask)
        for fd in (child_in, child_out, child_err, child_go, child_status):
            os.close(fd)
        # Executing a program does not change it, and while one is executed it can be slow to read.
        self.start_time = system.start_time(self.pid)

    def in_cgroup(self) -> bool:
        """Waits until it stands ready; whether it joined its cgroup."""
        return os.read(self.status, 1) == b"+"

    def tell(self, run: Settings, terminal: str | None) -> None:
        """Says what it will become: it takes all steps but the last one."""
        data = marshal.dumps(_request(run, terminal))
        self._write(len(data).to_bytes(LENGTH_BYTES, "little") + data)

    def go(self) -> None:
        """Lets it become the command; `status` then gives a refusal, or end of file once the program runs."""
        self._write(GO)
        os.close(self._go)

    def _write(self, data: bytes) -> None:
        try:
            while data:
                data = data[os.write(self._go, data) :]
        except BrokenPipeError:
            pass  # it was refused something, or killed: `status` and its end tell

    def abandon(self) -> None:
        """Ends it: there will be no command."""
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def refusal(self) -> Json | None:
        """Read when `status` is readable: why the program could not be executed; None when it was."""
        parts: list[bytes] = []
        while part := os.read(self.status, 65536):
            parts.append(part)
        os.close(self.status)
        return lean_json.decode(b"".join(parts)) if parts else None


def _wait_and_become(go: int, status: int, pipes: tuple[int, int, int], cgroup: str | None, umask: int) -> NoReturn:
    code = 127
    try:
        os.setsid()
        # Whoever waits for the end of the keeper's own stdin and stdout is not to wait for the command.
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        os.dup2(null, 1)
        system.handle(system.IGNORED, signal.SIG_DFL)
        os.umask(umask)
        joined = _join(cgroup)
        _become(_request(REHEARSAL, None), pipes, -1)
        os.write(status, b"+" if joined else b"-")
        length = int.from_bytes(_read_exactly(go, LENGTH_BYTES), "little")
        request = _read_exactly(go, length)
        if length and len(request) == length and (refusal := _become(marshal.loads(request), pipes, go)):
            os.write(status, lean_json.encode(refusal).encode())
        else:
            code = 0  # the keeper went away before it was started
    finally:
        os._exit(code)


def _read_exactly(fd: int, count: int) -> bytes:
    """That many bytes, fewer only when no more will come."""
    data = b""
    while len(data) < count and (part := os.read(fd, min(READ_BYTES, count - len(data)))):
        data += part
    return data


def _join(cgroup: str | None) -> bool:
    if cgroup is None:
        return False
    try:
        write_file(f"{cgroup}/cgroup.procs", b"0")
    except OSError:
        return False
    return True


def _request(run: Settings, terminal: str | None) -> Request:
    return run.argv, run.cwd, run.env, run.rlimits, run.cgroups, run.stdin, terminal, run.shells


def _become(request: Request, pipes: tuple[int, int, int], go: int) -> Json | None:
    """Executes the program once `go` says so; it returns only to say what was in the way, None when nobody said so."""
    words, cwd, variables, rlimits, cgroups, stdin, terminal, directory = request
    part = "cgroup"
    refusal: OSError | ValueError
    try:
        for group in cgroups:
            write_file(f"{group['path']}/cgroup.procs", b"0")
        part = "rlimit"
        _limit(rlimits)
        part = "cwd"
        os.chdir(cwd)
        part = "stdin" if terminal is None else "pty"
        _open_stdio(terminal, stdin, pipes)
        part = "env"
        env = {os.fsencode(name): os.fsencode(value) for name, value in variables.items()}
        if any(b"\0" in name + value or b"=" in name or not name for name, value in env.items()):
            raise ValueError("a name or value of the environment holds a NUL, or a name is empty or holds '='")
        part = "argv"
        argv = [os.fsencode(word) for word in words]
        if any(b"\0" in word for word in argv):
            raise ValueError("a word of the command holds a NUL")
        part = "program"
        if go >= 0 and os.read(go, 1) != GO:
            return None
        if directory is not None:
            from limpet_keeper import shells

            shells.keep(argv, env, directory)
        _execute(argv, env)
    except (OSError, ValueError) as error:
        refusal = error
    if isinstance(refusal, ValueError):
        # What setrlimit may not do, Python calls a wrong value.
        return {"part": part, "errno": "EPERM" if part == "rlimit" else "EINVAL", "message": str(refusal)}
    name = system.error_name(refusal)
    if name == "E2BIG":
        part = "env" if len(str(variables)) > len(str(words)) else "argv"
    return {"part": part, "errno": name, "message": os.strerror(refusal.errno or 0)}


def _limit(limits: dict[str, int]) -> None:
    for name, most in limits.items():
        # One second more before the hard end of cpu time: SIGXCPU comes first, and tells what happened.
        resource.setrlimit(getattr(resource, f"RLIMIT_{name.upper()}"), (most, most + 1 if name == "cpu" else most))


def _open_stdio(terminal: str | None, stdin: str, pipes: tuple[int, int, int]) -> None:
    if terminal is not None:
        # The first terminal that a session leader opens becomes its controlling one.
        first = os.open(terminal, os.O_RDWR)
        if sys.platform != "linux":
            import fcntl
            import termios

            fcntl.ioctl(first, termios.TIOCSCTTY, 0)
        sources = (first, first, first)
    elif stdin == "null":
        sources = (os.open(os.devnull, os.O_RDONLY), *pipes[1:])
    else:
        sources = pipes
    for target, source in enumerate(sources):
        if source == target:
            os.set_inheritable(target, True)
        else:
            os.dup2(source, target)


def _execute(argv: list[bytes], env: dict[bytes, bytes]) -> NoReturn:
    program = argv[0]
    if b"/" in program:
        os.execve(program, argv, env)
    path = env.get(b"PATH", DEFAULT_PATH.encode())
    places = [(directory or b".") + b"/" + program for directory in path.split(b":")]
    refused: OSError | None = None
    # To look is quicker than to be refused. Where it is nowhere to be seen, the system's own word counts.
    for place in [place for place in places if os.access(place, os.F_OK)] or places:
        try:
            os.execve(place, argv, env)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            refused = refused or error
    raise refused or FileNotFoundError(2, "No such file or directory")
