"""Blobs as files below one directory, opened component by component: no link leads out of it."""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Final

from limpet.model.errors import Refusal
from limpet.store.blobs import parts_of

_STEP: Final = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe in the place of a file is to keep nobody waiting.
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# What the kernel says of links, and of files and folders in each other's place.
_NOT_PLAIN: Final = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ESPIPE, errno.ENXIO, errno.ENODEV})


class FileBlobs:
    """Nothing is held between calls but the directory itself."""

    def __init__(self, root: Path) -> None:
        """OSError where the directory cannot be opened; the path to it may hold links."""
        self._root = os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)

    def close(self) -> None:
        if self._root >= 0:
            os.close(self._root)
            self._root = -1

    def read(self, name: str, offset: int, max_bytes: int) -> bytes:
        with _found(name), self._folder(parts := parts_of(name)) as folder:
            fd = os.open(parts[-1], _READ, dir_fd=folder)
            try:
                return _read_all(fd, offset, max_bytes)
            finally:
                os.close(fd)
        return b""

    def size(self, name: str) -> int:
        with _found(name), self._folder(parts := parts_of(name)) as folder:
            known = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)
            if not stat.S_ISREG(known.st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            return known.st_size
        return 0

    def names(self, prefix: str) -> list[str]:
        parts = parts_of(prefix) if prefix else []
        with _found(prefix), self._folder([*parts, "."]) as folder:
            return sorted(_files_below(folder, prefix))
        return []

    def remove(self, prefix: str) -> None:
        with _found(prefix), self._folder(parts := parts_of(prefix)) as folder:
            try:
                os.unlink(parts[-1], dir_fd=folder)
            except IsADirectoryError:
                shutil.rmtree(parts[-1], dir_fd=folder)

    @contextlib.contextmanager
    def _folder(self, parts: Sequence[str]) -> Generator[int]:
        """The folder that the last part is in."""
        folder = self._root
        try:
            for part in parts[:-1]:
                step = os.open(part, _STEP, dir_fd=folder)
                if folder != self._root:
                    os.close(folder)
                folder = step
            yield folder
        finally:
            if folder != self._root:
                os.close(folder)


def _read_all(fd: int, offset: int, max_bytes: int) -> bytes:
    data = os.pread(fd, max_bytes, offset)
    while len(data) < max_bytes and (more := os.pread(fd, max_bytes - len(data), offset + len(data))):
        data += more
    return data


def _files_below(folder: int, prefix: str) -> Iterator[str]:
    """Without recursion, and with no more than two directories open, however deep they lie."""
    waiting = [""]
    while waiting:
        below = waiting.pop()
        fd = _open_below(folder, below)
        try:
            with os.scandir(fd) as entries:
                for entry in entries:
                    place = f"{below}{entry.name}"
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(f"{place}/")
                    elif entry.is_file(follow_symlinks=False):
                        yield f"{prefix}/{place}" if prefix else place
        finally:
            os.close(fd)


def _open_below(folder: int, below: str) -> int:
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
    for part in below.split("/")[:-1]:
        step = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        os.close(fd)
        fd = step
    return fd


@contextlib.contextmanager
def _found(name: str) -> Generator[None]:
    """What is not there is no error; what is no plain file in plain folders is a refusal."""
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        if error.errno not in _NOT_PLAIN:
            raise
        message = f"{name} is not reached through plain folders, or is no plain file: it was changed from outside"
        raise Refusal("internal", message, reason="spool_tampered") from error
