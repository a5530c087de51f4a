"""A person at a terminal: a command of limpet's on a pty, on which an emulator draws and answers what it is asked."""

import fcntl
import os
import signal
import struct
import subprocess
import termios
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from limpet.engine.screens.emulator import Emulator
from limpet.model.screen import Picture, show

from .home import LIMPET, Home, until


class OwnTerminal:
    """`said` is all that was written to it; the emulator is one terminal among others, and answers as one."""

    def __init__(self, home: Home, words: Sequence[str], rows: int = 24, cols: int = 80, **env: str) -> None:
        self.ours, self._theirs = os.openpty()
        self._emulator = Emulator(rows, cols)
        self._lock = threading.Lock()
        self.said = b""
        self.resize(rows, cols)
        self.before = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            [LIMPET, *words],
            env={**home.env, "TERM": "xterm-256color", **env},
            cwd=home.work,
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self.ours, 1 << 16)
            except OSError:
                return
            with self._lock:
                self.said += data
                self._emulator.feed(data)
                answers = self._emulator.take_replies()
            if answers:
                os.write(self.ours, answers)

    def resize(self, rows: int, cols: int) -> None:
        with self._lock:
            self._emulator.resize(rows, cols)
        fcntl.ioctl(self.ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        if hasattr(self, "process"):
            os.kill(self.process.pid, signal.SIGWINCH)

    def press(self, text: str | bytes) -> None:
        data = memoryview(text.encode() if isinstance(text, str) else text)
        while data:
            data = data[os.write(self.ours, data) :]

    def picture(self) -> Picture:
        with self._lock:
            return self._emulator.picture()

    def rows(self) -> list[str]:
        return show(self.picture(), "text", replayed_from=0, complete=True).rows

    def is_alternate(self) -> bool:
        return self.picture().is_alternate

    def wait(self, text: str, row: int | None = None) -> None:
        def is_there() -> bool:
            rows = self.rows()
            return text in ("\n".join(rows) if row is None else rows[row])

        until(is_there, f"{text!r} among {self.rows()}")

    def settings(self) -> list[Any]:
        return termios.tcgetattr(self._theirs)

    def end(self) -> int:
        """The exit code; what the terminal was before is asserted to be so again."""
        code = self.process.wait(60)
        assert self.settings() == self.before
        return code

    def read_rest(self) -> None:
        """Returns once all that was written so far has been read."""
        os.write(self._theirs, b"<all was read>")
        until(lambda: self.said.endswith(b"<all was read>"), "the rest of what was said")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(20)
        os.close(self._theirs)
        self._reader.join(20)
        os.close(self.ours)
