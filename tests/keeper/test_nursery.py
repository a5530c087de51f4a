"""A nursery: keepers forked warm, that share nothing with it and with each other."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.keeper.driver import Frame, Nursery, WarmKeeper
from tests.keeper.samples import assert_ends, assert_whole


@pytest.mark.requirement("F14", "1.11")
def test_keepers_do_not_care_for_their_nursery(tmp_path: Path) -> None:
    """Injector: SIGKILL to the nursery, with keepers idle and running."""
    with Nursery() as nursery, ExitStack() as stack:
        keepers = [stack.enter_context(nursery.keeper(tmp_path / f"run{number}")) for number in range(20)]
        for keeper in keepers[::2]:
            assert keeper.start("cat", stdin="open")["ok"]
        nursery.process.kill()
        nursery.process.wait()
        assert_ends(nursery.stdout)
        for keeper in keepers[1::2]:
            assert keeper.start("cat", stdin="open")["ok"]
        for number, keeper in enumerate(keepers):
            assert keeper.write(b"%d" % number, close=True)["ok"]
            keeper.wait_gone()
            assert_whole(keeper, "stdout", b"%d" % number)


def test_a_nursery_ends_with_its_stdin(tmp_path: Path) -> None:
    with Nursery() as nursery, ExitStack() as stack:
        keepers = [stack.enter_context(nursery.keeper(tmp_path / f"run{number}")) for number in range(3)]
        nursery.stdin.close()
        assert nursery.process.wait(30) == 0
        assert_ends(nursery.stdout)
        for keeper in keepers:
            assert os.getsid(keeper.pid) == keeper.pid
            assert keeper.sh("echo on")["ok"]
            keeper.wait_gone()
            assert_whole(keeper, "stdout", b"on\n")


def test_each_request_to_a_nursery_is_answered_once(tmp_path: Path) -> None:
    """Forty in one write, good and bad mixed; the answers name what they are for, in any order."""
    with Nursery() as nursery:
        wanted = [tmp_path / ("missing/run" if number % 4 == 3 else f"run{number}") for number in range(40)]
        nursery.stdin.write(b"".join(json.dumps({"prepare": str(path)}).encode() + b"\n" for path in wanted))
        nursery.stdin.flush()
        answers = [json.loads(nursery.stdout.readline()) for _ in wanted]
        ready = {Path(answer["ready"]): answer["pid"] for answer in answers if "ready" in answer}
        failed = [answer for answer in answers if "failed" in answer]
        assert sorted(ready) == sorted(path for path in wanted if path.parent == tmp_path)
        assert len(failed) == 10
        for answer in failed:
            assert (answer["failed"], answer["errno"]) == (str(tmp_path / "missing/run"), "ENOENT")
            assert answer["message"]
        for path, pid in ready.items():
            WarmKeeper(path, pid).connection.close()


def test_keepers_of_one_nursery_share_nothing(tmp_path: Path) -> None:
    """Injector: SIGKILL to the first keeper; the second, forked later, must not hold its lock, socket or files."""
    with (
        Nursery() as nursery,
        nursery.keeper(tmp_path / "first") as first,
        nursery.keeper(tmp_path / "second") as second,
    ):
        os.kill(first.pid, signal.SIGKILL)
        first.wait_gone()
        assert not first.is_locked()
        assert second.call("hello", protocol=1)["phase"] == "idle"
        held = [str(fd.readlink()) for fd in Path(f"/proc/{second.pid}/fd").iterdir()]
        assert not [name for name in held if "/first/" in name]
        second.connection.close()
        second.wait_gone()


def test_a_directory_that_exists_fails_in_a_nursery_and_is_left_alone(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "file").write_text("somebody's")
    with Nursery() as nursery:
        answer = nursery.prepare(taken)
        assert (answer["failed"], answer["errno"]) == (str(taken), "EEXIST")
        with nursery.keeper(tmp_path / "run") as keeper:
            assert keeper.sh("true")["ok"]
    assert (taken / "file").read_text() == "somebody's"


@pytest.mark.requirement("F46")
def test_a_nursery_that_cannot_fork_says_so_and_goes_on(tmp_path: Path) -> None:
    """Injector: strace lets the nursery's first forks fail: that of its rehearsal, and that of a keeper."""
    log = tmp_path / "strace.log"
    calls = "clone,clone3,vfork,fork"
    prefix = ["strace", "-o", str(log), "-e", f"trace={calls}", "-e", f"inject={calls}:error=EAGAIN:when=1..2"]
    with Nursery(prefix=prefix) as nursery:
        answer = nursery.prepare(tmp_path / "first")
        assert "(INJECTED)" in log.read_text()
        assert (answer.get("failed"), answer.get("errno")) == (str(tmp_path / "first"), "EAGAIN"), answer
        assert not (tmp_path / "first").exists()
        with nursery.keeper(tmp_path / "second") as keeper:
            assert keeper.sh("echo on")["ok"]
            keeper.wait_gone()
            assert_whole(keeper, "stdout", b"on\n")


@pytest.mark.requirement("1.11")
def test_a_rehearsal_leaves_nothing_behind(tmp_path: Path) -> None:
    """strace only counts what the nursery makes and removes before its first keeper."""
    log = tmp_path / "strace.log"
    prefix = ["strace", "-o", str(log), "-e", "trace=mkdir,rmdir"]
    with Nursery(prefix=prefix) as nursery, nursery.keeper(tmp_path / "run") as keeper:
        calls = [line for line in log.read_text().splitlines() if '("/dev/shm/limpet-' in line]
        assert [call.split("(")[0] for call in calls] == ["mkdir", "rmdir"] * 10
        assert all(call.endswith("= 0") for call in calls)
        nursery_proc = Path(f"/proc/{keeper.pid}/status").read_text().split("PPid:\t", 1)[1].split("\n", 1)[0]
        proc = Path("/proc", nursery_proc)
        assert sorted(fd.name for fd in (proc / "fd").iterdir()) == ["0", "1", "2"]
        (task,) = (proc / "task").iterdir()
        assert (task / "children").read_text().split() == [str(keeper.pid)]


def test_a_nursery_that_cannot_rehearse_makes_keepers_all_the_same(tmp_path: Path) -> None:
    """Injector: strace lets the first mkdir fail, that of the rehearsal."""
    log = tmp_path / "strace.log"
    prefix = ["strace", "-o", str(log), "-e", "trace=mkdir", "-e", "inject=mkdir:error=EACCES:when=1"]
    with Nursery(prefix=prefix) as nursery, nursery.keeper(tmp_path / "run") as keeper:
        assert log.read_text().count("(INJECTED)") == 1
        assert keeper.sh("echo on")["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", b"on\n")


def test_a_keeper_with_a_command_has_little_memory_of_its_own(tmp_path: Path) -> None:
    """A bound with room for other interpreters; what it is here, `python -m bench MEM` says."""
    with Nursery() as nursery, nursery.keeper(tmp_path / "run") as keeper:
        assert keeper.start("sleep", "600")["ok"]
        rollup = Path(f"/proc/{keeper.pid}/smaps_rollup").read_text()
        assert int(rollup.split("Private_Dirty:", 1)[1].split()[0]) <= 1280
        assert keeper.call("kill", signal="SIGKILL")["ok"]
        keeper.wait_gone()


@contextmanager
def small_disk(where: Path, options: str) -> Generator[None]:
    where.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(where)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.mark.requirement("F22")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts a tmpfs")
@pytest.mark.parametrize("options", ["size=1M,nr_inodes={}", "size=64k"], ids=["inodes", "bytes"])
def test_a_prepare_that_fails_leaves_nothing(tmp_path: Path, options: str) -> None:
    """Injector: tmpfs mounts with room for one thing (or page) more each time, until a keeper fits."""
    failed = 0
    answer: Frame = {}
    with Nursery() as nursery:
        for size in range(1, 200):
            disk = tmp_path / f"disk{size}"
            with small_disk(disk, options.format(size)):
                if "inodes" not in options:
                    (disk / "filler").write_bytes(b"x" * (65536 - 4096 * (size - 1)))
                answer = nursery.prepare(disk / "run")
                if "ready" in answer:
                    with WarmKeeper(disk / "run", answer["pid"]) as keeper:
                        keeper.connection.close()
                        keeper.wait_gone()
                    break
                failed += 1
                assert (answer["failed"], answer["errno"]) == (str(disk / "run"), "ENOSPC")
                assert not [path for path in disk.iterdir() if path.name != "filler"]
    assert failed, "every disk was large enough"
    assert "ready" in answer, "none was"
