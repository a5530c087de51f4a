"""Files of a simulated machine: real ones, whose every change can fail, be the last, or be lost with the power."""

import errno
import os
import shutil
from pathlib import Path
from typing import Final

from limpet.store import disk
from limpet.testing.simulation.loop import Crash, Dead
from limpet.testing.simulation.world import World

_write_at: Final = disk.write_at
_cut: Final = disk.cut
_make_directory: Final = disk.make_directory
_rename: Final = disk.rename
_remove: Final = disk.remove
_remove_tree: Final = disk.remove_tree
_open_to_write: Final = disk.open_to_write

Structure = dict[str, tuple[int, bool]]


class Files:
    """Stands in the place of `limpet.store.disk` for the daemon; keepers ask it before they write or sync."""

    def __init__(self, world: World, home: Path) -> None:
        self.world = world
        self.home = home
        self.is_full = False
        # How many syncs fail from now on, once each.
        self.bad_syncs = 0
        self.has_failed = False
        # After so many changes the daemon's process ends in the middle of one; None: it does not.
        self.crash_in: int | None = None
        self.is_daemon_dead = False
        # Whether there will be a power cut in this history: what was synced is remembered only then.
        self.remembers = False
        self._synced: dict[int, bytes] = {}
        self._names: Structure = {}
        self.changes = 0

    # The daemon's changes.

    def _change(self, what: str) -> bool:
        """Counts one; whether it is the last one of the daemon's process."""
        if self.is_daemon_dead:
            raise Dead
        self.changes += 1
        if self.crash_in is None:
            return False
        self.crash_in -= 1
        if self.crash_in > 0:
            return False
        self.crash_in = None
        self.world.say("crash at", what)
        return True

    def _crash(self) -> None:
        self.is_daemon_dead = True
        raise Crash

    def _refuse_if_full(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def open_to_write(self, path: Path | str, flags: int = 0) -> int:
        if self._change("open"):
            if self.world.random.random() < 0.5:
                os.close(_open_to_write(path, flags))
            self._crash()
        return _open_to_write(path, flags)

    def write_at(self, fd: int, data: bytes, offset: int) -> None:
        is_last = self._change("write")
        if is_last or self.is_full:
            _write_at(fd, data[: self.world.random.randint(0, len(data) - (not is_last))] if data else b"", offset)
            if is_last:
                self._crash()
            self._refuse_if_full()
        _write_at(fd, data, offset)

    def cut(self, fd: int, size: int) -> None:
        if self._change("cut"):
            self._crash()
        _cut(fd, size)

    def sync(self, fd: int) -> None:
        if self._change("sync"):
            self._crash()
        self.put_on_disk(fd)

    def make_directory(self, path: Path, *, exist_ok: bool = False) -> None:
        if self._change("mkdir"):
            self._crash()
        self._refuse_if_full()
        _make_directory(path, exist_ok=exist_ok)

    def rename(self, old: Path, new: Path) -> None:
        is_last = self._change("rename")
        if not is_last or self.world.random.random() < 0.5:
            _rename(old, new)
        if is_last:
            self._crash()

    def remove(self, path: Path) -> None:
        is_last = self._change("remove")
        if not is_last or self.world.random.random() < 0.5:
            _remove(path)
        if is_last:
            self._crash()

    def remove_tree(self, path: Path) -> None:
        if self._change("rmtree"):
            below = sorted(path.rglob("*")) if path.is_dir() else []
            for each in below[: self.world.random.randint(0, len(below))]:
                if not each.is_dir():
                    each.unlink()
            self._crash()
        _remove_tree(path)

    def free_bytes(self, path: Path) -> int:  # noqa: ARG002
        return 0 if self.is_full else 1 << 40

    # What lasts.

    def put_on_disk(self, fd: int) -> None:
        """Syncs a file or the names in a directory: OSError when the disk says no."""
        if self.bad_syncs:
            self.bad_syncs -= 1
            self.has_failed = True
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        if self.remembers:
            state = os.fstat(fd)
            if os.path.isdir(f"/proc/self/fd/{fd}"):  # noqa: PTH112
                self._names = self._structure()
            else:
                self._synced[state.st_ino] = os.pread(fd, state.st_size, 0) if _is_readable(fd) else _whole(fd)

    def _structure(self) -> Structure:
        found: Structure = {}
        for root, directories, names in os.walk(self.home):
            for name in (*directories, *names):
                path = os.path.join(root, name)  # noqa: PTH118
                found[path] = (os.lstat(path).st_ino, name in directories)
        return found

    def put_all_on_disk(self) -> None:
        """As a system does that goes down in good order."""
        if self.remembers:
            self._names = self._structure()
            files = (path_inode for path_inode in self._names.items() if not path_inode[1][1])
            self._synced |= {inode: Path(path).read_bytes() for path, (inode, _) in files}

    def cut_power(self) -> None:
        """The files as they are found afterwards: names up to some moment behind the last sync, bytes at least those
        that were synced. The journal of the file system keeps names in order, so they go back all together.
        """
        now = self._structure()
        names = self._names if self._names and self.world.random.random() < 0.5 else now
        paths = {inode: path for path, (inode, is_directory) in now.items() if not is_directory}
        contents = {inode: Path(path).read_bytes() for inode, path in paths.items()}
        shutil.rmtree(self.home)
        self.home.mkdir(mode=0o700)
        for path, (inode, is_directory) in names.items():
            if is_directory:
                Path(path).mkdir(mode=0o700)
            else:
                Path(path).touch(mode=0o600)
                Path(path).write_bytes(self._after_cut(self._synced.get(inode, b""), contents.get(inode)))
        self.put_all_on_disk()

    def _after_cut(self, synced: bytes, last: bytes | None) -> bytes:
        if last is None or not last.startswith(synced):
            return synced if last is None or self.world.random.random() < 0.5 else last
        return last[
            : self.world.random.choice((len(synced), len(last), self.world.random.randint(len(synced), len(last))))
        ]


def _is_readable(fd: int) -> bool:
    try:
        os.pread(fd, 0, 0)
    except OSError:
        return False
    return True


def _whole(fd: int) -> bytes:
    return Path(f"/proc/self/fd/{fd}").read_bytes()
