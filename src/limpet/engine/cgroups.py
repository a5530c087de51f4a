"""Where a cgroup of each run can be made, if this machine lets us; looked at when the engine starts."""

import contextlib
import os
from pathlib import Path


def find_parent(name: str) -> Path | None:
    """A writable cgroup v2 directory of our own, made if need be; None where runs must be killed without one."""
    mount = _mount_of_v2()
    if mount is None:
        return None
    own = _own_path()
    for base in (mount / own.lstrip("/"), mount):
        parent = base / name
        with contextlib.suppress(OSError):
            parent.mkdir(exist_ok=True)
            if (parent / "cgroup.kill").exists() and os.access(parent / "cgroup.procs", os.W_OK):
                return parent
    return None


def _mount_of_v2() -> Path | None:
    try:
        mounts = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return None
    for line in mounts:
        _, where, kind, *_ = line.split(" ")
        if kind == "cgroup2":
            return Path(where)
    return None


def _own_path() -> str:
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return "/"
    return next((line.partition("::")[2] for line in lines if line.startswith("0::")), "/")
