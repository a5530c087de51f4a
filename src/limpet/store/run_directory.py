"""The files of one run: where they lie, and how they are read. Layout: docs/formats/keeper.md."""

import fcntl
import os
from pathlib import Path
from typing import Final

KEEPER_JOURNAL: Final = "keeper.journal"
DAEMON_JOURNAL: Final = "daemon.journal"
START_REQUEST: Final = "start.json"
SCRIPT: Final = "command"
CONTROL_SOCKET: Final = "control.sock"
STREAMS: Final = ("stdout", "stderr", "pty")


class RunDirectory:
    """One run's directory. Reading opens a file anew each time: nothing is held between calls."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def spool_path(self, stream: str) -> Path:
        return self.path / f"{stream}.spool"

    def read_spool(self, stream: str, offset: int, max_bytes: int) -> bytes:
        """Up to `max_bytes` from `offset`; fewer at the end of the file."""
        fd = os.open(self.spool_path(stream), os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return os.pread(fd, max_bytes, offset)
        finally:
            os.close(fd)

    def spools(self) -> list[str]:
        """The streams that have a file."""
        return [name for name in STREAMS if self.spool_path(name).exists()]

    def is_bare(self) -> bool:
        """Whether it holds nothing but what a keeper lays out ahead of any run, and a script that was to be one."""
        empty = {DAEMON_JOURNAL, *(self.spool_path(name).name for name in STREAMS)}
        laid_out = {KEEPER_JOURNAL, CONTROL_SOCKET, SCRIPT}
        return all(
            path.name in laid_out or (path.name in empty and path.lstat().st_size == 0) for path in self.path.iterdir()
        )

    def spool_bytes(self, stream: str) -> int:
        """The spool's size on disk: after a crash it may be ahead of the journal. 0 when there is none."""
        try:
            return self.spool_path(stream).lstat().st_size
        except FileNotFoundError:
            return 0

    def is_kept(self) -> bool:
        """Whether a living keeper holds the run: it has the lock of its journal for as long as it lives."""
        try:
            fd = os.open(self.path / KEEPER_JOURNAL, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def write_private(self, name: str, data: bytes) -> None:
        """A file that only its owner may read, whatever the umask: new, or laid out empty ahead."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path / name, flags, 0o600)
        try:
            os.fchmod(fd, 0o600)
            view = memoryview(data)
            while view:
                view = view[os.write(fd, view) :]
        finally:
            os.close(fd)

    def remove(self, name: str) -> None:
        """Removes a file if it is there."""
        (self.path / name).unlink(missing_ok=True)
