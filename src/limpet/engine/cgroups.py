"""Where cgroups can be made, if this machine lets us: one for each run, and those that hold it to its limits."""

import contextlib
import os
import secrets
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_NAME: Final = "limpet"
_JOIN_WITHIN_S: Final = 10.0


class Setting(NamedTuple):
    """A file of a group, and what is written into it, with `{}` for the amount."""

    file: str
    text: str


class Mount(NamedTuple):
    path: Path
    # None: cgroup v2, where each group says which it has.
    controllers: frozenset[str] | None


class Place(NamedTuple):
    """A directory below which groups that hold a limit can be made; this was tried. And what such a group is told."""

    base: Path
    settings: tuple[Setting, ...]


def find_parent(root: str) -> Path | None:
    """A writable cgroup v2 directory of our own, made if need be; None where runs must be killed without one."""
    for base in _bases_of_v2(_mounts(root)):
        parent = base / _NAME
        with contextlib.suppress(OSError):
            parent.mkdir(exist_ok=True)
            if (parent / "cgroup.kill").exists() and os.access(parent / "cgroup.procs", os.W_OK):
                return parent
    return None


def find_place(controller: str, v1: Sequence[Setting], v2: Sequence[Setting], amount: int, root: str) -> Place | str:
    """Where a controller holds what joins: a group is made, told `amount`, joined by a process, and removed.

    Else the reason why there is none. Of the settings only the first has to be there.
    """
    mounts = _mounts(root)
    why = f"no cgroup hierarchy with the controller `{controller}` is mounted"
    for mount in mounts:
        if mount.controllers is not None and controller in mount.controllers:
            # Below our own group first: what bounds us bounds the runs, too.
            for base in _bases(mount.path, _own_path(controller)):
                try:
                    return Place(base, _try(base, v1, amount))
                except OSError as error:
                    why = f"{base}: {error.strerror or error}"
    for base in _bases_of_v2(mounts, also_above=True):
        try:
            if controller not in (base / "cgroup.controllers").read_text().split():
                continue
            parent = base / _NAME
            _hand_down(base, controller)
            parent.mkdir(exist_ok=True)
            _hand_down(parent, controller)
            return Place(parent, _try(parent, v2, amount))
        except OSError as error:
            why = f"{base}: {error.strerror or error}"
    return why


def _try(base: Path, settings: Sequence[Setting], amount: int) -> tuple[Setting, ...]:
    """Those of the settings that a group below it takes; OSError where none can hold anything."""
    group = base / f"{_NAME}-try-{os.getpid()}-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        taken = [each for number, each in enumerate(settings) if number == 0 or (group / each.file).exists()]
        for each in taken:
            _write(group / each.file, each.text.format(amount))
        join = ["/bin/sh", "-c", 'echo 0 > "$0"', str(group / "cgroup.procs")]
        joined = subprocess.run(
            join, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_JOIN_WITHIN_S
        )
        if joined.returncode != 0:
            raise OSError(f"a process cannot join a group there: {joined.stderr.decode(errors='replace').strip()}")
    except subprocess.TimeoutExpired:
        raise OSError("a process that was to join a group there did not come to it") from None
    finally:
        group.rmdir()
    return tuple(taken)


def _hand_down(group: Path, controller: str) -> None:
    """Has the groups below it have that controller."""
    if controller not in (group / "cgroup.subtree_control").read_text().split():
        _write(group / "cgroup.subtree_control", f"+{controller}")


def _write(file: Path, text: str) -> None:
    """Never makes one: what is not there the kernel did not offer."""
    fd = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, text.encode())
    finally:
        os.close(fd)


def _mounts(root: str) -> list[Mount]:
    """The hierarchies that are mounted at that directory or below."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return []
    found: list[Mount] = []
    for line in lines:
        _, where, kind, options, *_ = line.split(" ")
        if kind in ("cgroup", "cgroup2") and Path(where).is_relative_to(root):
            found.append(Mount(Path(where), frozenset(options.split(",")) if kind == "cgroup" else None))
    return found


def _bases_of_v2(mounts: Sequence[Mount], *, also_above: bool = False) -> Iterator[Path]:
    """Where a group that holds processes, as ours does, is to hand nothing down, the one above it may."""
    own = _own_path(None)
    for mount in mounts:
        if mount.controllers is None:
            owns = (own, str(Path(own).parent)) if also_above else (own,)
            yield from dict.fromkeys(base for each in owns for base in _bases(mount.path, each))


def _bases(mount: Path, own: str) -> Iterator[Path]:
    """Our own group, then the top of what we see."""
    yield from dict.fromkeys((mount / own.lstrip("/"), mount))


def _own_path(controller: str | None) -> str:
    """Our group in the hierarchy of a v1 controller, or of cgroup v2."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return "/"
    for line in lines:
        number, controllers, path = line.split(":", 2)
        if (controller is None and number == "0") or controller in controllers.split(","):
            return path
    return "/"
