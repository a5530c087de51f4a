"""The files of one run: where they lie, and how they are read. Layout: docs/formats/run-directory.md."""

import contextlib
import fcntl
import os
import re
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from limpet.store import disk

KEEPER_JOURNAL: Final = "keeper.journal"
DAEMON_JOURNAL: Final = "daemon.journal"
START_REQUEST: Final = "start.json"
SCRIPT: Final = "command"
CONTROL_SOCKET: Final = "control.sock"
STREAMS: Final = ("stdout", "stderr", "pty")
_READ_BYTES: Final = 1 << 20
_SECTOR_BYTES: Final = 512
_ZEROS: Final = re.compile(rb"\0+")


class RunDirectory:
    """One run's directory. Reading opens a file anew each time: nothing is held between calls."""

    def __init__(self, path: Path, attempt: int = 1) -> None:
        self.path = path
        # A command may be started again after a loss: what a keeper writes lies apart for each attempt.
        self.attempt = attempt

    @property
    def kept(self) -> Path:
        """What the keeper of the latest attempt writes."""
        return self.path / str(self.attempt)

    def attempts(self) -> list[int]:
        """Those that left a keeper's directory."""
        return sorted(int(path.name) for path in self.path.iterdir() if path.name.isdecimal() and path.is_dir())

    @property
    def daemon_journal(self) -> Path:
        return self.path / DAEMON_JOURNAL

    @property
    def keeper_journal(self) -> Path:
        return self.kept / KEEPER_JOURNAL

    def spool_path(self, stream: str) -> Path:
        return self.kept / f"{stream}.spool"

    def lay_out(self) -> None:
        """Makes it where it is missing, with the files that the daemon will write: to create one can take long.

        All names in it are on disk then, ahead of what they will hold.
        """
        disk.make_directory(self.path, exist_ok=True)
        for name in (DAEMON_JOURNAL, START_REQUEST):
            self.write_private(name, b"")
        sync_directory(self.path)

    def spools(self) -> list[str]:
        """The streams that have a file."""
        return [name for name in STREAMS if self.spool_path(name).exists()]

    def is_bare(self) -> bool:
        """Whether it holds nothing but what is made ahead of the record that says of a run."""
        empty = {DAEMON_JOURNAL, *(self.spool_path(name).name for name in STREAMS)}
        laid_out = {self.kept.name, KEEPER_JOURNAL, CONTROL_SOCKET, START_REQUEST, SCRIPT}
        kept = self.kept.iterdir() if self.kept.is_dir() else ()
        return all(
            path.name in laid_out or (path.name in empty and _is_blank(path)) for path in (*self.path.iterdir(), *kept)
        )

    def spool_bytes(self, stream: str) -> int:
        """The spool's size on disk: after a crash it may be ahead of the journal. 0 when there is none."""
        try:
            return self.spool_path(stream).lstat().st_size
        except FileNotFoundError:
            return 0

    def cut_zeros(self, stream: str, durable_bytes: int, begins: Sequence[int] = ()) -> int:
        """Cuts a spool that nobody writes any more where zeros behind its durable bytes may be lost ones; its size.

        A file system that lost its power gives back zeros for what it had not written yet: from where a sector or a
        write begins, up to the end of a sector at least, or of the file. Others a command has written. `begins` says
        where writes began, ascending; from the last of these on they may have begun anywhere.
        """
        try:
            fd = os.open(self.spool_path(stream), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return 0
        try:
            place, size = durable_bytes, os.fstat(fd).st_size
            while data := os.pread(fd, _READ_BYTES, place):
                following = place + len(data)
                for zeros in _ZEROS.finditer(data):
                    start, end = place + zeros.start(), place + zeros.end()
                    lost = _may_be_lost_from(start, begins)
                    if lost < end and (end == size or end >= (lost // _SECTOR_BYTES + 1) * _SECTOR_BYTES):
                        disk.cut(fd, start)  # those ahead of `lost` are nobody's for sure
                        return start
                    if end == following < size:
                        following = start  # they may go on behind what was read
                place = following
            return size
        finally:
            os.close(fd)

    def is_kept(self) -> bool:
        """Whether a living keeper holds the run: it has the lock of its journal for as long as it lives."""
        try:
            fd = os.open(self.keeper_journal, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def wait_unkept(self) -> None:
        """Returns once no keeper holds the latest attempt's journal; may take a while."""
        with contextlib.suppress(FileNotFoundError):
            fd = os.open(self.keeper_journal, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(fd, fcntl.LOCK_SH)
            finally:
                os.close(fd)

    def write_private(self, name: str, data: bytes) -> None:
        """A file of the daemon's that only its owner may read, whatever the umask: new, or laid out empty ahead."""
        fd = disk.open_to_write(self.path / name)
        try:
            os.fchmod(fd, 0o600)
            disk.write_at(fd, data, 0)
        finally:
            os.close(fd)

    def sync_kept(self, streams: Iterable[str]) -> None:
        """Puts the latest attempt's journal and spools on disk; may take a while."""
        for path in (self.keeper_journal, *map(self.spool_path, streams)):
            with contextlib.suppress(FileNotFoundError):
                self.sync(f"{self.attempt}/{path.name}")

    def sync(self, name: str) -> None:
        """Puts a file of the run's on disk; may take a while."""
        fd = os.open(self.path / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            disk.sync(fd)
        finally:
            os.close(fd)

    def remove_start(self, *, with_script: bool) -> None:
        """Removes what the run was started with, secrets and all; its script where that holds one."""
        for name in (START_REQUEST, SCRIPT) if with_script else (START_REQUEST,):
            disk.remove(self.path / name)

    def sync_records(self) -> None:
        """Puts what was asked, and the names in here, on disk; may take a while."""
        self.sync(DAEMON_JOURNAL)
        sync_directory(self.path)


def _may_be_lost_from(start: int, begins: Sequence[int]) -> int:
    """The first place from `start` on where what a file system had not written yet can begin."""
    if not begins or start >= begins[-1]:
        return start
    return min(begins[bisect_left(begins, start)], -(-start // _SECTOR_BYTES) * _SECTOR_BYTES)


def _is_blank(path: Path) -> bool:
    """Whether nothing was written there, or nothing of it came onto the disk: zeros stand for it then."""
    return not path.is_symlink() and not path.read_bytes().strip(b"\0")


def sync_directory(path: Path) -> None:
    """Puts the names in a directory on disk."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        disk.sync(fd)
    finally:
        os.close(fd)
