"""A tmux of a test's own, as the other opinion on what a terminal shows: given the same bytes, it says its screen."""

import itertools
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

_numbers = itertools.count()
WITHIN_S = 30
_LINES = str.maketrans("lqkxmjtuvwn", "┌─┐│└┘├┤┴┬┼")


class Pane(NamedTuple):
    rows: list[str]
    cursor: tuple[int, int]
    is_alternate: bool
    title: str


class Tmux:
    """One server, one pane, which shows what it is given and hears nothing."""

    def __init__(self, folder: Path, rows: int, cols: int) -> None:
        self._socket = folder / f"tmux-{next(_numbers)}"
        self._pipe = folder / f"said-{self._socket.name}"
        self._folder = folder
        self._pieces = 0
        config = folder / "tmux.conf"
        config.write_text("set -g default-terminal tmux-256color\n")
        script = (
            "stty raw -echo; n=0; while :; do "
            'tmux -S "$0" wait-for give$n; cat "$1$n"; tmux -S "$0" wait-for -S gave$n; n=$((n+1)); done'
        )
        words = ["sh", "-c", script, str(self._socket), str(self._pipe)]
        self._run("-f", str(config), "new-session", "-d", "-x", str(cols), "-y", str(rows), *words)
        self._run("set", "status", "off")
        self._run("resize-window", "-x", str(cols), "-y", str(rows))

    def _run(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-u", "-S", str(self._socket), *words], capture_output=True, timeout=WITHIN_S, check=False
        )
        assert done.returncode == 0, done
        return done.stdout.decode()

    def feed(self, data: bytes) -> None:
        """Returns when it has drawn all of it."""
        Path(f"{self._pipe}{self._pieces}").write_bytes(data + b"\x1b]2;drawn-%d\x07" % self._pieces)
        before = self._title()
        self._run("wait-for", "-S", f"give{self._pieces}")
        self._run("wait-for", f"gave{self._pieces}")
        until = time.monotonic() + WITHIN_S
        while self._title() != f"drawn-{self._pieces}":
            assert time.monotonic() < until, (before, self._title())
        self._pieces += 1

    def resize(self, rows: int, cols: int) -> None:
        self._run("resize-window", "-x", str(cols), "-y", str(rows))

    def _title(self) -> str:
        return self._run("display-message", "-p", "#{pane_title}").rstrip("\n")

    def pane(self) -> Pane:
        said = self._run("display-message", "-p", "#{cursor_y} #{cursor_x} #{alternate_on}").split()
        rows = [row.rstrip(" ") for row in _plain(self._run("capture-pane", "-p", "-e")).split("\n")[:-1]]
        return Pane(rows, (int(said[0]), int(said[1])), said[2] == "1", self._title())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run("kill-server")


def _plain(captured: str) -> str:
    """Without colours, and with lines as lines: tmux says them as letters between SO and SI."""
    parts = re.split("\x0e|\x0f", re.sub("\x1b\\[[0-9;:]*m", "", captured))
    return "".join(part.translate(_LINES) if place % 2 else part for place, part in enumerate(parts))


def shown(folder: Path, pieces: Sequence[bytes | tuple[int, int]], rows: int = 24, cols: int = 80) -> Pane:
    """What tmux shows after these bytes and sizes."""
    with Tmux(folder, rows, cols) as tmux:
        for piece in pieces:
            if isinstance(piece, bytes):
                tmux.feed(piece)
            else:
                tmux.resize(*piece)
        return tmux.pane()
