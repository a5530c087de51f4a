"""Every change that the daemon makes to files: what can be refused, cut short by a crash, or lost with the power.

Nothing else in the store and the engine changes a file of a home, the database's own aside. So what stands in the place
of these functions (limpet.testing.simulation does) sees each change, and decides how it ends.
"""

import os
import shutil
from pathlib import Path


def open_to_write(path: Path | str, flags: int = 0) -> int:
    """A private file, made where it is missing, for reading and writing; no link is followed."""
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | flags, 0o600)


def write_at(fd: int, data: bytes, offset: int) -> None:
    """Writes all of it, or raises OSError with a part of it written."""
    done = 0
    while done < len(data):
        done += os.pwrite(fd, data[done:], offset + done)


def cut(fd: int, size: int) -> None:
    """Ends the file there."""
    os.ftruncate(fd, size)


def sync(fd: int) -> None:
    """Puts a file, or the names in a directory, on disk; may take a while."""
    os.fsync(fd)


def sync_data(fd: int) -> None:
    """Puts what is in a file on disk; may take a while."""
    os.fdatasync(fd)


def make_directory(path: Path, *, exist_ok: bool = False) -> None:
    """A private directory."""
    path.mkdir(mode=0o700, exist_ok=exist_ok)


def rename(old: Path, new: Path) -> None:
    """Moves a file or a directory, at once."""
    old.rename(new)


def remove(path: Path) -> None:
    """Removes a file if it is there."""
    path.unlink(missing_ok=True)


def remove_tree(path: Path) -> None:
    """Removes a directory with all that is in it, as far as that can be done."""
    shutil.rmtree(path, ignore_errors=True)


def free_bytes(path: Path) -> int:
    """How much is free where that file or directory is."""
    return shutil.disk_usage(path).free
