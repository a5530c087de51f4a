"""Makes a keeper ready ahead of its run: directory, files, socket, cgroup, and the command-to-be."""

from __future__ import annotations

import fcntl
import os

from limpet_keeper import PROTOCOL, VERSION, system
from limpet_keeper.bare import signal
from limpet_keeper.control import SOCKET_NAME
from limpet_keeper.journal import JOURNAL_NAME, Journal
from limpet_keeper.keeper import Keeper
from limpet_keeper.launcher import Launcher
from limpet_keeper.spool import Spool, create

STREAMS = ("stdout", "stderr")


def prepare(path: str, cgroup_parent: str | None, umask: int) -> Keeper:
    """Prepares a keeper in `path`, which must not exist. OSError if anything is in the way, and nothing is left."""
    os.umask(0o077)
    os.mkdir(path, 0o700)
    directory_fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    cgroup = _make_cgroup(cgroup_parent, os.path.basename(path))
    try:
        return _prepare_in(path, directory_fd, cgroup, umask)
    except OSError:
        remove(path, directory_fd)
        if cgroup is not None:
            os.rmdir(cgroup)
        raise


def _prepare_in(path: str, directory_fd: int, cgroup: str | None, umask: int) -> Keeper:
    for number in system.IGNORED:
        signal.signal(number, signal.SIG_IGN)
    system.become_subreaper()
    # First of all, so that it inherits nothing but its pipes.
    launcher = Launcher(cgroup, umask)
    try:
        journal = Journal(create(JOURNAL_NAME, directory_fd))
        fcntl.flock(journal.fd, fcntl.LOCK_EX)
        spools = [Spool(name, create(f"{name}.spool", directory_fd), directory_fd) for name in STREAMS]
        keeper = Keeper(path, directory_fd, launcher, journal, spools)
        os.fchdir(directory_fd)
        keeper.control.open()
        os.chdir("/")
        joined = launcher.in_cgroup()
        if cgroup is not None and not joined:
            os.rmdir(cgroup)
            cgroup = None
        keeper.tree.cgroup = cgroup
        me = os.getpid()
        witness = {"pid": me, "start_time": system.start_time(me), "boot_id": system.boot_id()}
        journal.append("prepared", protocol=PROTOCOL, version=VERSION, keeper=witness, cgroup=cgroup)
        if journal.error is not None:
            raise journal.error
    except OSError:
        launcher.abandon()
        raise
    return keeper


def _make_cgroup(parent: str | None, name: str) -> str | None:
    if parent is None:
        return None
    path = f"{parent}/{name}.{os.getpid()}"
    try:
        os.mkdir(path)
    except OSError:
        return None
    return path


def remove(path: str, directory_fd: int) -> None:
    """Removes a prepared directory and what the keeper made in it, unless it was renamed meanwhile."""
    try:
        if not os.path.samestat(os.stat(path), os.fstat(directory_fd)):
            return
    except OSError:
        return
    for name in (SOCKET_NAME, JOURNAL_NAME, *(f"{stream}.spool" for stream in STREAMS)):
        try:
            os.unlink(name, dir_fd=directory_fd)
        except FileNotFoundError:
            pass
    try:
        os.rmdir(path)
    except OSError:
        pass  # somebody else put something into it: theirs to remove
