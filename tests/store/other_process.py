"""Another process at the database: it holds a lock or a snapshot until it is let go."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_HOLD = """
import apsw, sys
connection = apsw.Connection(sys.argv[1])
connection.set_busy_timeout(5000)
print(connection.execute(sys.argv[2]).fetchall(), flush=True)
for line in sys.stdin:
    print(connection.execute(line).fetchall(), flush=True)
"""


class Other:
    """Executes statements in its own connection."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def execute(self, statement: str) -> str:
        """What came of it, as Python writes it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{statement}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def other_process(path: Path, statement: str) -> Generator[Other]:
    """Once entered the statement is done; once left the process is gone."""
    command = [sys.executable, "-c", _HOLD, str(path), statement]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline(), "the other process could not do it"
        yield Other(process)
    assert process.returncode == 0
