"""What a command finds when it begins: its arguments, descriptors, signals, session, terminal and limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.keeper.driver import Frame, Keeper, Nursery
from tests.keeper.samples import wait_extent

PTY = {"rows": 31, "cols": 97}
# Signals 32 and 33 the C library keeps for itself: no program can set them, and they come as they were at its start.
OF_THE_C_LIBRARY = 0b11 << 31


@pytest.mark.requirement("F41")
def test_arguments_environment_and_directory_arrive_exactly(tmp_path: Path, nursery: Nursery) -> None:
    odd = "a b'\"$\n\udcff é 😀"
    where = tmp_path / "dir \udcfe"
    where.mkdir()
    with nursery.keeper(tmp_path / "run1") as keeper:
        assert keeper.start("/usr/bin/env", "-0", env={"A": odd, "EMPTY": ""})["ok"]
        keeper.wait_gone()
        assert sorted(keeper.spool().split(b"\0")) == [b"", b"A=" + os.fsencode(odd), b"EMPTY="]
    with nursery.keeper(tmp_path / "run2") as keeper:
        script = 'printf "%s\\0" "$0" "$@"; /bin/pwd'
        assert keeper.start("/bin/sh", "-c", script, odd, "", "-", cwd=str(where))["ok"]
        keeper.wait_gone()
        assert keeper.spool().split(b"\0") == [os.fsencode(odd), b"", b"-", os.fsencode(where) + b"\n"]


def test_a_terminal_is_there_from_the_first_moment(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("tty; stty size; echo said >/dev/tty; tty <&1; tty <&2", pty=PTY)["ok"]
        keeper.wait_gone()
        name, size, said, out, err = keeper.spool("pty").decode().splitlines()
        assert name.startswith("/dev/pts/")
        assert (size, said) == ("31 97", "said")
        assert name == out == err
        assert not (keeper.directory / "stdout.spool").exists()
        assert not (keeper.directory / "stderr.spool").exists()
        assert keeper.named("starting")[0]["pty"] is True


@pytest.mark.requirement("F45")
def test_limits_are_the_commands_own(tmp_path: Path) -> None:
    limits = {"nofile": 64, "core": 0, "cpu": 100, "as": 1 << 30, "fsize": 1 << 20, "nproc": 5000}
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", "/proc/self/limits", rlimits=limits)["ok"]
        keeper.wait_gone()
        rows = {line[:26].strip(): line[26:].split()[:2] for line in keeper.spool().decode().splitlines()}
        names = ["open files", "core file size", "cpu time", "address space", "file size", "processes"]
        for name, value in zip(names, limits.values(), strict=True):
            hard = value + 1 if name == "cpu time" else value  # SIGXCPU comes before SIGKILL
            assert rows[f"Max {name}"] == [str(value), str(hard)]


@pytest.mark.requirement("F45")
@pytest.mark.parametrize("terminal", [False, True], ids=["pipes", "pty"])
def test_nothing_of_the_keeper_is_handed_down(tmp_path: Path, terminal: bool) -> None:
    """A keeper that was itself started with strange descriptors and signals ignored and blocked: none goes on."""
    dirt = ["/bin/sh", "-c", 'exec 3</dev/null 7</dev/null "$@"', "sh"]
    dirt += ["env", "--ignore-signal=USR1,QUIT,CHLD", "--block-signal=USR2,TERM"]
    fields: Frame = {"pty": PTY} if terminal else {"stdin": "open"}
    with Keeper(tmp_path / "run", prefix=dirt) as keeper:
        pid = keeper.start("cat", **fields)["pid"]
        assert keeper.write(b"\n")["ok"]
        wait_extent(keeper, "pty" if terminal else "stdout", 1)  # it read its input: what it opened to begin, it closed
        assert sorted(fd.name for fd in Path(f"/proc/{pid}/fd").iterdir()) == ["0", "1", "2"]
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        for mask in ("SigBlk", "SigIgn", "SigCgt", "SigPnd"):
            assert int(status[mask], 16) & ~OF_THE_C_LIBRARY == 0, (mask, status[mask])
        parent, group, session, tty, foreground = [int(word) for word in proc_stat(pid)[1:6]]
        assert parent != 0
        assert group == session == pid
        assert session != os.getsid(keeper.pid)
        assert (tty != 0, foreground) == ((True, pid) if terminal else (False, -1))


def proc_stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
