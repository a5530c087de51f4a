"""What is done to a run from outside: signals, terminal sizes, the kill ladder and the deadline."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tests.keeper.driver import Fact, Keeper
from tests.keeper.samples import assert_whole, fold, random_bytes, wait_extent, wrote

PTY = {"rows": 24, "cols": 80}

# Two processes, told apart by the letter each says when it is signalled; the child's group and session as asked.
PAIR = """
import os, signal, sys
ready, tell = os.pipe()
child = os.fork() == 0
if child:
    if "group" in sys.argv or "front" in sys.argv:
        os.setpgid(0, 0)
    if "front" in sys.argv:
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        os.tcsetpgrp(0, os.getpgrp())
    if "session" in sys.argv:
        os.setsid()
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
if child:
    os.write(tell, b".")
else:
    os.read(ready, 1)
    os.write(1, b"+")
while True:
    signal.sigwait([signal.SIGUSR1])
    os.write(1, b"c" if child else b"m")
"""


def start_pair(keeper: Keeper, how: str, **fields: object) -> None:
    assert keeper.start(sys.executable, "-I", "-S", "-c", PAIR, how, **fields)["ok"]
    wait_extent(keeper, "pty" if fields.get("pty") else "stdout", 1)


@pytest.mark.parametrize(
    ("how", "to", "who"),
    [
        ("", None, b"m"),
        ("", "main", b"m"),
        ("", "group", b"cm"),
        ("group", "group", b"m"),
        ("group", "all", b"cm"),
        ("session", "group", b"m"),
        ("session", "all", b"cm"),
    ],
)
def test_whom_a_signal_reaches_without_a_terminal(tmp_path: Path, how: str, to: str | None, who: bytes) -> None:
    with Keeper(tmp_path / "run") as keeper:
        start_pair(keeper, how)
        reply = keeper.call("signal", signal="SIGUSR1", **({"to": to} if to else {}))
        assert reply["ok"]
        assert reply["sent"] >= 1
        wait_extent(keeper, "stdout", 1 + len(who))
        fact = keeper.named("signalled")[0]
        assert (fact["signal"], fact["to"], fact["sent"]) == ("SIGUSR1", to or "main", reply["sent"])
        assert keeper.call("kill", grace_ms=0)["ok"]
        keeper.wait_gone()
        assert bytes(sorted(keeper.spool()[1:])) == who


@pytest.mark.parametrize(
    ("how", "to", "who"),
    [
        ("", None, b"cm"),
        ("front", None, b"c"),
        ("front", "foreground", b"c"),
        ("front", "main", b"m"),
        ("front", "group", b"m"),
        ("front", "all", b"cm"),
        ("group", None, b"m"),
        ("session", "all", b"cm"),
    ],
)
def test_whom_a_signal_reaches_on_a_terminal(tmp_path: Path, how: str, to: str | None, who: bytes) -> None:
    with Keeper(tmp_path / "run") as keeper:
        start_pair(keeper, how, pty=PTY)
        reply = keeper.call("signal", signal="SIGUSR1", **({"to": to} if to else {}))
        assert reply["ok"]
        assert reply["sent"] >= 1
        wait_extent(keeper, "pty", 1 + len(who))
        assert keeper.named("signalled")[0]["to"] == (to or "foreground")
        assert keeper.call("kill", grace_ms=0)["ok"]
        keeper.wait_gone()
        assert bytes(sorted(keeper.spool("pty")[1:])) == who


def test_no_foreground_without_a_terminal(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("sleep", "1000")["ok"]
        reply = keeper.call("signal", signal="SIGTERM", to="foreground")
        assert (reply["ok"], reply["error"]) == (False, "conflict")


@pytest.mark.requirement("F42", "0.8")
def test_death_by_an_asked_signal_is_the_runs_own_end(tmp_path: Path) -> None:
    """A `signal` frame is no ladder: nothing is stopping, and nothing follows."""
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("sleep", "1000")["ok"]
        assert keeper.call("signal", signal="SIGINT")["sent"] == 1
        assert keeper.wait_fact("ended")["by"] == "self"
        assert keeper.named("exited")[0]["signal"] == "SIGINT"
        assert keeper.named("stopping") == []


@pytest.mark.requirement("F57")
def test_ten_thousand_resizes(tmp_path: Path) -> None:
    """Each is recorded, in the order asked; the last one is what the program finds."""
    sizes = [(1 + number % 65535, 65535 - number) for number in range(9_999)] + [(65535, 65535)]
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.call("wake", on="never")["ok"]
        assert keeper.sh("read x; stty size", pty=PTY)["ok"]
        for first in range(0, len(sizes), 500):
            ids = [keeper.connection.post("resize", rows=rows, cols=cols) for rows, cols in sizes[first : first + 500]]
            assert all(keeper.connection.reply(number)["ok"] for number in ids)
        assert keeper.write(b"\n")["ok"]
        keeper.wait_gone()
        assert [(fact["rows"], fact["cols"]) for fact in keeper.named("resized")] == sizes
        assert keeper.spool("pty").splitlines()[-1] == b"65535 65535"


@pytest.mark.requirement("F57")
def test_a_size_out_of_bounds_is_refused(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("read x; stty size", pty=PTY)["ok"]
        for rows, cols in (
            (0, 0),
            (0, 80),
            (24, 0),
            (65536, 80),
            (24, 65536),
            (-1, 80),
            (24.0, 80),
            ("24", 80),
            (True, 80),
        ):
            reply = keeper.call("resize", rows=rows, cols=cols)
            assert (reply["ok"], reply["error"]) == (False, "invalid_argument"), (rows, cols, reply)
        assert keeper.write(b"\n")["ok"]
        keeper.wait_gone()
        assert keeper.spool("pty").splitlines()[-1] == b"24 80"
        assert keeper.named("resized") == []
    with Keeper(tmp_path / "run2") as keeper:
        assert keeper.start("sleep", "1000")["ok"]
        assert keeper.call("resize", rows=24, cols=80)["error"] == "conflict"


@pytest.mark.requirement("F57")
def test_resizes_stand_in_the_journal_where_they_were_asked(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("stty -echo; printf +; while read x; do stty size; done", pty=PTY)["ok"]
        wait_extent(keeper, "pty", 1)
        expected = b"+"
        for rows in range(10, 20):
            assert keeper.call("resize", rows=rows, cols=99)["ok"]
            assert keeper.write(b"\n")["ok"]
            expected += b"%d 99\n" % rows
            wait_extent(keeper, "pty", len(expected))
        assert keeper.spool("pty") == expected
        order = [fact["fact"] for fact in keeper.facts() if fact["fact"] in ("resized", "stdin")]
        assert order == ["resized", "stdin"] * 10


@pytest.mark.requirement("F57", "F48")
def test_a_terminal_made_raw_and_reset(tmp_path: Path) -> None:
    raw = random_bytes(100_000)
    (tmp_path / "payload").write_bytes(raw)
    script = "stty raw -opost; cat payload; reset >reset.out 2>&1; stty sane; echo; echo back"
    with Keeper(tmp_path / "run") as keeper:
        fields = {"cwd": str(tmp_path), "env": {"PATH": os.environ["PATH"], "TERM": "xterm"}}
        assert keeper.sh(script, pty=PTY, **fields)["ok"]
        for rows in (1, 65535, 24):
            assert keeper.call("resize", rows=rows, cols=rows)["ok"]
        keeper.wait_gone()
        facts = assert_whole(keeper, "pty", keeper.spool("pty"))
        assert wrote(facts, "pty")
        assert keeper.spool("pty").startswith(fold(raw)[:-1])
        assert keeper.spool("pty").endswith(b"\nback\n")
        assert keeper.named("exited")[0]["code"] == 0


@pytest.mark.requirement("1.6")
def test_a_deadline_asks_first_and_then_kills(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        script = "trap 'echo asked' TERM; while :; do sleep 0.02; done"
        assert keeper.sh(script, timeout_ms=400, kill_grace_ms=300)["ok"]
        keeper.wait_gone()
        facts = {fact["fact"]: fact for fact in keeper.facts()}
        stopping = facts["stopping"]
        assert (stopping["by"], stopping["signal"], stopping["grace_ms"]) == ("timeout", "SIGTERM", 300)
        assert 400 - 20 <= stopping["at"] - facts["started"]["at"] <= 400 + 3000
        assert 300 - 20 <= facts["killing"]["at"] - stopping["at"] <= 300 + 3000
        assert (facts["exited"]["signal"], facts["exited"]["code"]) == ("SIGKILL", None)
        assert (facts["ended"]["by"], facts["ended"]["survivors"]) == ("timeout", [])
        assert keeper.spool().startswith(b"asked\n")


@pytest.mark.requirement("1.6")
def test_a_command_that_obeys_its_deadline(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        script = "trap 'echo bye; exit 7' TERM; while :; do sleep 0.02; done"
        assert keeper.sh(script, timeout_ms=300, kill_grace_ms=20_000)["ok"]
        keeper.wait_gone(15)
        names = [fact["fact"] for fact in keeper.facts()]
        assert "stopping" in names
        assert "killing" not in names
        assert keeper.named("exited")[0]["code"] == 7
        assert keeper.named("ended")[0]["by"] == "timeout"
        assert_whole(keeper, "stdout", b"bye\n")


@pytest.mark.requirement("1.6")
def test_a_deadline_needs_no_connection(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("sleep", "1000", timeout_ms=300)["ok"]
        keeper.connection.close()
        keeper.wait_gone()
        assert keeper.named("ended")[0]["by"] == "timeout"
        assert keeper.named("exited")[0]["signal"] == "SIGTERM"


@pytest.mark.requirement("1.6")
def test_a_deadline_that_is_not_reached_does_nothing(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("exit 0", timeout_ms=60_000)["ok"]
        keeper.wait_gone(20)
        assert keeper.named("ended")[0]["by"] == "self"
        assert keeper.named("stopping") == []


@pytest.mark.requirement("F39", "1.6")
@pytest.mark.parametrize(
    ("script", "killed"),
    [
        ("trap 'echo woken; exit 5' TERM; echo +; kill -STOP $$; while :; do sleep 0.02; done", False),
        ("trap '' TERM; echo +; while :; do kill -STOP $$; done", True),
    ],
    ids=["obeys when woken", "stops itself again"],
)
def test_a_stopped_command_is_woken_and_killed(tmp_path: Path, script: str, killed: bool) -> None:
    with Keeper(tmp_path / "run") as keeper:
        pid = keeper.sh(script)["pid"]
        wait_extent(keeper, "stdout", 2)
        wait_stopped(pid)
        assert keeper.call("kill", grace_ms=300 if killed else 20_000)["ok"]
        keeper.wait_gone(15)
        exited, ended = keeper.named("exited")[0], keeper.named("ended")[0]
        assert ended["by"] == "kill"
        assert (exited["code"], exited["signal"]) == ((None, "SIGKILL") if killed else (5, None))
        assert keeper.spool() == (b"+\n" if killed else b"+\nwoken\n")


def wait_stopped(pid: int) -> None:
    """Nothing tells a stranger of a stop but /proc."""
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, "it did not stop"
        time.sleep(0.001)


@pytest.mark.requirement("1.6")
def test_kill_is_idempotent_and_answers_at_once(tmp_path: Path) -> None:
    def stopping(facts: list[Fact]) -> list[Fact]:
        return [fact for fact in facts if fact["fact"] == "stopping"]

    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("trap '' TERM; echo +; while :; do sleep 0.02; done")["ok"]
        wait_extent(keeper, "stdout", 2)
        before = time.monotonic()
        for _ in range(5):
            assert keeper.call("kill", signal="SIGTERM", grace_ms=2000)["ok"]
        assert time.monotonic() - before < 1.9, "a reply waited for the process"
        assert len(stopping(keeper.facts())) == 1
        keeper.wait_gone()
        assert keeper.named("exited")[0]["signal"] == "SIGKILL"
        assert len(stopping(keeper.facts())) == 1


@pytest.mark.requirement("1.6")
def test_a_kill_with_a_signal_and_a_reason_of_its_own(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("trap 'exit 9' INT; echo +; while :; do sleep 0.02; done", kill_grace_ms=15_000)["ok"]
        wait_extent(keeper, "stdout", 2)
        assert keeper.call("kill", signal="SIGINT", by="quota")["ok"]
        stopping = keeper.wait_fact("stopping")
        assert (stopping["signal"], stopping["by"], stopping["grace_ms"]) == ("SIGINT", "quota", 15_000)
        assert keeper.wait_fact("ended")["by"] == "quota"
        assert keeper.named("exited")[0]["code"] == 9
        assert signal.SIGINT.name == stopping["signal"]
