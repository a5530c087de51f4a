"""Makes a keeper ready ahead of its run: directory, files, socket, cgroup, and the command-to-be."""

from __future__ import annotations

import fcntl
import os

from limpet_keeper import PROTOCOL, VERSION, lean_json, system
from limpet_keeper.control import SOCKET_NAME
from limpet_keeper.journal import JOURNAL_NAME
from limpet_keeper.spool import create

BOOT_ID = system.boot_id()

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from limpet_keeper.keeper import Keeper

    Json = dict[str, Any]


def prepare(keeper: Keeper, path: str, cgroup_parent: str | None, umask: int) -> None:
    """Makes it ready in `path`, which must not exist. OSError if anything is in the way, and nothing is left."""
    os.umask(0o077)
    os.mkdir(path, 0o700)
    keeper.path = path
    keeper.directory_fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    cgroup = _make_cgroup(cgroup_parent, path)
    try:
        _prepare_in(keeper, cgroup, umask)
    except OSError:
        remove(keeper)
        if cgroup is not None:
            os.rmdir(cgroup)
        raise


def _prepare_in(keeper: Keeper, cgroup: str | None, umask: int) -> None:
    # First of all, so that it inherits nothing but its pipes.
    launcher = keeper.launcher
    launcher.fork(cgroup, umask)
    try:
        journal = keeper.journal
        journal.open(create(JOURNAL_NAME, keeper.directory_fd))
        fcntl.flock(journal.fd, fcntl.LOCK_EX)
        for spool in keeper.spools:
            spool.create(keeper.directory_fd)
        os.fchdir(keeper.directory_fd)
        keeper.control.open()
        os.chdir("/")
        joined = launcher.in_cgroup()
        if cgroup is not None and not joined:
            os.rmdir(cgroup)
            cgroup = None
        keeper.tree.cgroup = cgroup
        me = os.getpid()
        witness = {"pid": me, "start_time": system.start_time(me), "boot_id": BOOT_ID}
        journal.append("prepared", protocol=PROTOCOL, version=VERSION, keeper=witness, cgroup=cgroup)
        if journal.error is not None:
            raise journal.error
    except OSError:
        launcher.abandon()
        raise


def announce_ready(keeper: Keeper, fd: int) -> None:
    """Tells on `fd` who asked for it."""
    announce({"ready": keeper.path, "pid": os.getpid()}, fd)


def announce(message: Json, fd: int) -> None:
    # One write of less than a pipe takes at once: lines of keepers do not mix.
    os.write(fd, lean_json.encode(message).encode() + b"\n")


def let_go(*fds: int) -> None:
    """Whoever waits for the end of these is not to wait for the keeper."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in fds:
        os.dup2(null, fd)
    os.close(null)


def _make_cgroup(parent: str | None, directory: str) -> str | None:
    if parent is None:
        return None
    path = f"{parent}/{'-'.join(directory.split('/')[-2:])}.{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError:
        return None
    return path


def remove(keeper: Keeper) -> None:
    """Removes a prepared directory and what the keeper made in it, unless it was renamed meanwhile."""
    try:
        if not os.path.samestat(os.stat(keeper.path), os.fstat(keeper.directory_fd)):
            return
    except OSError:
        return
    for name in (SOCKET_NAME, JOURNAL_NAME, *(f"{spool.name}.spool" for spool in keeper.spools)):
        try:
            os.unlink(name, dir_fd=keeper.directory_fd)
        except FileNotFoundError:
            pass
    try:
        os.rmdir(keeper.path)
    except OSError:
        pass  # somebody else put something into it: theirs to remove
