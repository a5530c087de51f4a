"""A keeper's own life: how it comes, who may leave it, what it ignores, and when and how it goes."""

from __future__ import annotations

import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.keeper.driver import Connection, Keeper, Nursery
from tests.keeper.samples import assert_ends, assert_whole, wait_extent

IGNORED = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)


def keep(directory: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "limpet_keeper", "keep", str(directory)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_the_ready_line_is_all_that_it_says(tmp_path: Path) -> None:
    """Its stdout ends after the line while it lives on: nobody who waits for that end is held up."""
    with keep(tmp_path / "run") as process:
        assert process.stdout is not None
        assert process.stdin is not None
        said = process.stdout.readline()
        assert_ends(process.stdout)
        assert said.endswith(b"\n")
        assert json.loads(said) == {"ready": str(tmp_path / "run"), "pid": process.pid}
        connection = Connection(tmp_path / "run")
        assert connection.call("hello", protocol=1)["ok"]
        assert process.poll() is None
        assert os.getsid(process.pid) == process.pid
        with pytest.raises(BrokenPipeError):
            os.write(process.stdin.fileno(), b"nobody reads this")
        connection.close()
        process.wait(30)


def test_a_directory_that_exists_is_refused_and_left_alone(tmp_path: Path) -> None:
    directory = tmp_path / "run"
    directory.mkdir()
    (directory / "keeper.journal").write_text("somebody's")
    with keep(directory) as process:
        out, err = process.communicate(timeout=30)
        assert b'"ready"' not in out
        assert out.strip() or err.strip()
        assert process.returncode != 0
    assert [(path.name, path.read_text()) for path in directory.iterdir()] == [("keeper.journal", "somebody's")]


def test_an_unclaimed_keeper_goes_with_its_last_connection(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        second = Connection(keeper.directory)
        keeper.connection.close()
        assert second.call("hello", protocol=1)["phase"] == "idle"
        second.close()
        keeper.wait_gone()
        assert not keeper.directory.exists()


def test_a_keeper_that_nobody_calls_goes_after_ten_seconds(tmp_path: Path) -> None:
    """Cold, warm, and renamed before; one that was moved away leaves what is there."""
    begun = time.monotonic()
    with Nursery() as nursery, keep(tmp_path / "cold") as cold:
        pids = [nursery.prepare(tmp_path / name)["pid"] for name in ("warm", "moved")]
        handles = [os.pidfd_open(pid) for pid in pids]
        assert cold.stdout is not None
        assert cold.stdout.readline()
        (tmp_path / "moved").rename(tmp_path / "elsewhere")
        cold.wait(60)
        assert time.monotonic() - begun >= 9.5
        for handle in handles:
            assert select.select([handle], [], [], 60)[0], "it did not go"
            os.close(handle)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere"]
    assert (tmp_path / "elsewhere" / "keeper.journal").exists()


def test_a_claimed_keeper_that_was_moved_leaves_its_directory(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        (tmp_path / "run").rename(tmp_path / "claimed")
        (tmp_path / "run").mkdir()
        (tmp_path / "run" / "stranger").touch()
        keeper.connection.close()
        keeper.wait_gone()
    assert (tmp_path / "claimed" / "keeper.journal").exists()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["stranger"]


def test_a_rename_before_the_start_does_not_disturb_it(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        keeper.directory = tmp_path / "claimed"
        (tmp_path / "run").rename(keeper.directory)
        assert keeper.sh("echo out; echo err >&2")["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", b"out\n")
        assert_whole(keeper, "stderr", b"err\n")
        assert not (tmp_path / "run").exists()
        assert not (keeper.directory / "control.sock").exists()


def test_a_rename_while_it_runs_does_not_disturb_it_either(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        keeper.directory = tmp_path / "moved"
        (tmp_path / "run").rename(keeper.directory)
        other = Connection(keeper.directory)
        assert other.call("hello", protocol=1)["phase"] == "running"
        other.close()
        assert keeper.write(b"still", close=True)["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", b"still")
        assert not (keeper.directory / "control.sock").exists()


@pytest.mark.requirement("1.11")
def test_a_started_run_needs_no_connection(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("/bin/sh", "-c", 'echo one; read x <"$0"; echo two; exit 4', str(gate))["ok"]
        keeper.connection.close()
        gate.write_text("go\n")
        keeper.wait_gone()
        assert_whole(keeper, "stdout", b"one\ntwo\n")
        assert keeper.named("exited")[0]["code"] == 4


@pytest.mark.requirement("1.11")
def test_a_connection_can_come_at_any_time_of_the_run(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        for _ in range(20):
            keeper.connection.close()
            keeper.connection = Connection(keeper.directory)
            assert keeper.call("hello", protocol=1, wake="every")["phase"] == "running"
        assert keeper.write(b"", close=True)["ok"]
        keeper.wait_gone()


@pytest.mark.requirement("F14")
def test_signals_do_not_end_it(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        line = next(
            line for line in Path(f"/proc/{keeper.pid}/status").read_text().splitlines() if line.startswith("SigIgn")
        )
        mask = int(line.split()[1], 16)
        for number in IGNORED:
            assert mask & 1 << (number - 1), f"{number.name} is not ignored"
            os.kill(keeper.pid, number)
        assert keeper.write(b"unmoved", close=True)["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", b"unmoved")
        assert keeper.named("ended")[0]["by"] == "self"


def test_the_lock_tells_whether_it_lives(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.is_locked()
        assert keeper.start("cat", stdin="open")["ok"]
        assert keeper.is_locked()
        assert keeper.write(b"", close=True)["ok"]
        keeper.wait_gone()
        assert not keeper.is_locked()


@pytest.mark.requirement("F05")
def test_the_lock_of_a_killed_keeper_is_free_though_its_run_lives(tmp_path: Path) -> None:
    """Injector: SIGKILL to the keeper. The command inherited nothing that holds the lock."""
    with Keeper(tmp_path / "run") as keeper:
        pid = keeper.start("sleep", "1000")["pid"]
        os.kill(keeper.pid, signal.SIGKILL)
        keeper.wait_gone()
        try:
            assert not keeper.is_locked()
            assert Path(f"/proc/{pid}").exists()
            assert [fact["fact"] for fact in keeper.facts()][:3] == ["prepared", "starting", "started"]
        finally:
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("umask", ["000", "777"])
@pytest.mark.parametrize("terminal", [False, True], ids=["pipes", "pty"])
def test_modes_whatever_the_umask(tmp_path: Path, umask: str, terminal: bool) -> None:
    prefix = ["/bin/sh", "-c", f'umask {umask}; exec "$@"', "sh"]
    with Keeper(tmp_path / "run", prefix=prefix) as keeper:
        pty = {"rows": 24, "cols": 80} if terminal else None
        stdin = {} if terminal else {"stdin": "open"}
        assert keeper.sh("[ ! -t 0 ] || stty raw -opost -echo; printf 'a\\n'; exec head -c 1", pty=pty, **stdin)["ok"]
        wait_extent(keeper, "pty" if terminal else "stdout", 2)
        streams = {"pty.spool", "pty.bare_lf"} if terminal else {"stdout.spool", "stderr.spool"}
        modes = {path.name: path.lstat().st_mode for path in keeper.directory.iterdir()}
        assert set(modes) == {"keeper.journal", "control.sock"} | streams
        assert {name: oct(stat.S_IMODE(mode)) for name, mode in modes.items()} == dict.fromkeys(modes, oct(0o600))
        assert stat.S_ISSOCK(modes["control.sock"])
        assert stat.S_IMODE(keeper.directory.stat().st_mode) == 0o700
        assert keeper.write(b".")["ok"]
        keeper.wait_gone()


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        (keeper.directory / "record.json").write_text("theirs")
        assert keeper.sh("echo hi")["ok"]
        keeper.wait_gone()
        assert (keeper.directory / "record.json").read_text() == "theirs"
        assert not (keeper.directory / "control.sock").exists()
