"""Named pipes that tell a test, as an event, where a command is, let it go on, and tell when all of it is gone."""

import os
import select
import time
from pathlib import Path
from types import TracebackType


class Lifeline:
    """Held open by every process of a command (as its descriptor 9); end of file means that none of them is left."""

    def __init__(self, folder: Path, name: str = "lifeline") -> None:
        self.path = folder / name
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLIN)

    @property
    def hold(self) -> str:
        """The start of a command: hold the line and say the shell's own pid."""
        return f"exec 9>'{self.path}'; echo $$ >&9; "

    def word(self, timeout_s: float = 30) -> str:
        """The next line that came down the line (of the command's own pid, first)."""
        deadline = time.monotonic() + timeout_s
        line = b""
        while not line.endswith(b"\n"):
            left_s = deadline - time.monotonic()
            assert left_s > 0, f"nothing came down the lifeline within {timeout_s} s"
            if self._poll.poll(left_s * 1000):
                byte = os.read(self._fd, 1)
                assert byte, "the command let go before it said anything"
                line += byte
        return line.decode().strip()

    def gone(self, timeout_s: float) -> bool:
        """Has every holder let go, at most so long from now?"""
        deadline = time.monotonic() + timeout_s
        while True:
            left_s = max(0.0, deadline - time.monotonic())
            events = self._poll.poll(left_s * 1000)
            if any(event & select.POLLIN for _, event in events):
                os.read(self._fd, 65536)
            elif events:
                return True
            elif time.monotonic() >= deadline:
                return False

    def __enter__(self) -> "Lifeline":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._fd)


class Gate:
    """A command that reads a line from it waits until the test opens it."""

    def __init__(self, folder: Path, name: str = "gate") -> None:
        self.path = folder / name
        os.mkfifo(self.path)
        # Read and write: neither side ever waits for the other to open.
        self._fd = os.open(self.path, os.O_RDWR)

    @property
    def wait(self) -> str:
        return f"read go <'{self.path}'; "

    def open(self) -> None:
        os.write(self._fd, b"go\n")

    def __enter__(self) -> "Gate":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.close(self._fd)
