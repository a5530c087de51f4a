"""Small file systems of a test's own: they fill up, grow, and fail to write back; none outlives its test."""

from __future__ import annotations

import errno
import fcntl
import itertools
import os
import shutil
import struct
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

KIB = 1024
MIB = 1024 * KIB
UNMOUNT_WITHIN_S = 5.0
GONE_WITHIN_S = 60.0

_EXT4_IOC_SHUTDOWN = 0x8004587D
_NO_LOG_FLUSH = 2

_mounts = itertools.count(1)


def run(*command: str | Path) -> None:
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr.strip()}"


def need(*tools: str) -> None:
    """Skips where the machine cannot make this fault at all."""
    if os.geteuid() != 0:
        pytest.skip("mounts, immutable files and tracing need root")
    if missing := [tool for tool in tools if shutil.which(tool) is None]:
        pytest.skip(f"not on this machine: {', '.join(missing)}")


def _unmount(at: Path) -> None:
    deadline = time.monotonic() + UNMOUNT_WITHIN_S
    while subprocess.run(["umount", str(at)], capture_output=True, check=False).returncode != 0:
        if time.monotonic() > deadline:  # a process still sits in it: let it go when that one does
            subprocess.run(["umount", "-l", str(at)], capture_output=True, check=False)
            return
        time.sleep(0.05)


def _sweep() -> None:
    """Unmounts what an earlier test process, now dead by SIGKILL, left behind."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        name = Path(line.split(" ")[1])
        parts = name.name.split("-")
        if parts[:2] == ["fault", "mount"] and not Path(f"/proc/{parts[2]}").exists():
            subprocess.run(["umount", "-l", str(name)], capture_output=True, check=False)


def _mount_point(base: Path) -> Path:
    _sweep()
    at = base / f"fault-mount-{os.getpid()}-{next(_mounts)}"
    at.mkdir(parents=True)
    return at


class Disk:
    """A small file system of the test's own, with filler files to take its room away and give it back."""

    def __init__(self, at: Path) -> None:
        self.at = at

    def free_bytes(self) -> int:
        state = os.statvfs(self.at)
        return state.f_bavail * state.f_frsize

    def free_inodes(self) -> int:
        return os.statvfs(self.at).f_favail

    def fill(self, name: str = "filler", *, leave_bytes: int = 0) -> Path:
        """Takes all room but `leave_bytes`; fails where the disk does not become full."""
        path = self.at / name
        with path.open("wb", buffering=0) as file:
            take = self.free_bytes() - leave_bytes
            assert take > 0, "there was no room to take"
            with_pages = take // 4096 * 4096
            file.write(b"\xee" * with_pages)
        assert self.free_bytes() <= leave_bytes + 4096
        return path

    def take_inodes(self, *, leave: int) -> list[Path]:
        """Takes all inodes but `leave`."""
        taken: list[Path] = []
        while self.free_inodes() > leave:
            path = self.at / f"inode-{len(taken)}"
            path.touch()
            taken.append(path)
        assert self.free_inodes() == leave
        return taken


class Tmpfs(Disk):
    """A tmpfs whose size can be changed while it is in use."""

    def resize(self, size_bytes: int) -> None:
        run("mount", "-o", f"remount,size={size_bytes}", self.at)
        state = os.statvfs(self.at)
        assert 0 <= state.f_blocks * state.f_frsize - size_bytes < state.f_frsize


@contextmanager
def small_tmpfs(base: Path, size_bytes: int, inodes: int = 0) -> Generator[Tmpfs]:
    """A tmpfs of so many bytes and, if not 0, inodes (its root is one of them), mounted below `base`."""
    need("mount", "umount")
    at = _mount_point(base)
    options = f"size={size_bytes},mode=700" + (f",nr_inodes={inodes}" if inodes else "")
    run("mount", "-t", "tmpfs", "-o", options, "fault", at)
    try:
        yield Tmpfs(at)
    finally:
        _unmount(at)
        at.rmdir()


class LoopDisk(Disk):
    """An ext4 whose image lies on a tmpfs: with `backing` full, what the page cache took cannot be written back."""

    def __init__(self, at: Path, backing: Tmpfs) -> None:
        super().__init__(at)
        self.backing = backing

    def break_write_back(self) -> Path:
        """From now on no new block reaches the device; proved with a file of our own. Unlink the answer to end it."""
        witness = self.at / "write-back-witness"
        os.sync()
        filler = self.backing.fill()
        with witness.open("wb", buffering=0) as file:
            file.write(b"w" * 64 * KIB)
            with pytest.raises(OSError) as refusal:  # noqa: PT011 - its number is looked at below
                os.fdatasync(file.fileno())
        assert refusal.value.errno in (errno.ENOSPC, errno.EIO)
        return filler


class PowerDisk(Disk):
    """An ext4 with a journal, whose power can be cut: what was not synced by then is gone for good."""

    def __init__(self, at: Path, image: Path) -> None:
        super().__init__(at)
        self.image = image

    def mount(self) -> None:
        run("mount", "-o", "loop", self.image, self.at)

    def cut(self) -> None:
        """From now on nothing reaches the device, not even the file system's own log; whoever tries is told EIO."""
        fd = os.open(self.at, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.ioctl(fd, _EXT4_IOC_SHUTDOWN, struct.pack("I", _NO_LOG_FLUSH))
        finally:
            os.close(fd)
        with pytest.raises(OSError):  # noqa: PT011 - EIO or EROFS
            (self.at / "after-the-cut").touch()

    def users(self) -> list[int]:
        """The processes that have something of it open."""
        found: list[int] = []
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                links = [process / "cwd", *(process / "fd").iterdir()] if process.name.isdigit() else []
                if any(_points_below(link, self.at) for link in links):
                    found.append(int(process.name))
        return found

    def restore(self) -> None:
        """Mounts it again, as after a boot; nobody may have anything of it open."""
        run("umount", self.at)
        deadline = time.monotonic() + GONE_WITHIN_S
        # A namespace of somebody who is just dying can have it still: mounted again now it would be the dead one.
        while subprocess.run(["losetup", "-j", str(self.image)], capture_output=True, check=True).stdout:
            assert time.monotonic() < deadline, "the disk is still mounted somewhere"
            time.sleep(0.02)
        self.mount()


def _points_below(link: Path, at: Path) -> bool:
    with suppress(OSError):
        return link.readlink().is_relative_to(at)
    return False


@contextmanager
def power_disk(base: Path, size_bytes: int) -> Generator[PowerDisk]:
    """A disk of its own in memory whose power can be cut."""
    need("mount", "umount", "mkfs.ext4", "losetup")
    with small_tmpfs(base, size_bytes + 8 * MIB) as backing:
        image = backing.at / "image"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        run("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0", image)
        at = _mount_point(base)
        disk = PowerDisk(at, image)
        try:
            disk.mount()
        except AssertionError:
            at.rmdir()
            raise
        try:
            yield disk
        finally:
            _unmount(at)
            at.rmdir()


@contextmanager
def loop_ext4(base: Path, size_bytes: int, backing_bytes: int | None = None) -> Generator[LoopDisk]:
    """An ext4 of its own (no ext4 journal: only data can fail), on a tmpfs of `backing_bytes` or of enough."""
    need("mount", "umount", "mkfs.ext4", "losetup")
    with small_tmpfs(base, backing_bytes or size_bytes + MIB) as backing:
        image = backing.at / "image"
        with image.open("wb") as file:
            file.truncate(size_bytes)
        run("mkfs.ext4", "-q", "-F", "-b", "4096", "-O", "^has_journal", "-E", "lazy_itable_init=0", image)
        at = _mount_point(base)
        try:
            run("mount", "-o", "loop", image, at)  # frees its loop device with the last user of the mount
        except AssertionError:
            at.rmdir()
            raise
        try:
            yield LoopDisk(at, backing)
        finally:
            _unmount(at)
            at.rmdir()
