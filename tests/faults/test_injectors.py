"""The injectors against plain programs: a fault that does nothing would make every other test here a lie."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.disks import KIB, MIB, loop_ext4, small_tmpfs
from tests.faults.injectors import file_size_limit, half_writes, immutable, traced

WRITER = """
import os, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
spool = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
print("open", flush=True)
for line in sys.stdin:
    try:
        print(os.write(spool, line.strip().encode()), flush=True)
    except OSError as error:
        print(error.errno, "errno", flush=True)
    os.fdatasync(spool)
"""


class Writer:
    """A plain program that writes one line to its file at a word, and says what the kernel answered."""

    def __init__(self, path: Path, env: dict[str, str] | None = None) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env, text=True
        )
        assert self.read() == "open"

    def read(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, text: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.read()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()


def mounted(at: Path) -> bool:
    return f" {at} " in Path("/proc/self/mounts").read_text()


def refused(code: int) -> str:
    return f"{code} errno"


def test_a_small_tmpfs_fills_grows_and_goes(tmp_path: Path) -> None:
    """Injector: tmpfs with size and nr_inodes."""
    with small_tmpfs(tmp_path, 64 * KIB, inodes=4) as disk:
        with Writer(disk.at / "spool") as writer:
            filler = disk.fill()
            assert disk.free_bytes() == 0
            assert writer.ask("a") == refused(errno.ENOSPC)
            filler.unlink()
            assert writer.ask("a") == "1"
            disk.fill()
            disk.resize(128 * KIB)
            assert writer.ask("b" * 4095) == "4095"
            disk.take_inodes(leave=0)
            with pytest.raises(OSError, match="No space left"):
                (disk.at / "one-more").touch()
        place = disk.at
    assert not mounted(place)


def test_a_failing_body_leaves_no_mount_and_no_loop_device(tmp_path: Path) -> None:
    """Injector: loop-mounted ext4 on a tmpfs."""
    places: list[Path] = []

    def fail() -> None:
        with loop_ext4(tmp_path, 4 * MIB) as disk:
            places.extend([disk.at, disk.backing.at])
            assert all(mounted(at) for at in places)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert not any(mounted(at) for at in places)
    assert str(tmp_path) not in subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout


def test_write_back_really_fails(tmp_path: Path) -> None:
    """Injector: ext4 image on a full tmpfs."""
    with loop_ext4(tmp_path, 16 * MIB, backing_bytes=3 * MIB) as disk:
        spool = disk.at / "spool"
        with spool.open("wb", buffering=0) as file:
            file.write(b"a" * 4096)
            os.fdatasync(file.fileno())
            filler = disk.break_write_back()
            file.write(b"b" * MIB)
            with pytest.raises(OSError, match=r"No space left|Input/output"):
                os.fdatasync(file.fileno())
            filler.unlink()
            os.fdatasync(file.fileno())  # and the second says yes: nobody may believe it


def test_an_immutable_file_refuses_an_open_writer(tmp_path: Path) -> None:
    """Injector: chattr +i."""
    with loop_ext4(tmp_path, 4 * MIB) as disk, Writer(disk.at / "spool") as writer:
        assert writer.ask("ab") == "2"
        with immutable(disk.at / "spool"):
            assert writer.ask("ab") == refused(errno.EPERM)
        assert writer.ask("ab") == "2"


def test_a_file_size_limit_cuts_a_write_short_and_then_refuses(tmp_path: Path) -> None:
    """Injector: prlimit --fsize."""
    with Writer(tmp_path / "spool") as writer:
        with file_size_limit(writer.process.pid, 5):
            assert writer.ask("abc") == "3"
            assert writer.ask("abc") == "2"
            assert writer.ask("abc") == refused(errno.EFBIG)
        assert writer.ask("abc") == "3"


def test_strace_answers_for_the_kernel_only_on_the_named_file(tmp_path: Path) -> None:
    """Injector: strace -P -e inject."""
    spool = tmp_path / "spool"
    with Writer(spool) as writer, Writer(tmp_path / "other") as other:
        with traced(
            writer.process.pid, tmp_path / "log", calls="write", inject=["write:error=EROFS:when=2+2"], paths=[spool]
        ) as trace:
            assert [writer.ask("ab") for _ in range(4)] == ["2", refused(errno.EROFS)] * 2
            assert other.ask("ab") == "2"
            trace.detach()
            assert trace.injected() == 2
        assert writer.ask("ab") == "2"
    assert spool.read_bytes() == b"ab" * 3


def test_strace_kills_before_the_call(tmp_path: Path) -> None:
    """Injector: strace -e inject=...:signal=KILL."""
    spool = tmp_path / "spool"
    with (
        Writer(spool) as writer,
        traced(
            writer.process.pid, tmp_path / "log", calls="write", inject=["write:signal=KILL:when=2"], paths=[spool]
        ) as trace,
    ):
        assert writer.ask("ab") == "2"
        assert writer.ask("ab") == ""
        trace.wait_end(10)
        assert trace.killed()
    assert spool.read_bytes() == b"ab"


def test_strace_delays_a_call(tmp_path: Path) -> None:
    """Injector: strace -e inject=...:delay_enter."""
    with (
        Writer(tmp_path / "spool") as writer,
        traced(
            writer.process.pid, tmp_path / "log", calls="fdatasync", inject=["fdatasync:delay_enter=300000"]
        ) as trace,
    ):
        assert writer.ask("ab") == "2"
        assert writer.ask("ab") == "2"
        trace.detach()
        assert trace.delayed() >= 1


def test_the_shim_really_writes_a_part(tmp_path: Path) -> None:
    """Injector: LD_PRELOAD shim."""
    spool = tmp_path / "spool"
    with half_writes(tmp_path / "shim", "spool", "half") as shim, Writer(spool, shim.env) as writer:
        assert writer.ask("abcd") == "4"
        shim.arm()
        assert writer.ask("efgh") == "2"
        assert writer.ask("ij") == refused(errno.ENOSPC)
        shim.disarm()
        assert writer.ask("kl") == "2"
        assert shim.happened() == [("half", 4, 2), ("half", 2, -1)]
    assert spool.read_bytes() == b"abcdefkl"
    with half_writes(tmp_path / "shim2", "spool", "one") as shim, Writer(spool, shim.env) as writer:
        shim.arm()
        assert writer.ask("mno") == "1"
        assert shim.happened() == [("one", 3, 1)]
    assert spool.read_bytes() == b"abcdefklm"
