"""The home: the one directory that holds everything limpet keeps, owned by one engine at a time."""

import contextlib
import fcntl
import os
import stat
from pathlib import Path
from typing import Final

from limpet.model.errors import Refusal
from limpet_keeper import system

LOCK_NAME: Final = "daemon.lock"
# What fits into a socket's address, less the closing NUL.
MAX_SOCKET_PATH_BYTES: Final = 107


class Home:
    """Paths under one home, and the lock that says whose it is."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self.runs = self.path / "runs"
        self.nursery = self.path / "nursery"
        self.database = self.path / "memory" / "sessions.db"
        self.config = self.path / "config.toml"
        self.trash = self.path / "trash"
        self.acks = self.path / "acks"
        self.conversations = self.path / "conversations"
        self.pruned = self.path / "pruned.journal"
        self.socket = self.path / "daemon.sock"
        self.token = self.path / "token"
        self.log = self.path / "daemon.log"
        self.boot = self.path / "boot"
        self._lock_fd = -1

    def run(self, run_id: str) -> Path:
        return self.runs / run_id

    def open(self) -> None:
        """Makes the home where it is missing and takes it; a refusal says who has it."""
        if len(os.fsencode(self.socket)) > MAX_SOCKET_PATH_BYTES:
            message = f"{self.socket} is too long for a socket's address: choose a shorter LIMPET_HOME"
            raise Refusal("invalid_argument", message, reason="socket_path_too_long")
        _own_private(self.path)
        self._take_lock()
        for path in (self.runs, self.nursery, self.database.parent, self.acks, self.conversations):
            _own_private(path)

    def is_new_boot(self) -> bool:
        """Whether the machine was started since an engine had looked at all that a power cut can take."""
        try:
            return self.boot.read_text() != system.boot_id()
        except OSError:
            return True

    def know_boot(self) -> None:
        """Says that all was looked at since the machine was started."""
        self.boot.touch(mode=0o600)
        self.boot.write_text(system.boot_id())

    def _take_lock(self) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        fd = os.open(self.path / LOCK_NAME, flags, 0o600)
        os.fchmod(fd, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(fd, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(fd)
            message = f"{self.path} is held by pid {holder}: use that daemon, stop it, or choose another LIMPET_HOME"
            raise Refusal("conflict", message, reason="home_held") from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        self._lock_fd = fd

    def close(self) -> None:
        """Gives the home free for the next."""
        if self._lock_fd >= 0:
            os.close(self._lock_fd)
            self._lock_fd = -1


def _own_private(path: Path) -> None:
    """The directory, ours and closed to others; a refusal where it is somebody else's."""
    with contextlib.suppress(FileExistsError):  # whatever it is, the next line looks at it
        path.mkdir(mode=0o700, parents=True)
    state = path.lstat()
    if not stat.S_ISDIR(state.st_mode) or state.st_uid != os.geteuid():
        message = f"{path} is not a directory of this user: choose another LIMPET_HOME"
        raise Refusal("conflict", message, reason="home_not_ours")
    mode = stat.S_IMODE(state.st_mode)
    if mode != 0o700:
        path.chmod(0o700)
        if mode & (stat.S_IWGRP | stat.S_IWOTH) and (planted := _planted(path)):
            path.chmod(mode)  # so that the next one looks again
            message = f"others could write to {path}, and may have put {planted} there: remove that, then start again"
            raise Refusal("conflict", message, reason="home_not_ours")


def _planted(path: Path) -> str | None:
    """The first name there that is a link, or of another user: what is written to it would land elsewhere."""
    for entry in sorted(path.iterdir()):
        state = entry.lstat()
        is_linked = stat.S_ISREG(state.st_mode) and state.st_nlink > 1
        if stat.S_ISLNK(state.st_mode) or is_linked or state.st_uid != os.geteuid():
            return entry.name
    return None
