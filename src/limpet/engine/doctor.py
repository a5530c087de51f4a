"""Looks at what limpet stands on, with or without a daemon: what is found, and what to do about it."""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from limpet.config import Config
from limpet.engine import cgroups
from limpet.engine.home import MAX_SOCKET_PATH_BYTES
from limpet.engine.limits import NAMES, Limits, limits_of
from limpet.model.errors import Refusal
from limpet.store import disk
from limpet.store.database import may_lose_wal, sqlite_version


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at. Advice is empty where nothing is to be done."""

    name: str
    ok: bool
    found: str
    advice: str = ""


def examine(home: Path) -> list[Check]:
    """What can be seen from outside a daemon."""
    of_home = [_home(home), _socket(home), _config(home), _disk(home)]
    return [_python(), *of_home, _sqlite(), *_cgroups(home), *_descriptors()]


def answer_without_daemon(home: str) -> dict[str, Any]:
    """The answer of `daemon.doctor` as far as it can be given without one."""
    checks = examine(Path(home))
    told = [msgspec.structs.asdict(check) for check in checks]
    return {"ok": True, "healthy": all(check.ok for check in checks), "checks": told}


def examine_running(counts: Mapping[str, int], trouble: str | None) -> list[Check]:
    """What only the engine knows."""
    stuck = {name: counts[name] for name in ("unresponsive", "stalled") if counts[name]}
    return [
        Check(
            name="keepers",
            ok=not stuck,
            found=f"{counts['running']} runs going on, of which {stuck or 'none is held up'}",
            advice="see runs.list: `unresponsive` keepers were stopped by a signal, `stalled` ones wait for room"
            if stuck
            else "",
        ),
        Check(
            name="database",
            ok=trouble is None,
            found=trouble or "takes what it is given",
            advice="" if trouble is None else "it is filled again from the files once it can be; see the reason",
        ),
    ]


def _python() -> Check:
    found = f"{sys.implementation.name} {sys.version.split()[0]}, {sys.platform}"
    return Check(
        name="python",
        ok=sys.platform == "linux",
        found=found,
        advice="" if sys.platform == "linux" else "runs are kept on Linux",
    )


def _home(home: Path) -> Check:
    try:
        state = home.lstat()
    except FileNotFoundError:
        return Check(name="home", ok=True, found=f"{home} is not there yet: it is made when it is needed")
    is_ours = stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid()
    is_private = stat.S_IMODE(state.st_mode) == 0o700
    found = f"{home}, mode {stat.S_IMODE(state.st_mode):o}, owner {state.st_uid}"
    advice = "" if is_ours else "choose another LIMPET_HOME: it is not a directory of this user"
    if is_ours and not is_private:
        advice = "a daemon closes it to others when it starts: chmod 700"
    return Check(name="home", ok=is_ours and is_private, found=found, advice=advice)


def _socket(home: Path) -> Check:
    size = len(os.fsencode(home / "daemon.sock"))
    fits = size <= MAX_SOCKET_PATH_BYTES
    found = f"the socket's path has {size} bytes of {MAX_SOCKET_PATH_BYTES}"
    return Check(name="socket", ok=fits, found=found, advice="" if fits else "choose a shorter LIMPET_HOME")


def _config(home: Path) -> Check:
    try:
        Config.load(home / "config.toml")
    except Refusal as refusal:
        return Check(name="config", ok=False, found=refusal.message, advice="correct that key, or take it out")
    return Check(name="config", ok=True, found="can be read")


def _known_config(home: Path) -> Config:
    """The defaults where it cannot be read, which is told elsewhere."""
    try:
        return Config.load(home / "config.toml")
    except Refusal:
        return Config()


def _disk(home: Path) -> Check:
    place = next(path for path in (home, *home.parents) if path.exists())
    free = disk.free_bytes(place)
    least = _known_config(home).store.min_free_bytes
    advice = "" if free >= least else "nothing is started: make room, `limpet prune`, or set store.min_free_bytes"
    return Check(name="disk", ok=free >= least, found=f"{free} bytes free; {least} are to stay free", advice=advice)


def _sqlite() -> Check:
    version = sqlite_version()
    is_sound = not may_lose_wal(version)
    advice = (
        "" if is_sound else "its WAL can be damaged by a reset: install apsw with a SQLite of its own, 3.51.3 or later"
    )
    return Check(name="sqlite", ok=is_sound, found=version, advice=advice)


def _cgroups(home: Path) -> Iterator[Check]:
    run = _known_config(home).run
    parent = cgroups.find_parent(run.cgroup_root)
    found = (
        f"a cgroup for each run, under {parent}"
        if parent
        else "no writable cgroup v2: keepers find processes by parentage"
    )
    yield Check(name="cgroup", ok=True, found=found)
    limits, wanted = Limits(run.cgroup_root), limits_of({}, run)
    whys = {name: limits.why_not(name, wanted.get(name, 1)) for name in NAMES}
    lacking = sorted(f"run.limit_{name}" for name in wanted if whys[name] is not None)
    told = (f"{name}: " + ("can be held" if why is None else f"cannot be held, {why}") for name, why in whys.items())
    yield Check(
        name="limits",
        ok=not lacking,
        found="; ".join(told),
        advice=f"no run is started: take {', '.join(lacking)} out, or delegate a cgroup to limpet" if lacking else "",
    )


def _descriptors() -> Iterator[Check]:
    if sys.platform == "linux":
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        is_enough = soft >= 1024
        advice = "" if is_enough else "each live run takes three descriptors: raise `ulimit -n`"
        yield Check(name="descriptors", ok=is_enough, found=f"{soft}, at most {hard}", advice=advice)
