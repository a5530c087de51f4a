"""Commands of a simulated machine: each a script of what it says, how long it takes and how it ends."""

import os
import random
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from limpet.testing.simulation.machine import Machine

# What commands say is cut out of this: characters of every length, and bytes that are none.
_WORDS: Final = ("a line\n", "é", "漢字", "🙂", "\r\n", "tab\t", "x" * 40)
_POOL_BYTES: Final = 1 << 16


def _make_pool() -> bytes:
    chance = random.Random(0)
    words = [word.encode() for word in _WORDS] + [b"\xff", b"\xe2\x82", b"\0"]
    pool = b""
    while len(pool) < _POOL_BYTES:
        pool += chance.choice(words)
    return pool[:_POOL_BYTES]


POOL: Final = _make_pool()


def draw_script(chance: random.Random) -> str:
    """What a command is to do: say so many bytes, wait, ignore TERM, leave somebody behind; and how it ends."""
    steps: list[str] = []
    for _ in range(chance.choice((0, 1, 1, 2, 3, 5))):
        kind = chance.choice("ooooeppptb" if len(steps) < 4 else "oep")
        size = chance.choice((1, 3, 17, 200, 900, 2500))
        if kind in "oe" and chance.random() < 0.05:
            size = chance.choice((9000, 20000, 70000))
        steps.append(kind if kind == "t" else f"{kind}{size}")
    end = chance.choice(("x0", "x0", "x0", "x1", "x7", "x137", "kSIGKILL", "kSIGSEGV", "h"))
    return " ".join([*steps, end])


class Process:
    """One process of a run. The first is the command itself; others hold its streams when it has gone."""

    def __init__(self, machine: "Machine", run_id: str, script: list[str], out: int, err: int) -> None:
        self.machine = machine
        self.run_id = run_id
        self.pid = machine.world.new_pid()
        self.is_alive = True
        self.ignores_term = False
        self.is_main = True
        self.script = script
        self.said = 0
        self.fds = {"stdout": out, "stderr": err}
        # What it has written so far into each pipe, and what is still to go in.
        self.written: dict[str, bytes] = {"stdout": b"", "stderr": b""}
        self._rest = b""
        self._into = "stdout"
        self.on_end: Callable[[Process, int], None] = lambda _process, _status: None
        self.on_fork: Callable[[Process], None] = lambda _process: None
        self.on_wrote: Callable[[], None] = lambda: None

    def go_on(self) -> None:
        """Does the next of its steps."""
        if not self.is_alive:
            return
        if self._rest:
            self._write()
            return
        step = self.script.pop(0) if self.script else "x0"
        kind, what = step[0], step[1:]
        match kind:
            case "o" | "e":
                self._into = "stdout" if kind == "o" else "stderr"
                place = self.said % (_POOL_BYTES // 2)
                self._rest = (POOL[place:] + POOL)[: int(what)] if int(what) < _POOL_BYTES else POOL + POOL[:4464]
                self.said += int(what)
                self._write()
            case "p":
                self.machine.world.after(int(what) / 1000, self.go_on)
            case "t":
                self.ignores_term = True
                self.machine.world.soon(self.go_on)
            case "b":
                self._leave_behind(int(what))
                self.machine.world.soon(self.go_on)
            case "k":
                self.end(signal.Signals[what])
            case "h":
                pass
            case _:
                self.end(int(what) << 8)

    def _write(self) -> None:
        try:
            done = os.write(self.fds[self._into], self._rest)
        except BlockingIOError:
            self.machine.world.after(0.01, self.go_on)
            return
        except BrokenPipeError:
            self.end(signal.SIGPIPE)
            return
        self.written[self._into] += self._rest[:done]
        self._rest = self._rest[done:]
        self.on_wrote()
        self.machine.world.soon(self.go_on)

    def _leave_behind(self, for_ms: int) -> None:
        """Somebody who says little and holds both streams, for a while or until killed."""
        script = [f"p{for_ms}", "o5", *(["h"] if for_ms == 17 else ["x0"])]
        other = Process(self.machine, self.run_id, script, os.dup(self.fds["stdout"]), os.dup(self.fds["stderr"]))
        other.written, other.is_main = self.written, False
        other.on_end, other.on_wrote = self.on_end, self.on_wrote
        self.on_fork(other)
        self.machine.world.soon(other.go_on)

    def get(self, number: int) -> None:
        """A signal reaches it, a moment later."""
        if number == signal.SIGKILL or (number == signal.SIGTERM and not self.ignores_term):
            self.machine.world.soon(lambda: self.end(number))

    def end(self, status: int) -> None:
        """It ends, as `waitpid` will tell."""
        if self.is_alive:
            self.is_alive = False
            for fd in self.fds.values():
                os.close(fd)
            self.on_end(self, status)
