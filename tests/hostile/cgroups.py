"""Finds the cgroup hierarchies that may be written here, and makes groups in them that are gone afterwards."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


def hierarchy(controller: str | None = None) -> Path | None:
    """The mount of cgroup v2, or of a v1 controller, if groups can be made in it."""
    for line in Path("/proc/mounts").read_text().splitlines():
        _, mount, kind, options, *_ = line.split(" ")
        wanted = kind == "cgroup2" if controller is None else kind == "cgroup" and controller in options.split(",")
        if wanted and os.access(mount, os.W_OK) and "rw" in options.split(","):
            return Path(mount)
    return None


def members(group: Path) -> list[int]:
    """The processes in a group and in all groups below it."""
    found: list[int] = []
    for directory, _, files in os.walk(group):
        if "cgroup.procs" in files:
            found += map(int, (Path(directory) / "cgroup.procs").read_text().split())
    return found


def new_path(mount: Path) -> Path:
    """The path of a group that nobody has made yet."""
    return mount / f"limpet-hostile-{os.getpid()}-{secrets.token_hex(4)}"


def remove(group: Path, within_s: float = 10) -> None:
    """Removes a group and those below it, once their last processes are gone."""
    deadline = time.monotonic() + within_s
    for directory, _, _ in os.walk(group, topdown=False):
        while True:
            try:
                Path(directory).rmdir()
                break
            except FileNotFoundError:
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)  # a group has no event for being free to be removed


@contextmanager
def group(mount: Path, name: str | None = None) -> Generator[Path]:
    """An empty group of our own."""
    path = mount / name if name else new_path(mount)
    path.mkdir()
    try:
        yield path
    finally:
        remove(path)
