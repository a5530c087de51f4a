"""Keepers from a nursery whose runs get a cgroup below one parent."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.keeper.driver import Nursery


class ParentNursery(Nursery):
    """A nursery with `--cgroup`, or without where there is no parent."""

    def __init__(self, parent: Path | None) -> None:
        command = [sys.executable, "-m", "limpet_keeper", "nursery"]
        if parent is not None:
            command += ["--cgroup", str(parent)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
