"""Markers as the program `marker` writes them: a FIFO that arms it, and how long ago one was written."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from types import TracebackType

MARKER = re.compile(rb"@@(\d+)@@")
TEXT = r"@@(\d+)@@"


class Arm:
    """The FIFO through which a marker is asked for; it comes 20 ms later."""

    def __init__(self, scratch: Path) -> None:
        self.path = scratch / f"arm-{os.getpid()}-{time.monotonic_ns()}"
        os.mkfifo(self.path, 0o600)
        # open for reading too: the command opens its end when it is ready
        self._fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self._writer = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)

    def __enter__(self) -> Arm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._writer)
        os.close(self._fd)
        self.path.unlink()

    def __call__(self) -> None:
        os.write(self._writer, b"x")


def ms_since(stamp: bytes | str) -> float:
    """From a marker's write to now; for all processes of a machine there is one monotonic clock."""
    return (time.monotonic_ns() - int(stamp)) / 1e6
