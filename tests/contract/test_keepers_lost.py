"""Keepers that die or stand still under a living daemon, a daemon that stands still, pids of strangers (1.11, F05)."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from prove import keepers_lost

from .fifos import Gate, Lifeline
from .home import Answer, Home, running, until
from .items import all_items, events, statuses
from .remains import attempt_directory, keeper_pid, kill_keeper, reboot, rewrite
from .surface import Http, Surface

NewHome = Callable[..., Home]

WHOLE = "".join(f"{n}\n" for n in range(1, 500_001)).encode()
# Said again and again without an end: each time takes a new process, which keeps it to some megabytes a second.
PART = "".join(f"{n}\n" for n in range(1, 5_001)).encode()


def state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@pytest.mark.requirement("1.11", "0.8", "F05")
def test_a_keeper_killed_while_its_command_writes(house: Home, surface: Surface, tmp_path: Path) -> None:
    """Injector: SIGKILL to the keeper, in the middle of output."""
    seconds: list[float] = []
    for n in range(3):
        # Each has its own: one that was let go once tells the next reader of it.
        with Lifeline(tmp_path, f"lifeline-{n}") as lifeline:
            run_id = surface.spawn(lifeline.hold + "while :; do seq 1 5000; done")
            pid = int(lifeline.word())
            until(lambda run_id=run_id: surface.read(run_id, max_bytes=1)["total_bytes"] > 100_000, "output")
            ago_s = time.monotonic() - kill_keeper(house, run_id)
            killed_at = time.time() - ago_s
            facts = surface.finish(run_id)
            # By what was recorded: a surface that takes a while to ask is no part of it.
            seconds.append(facts["finished_at"] / 1000 - killed_at)
            assert (facts["status"], facts["ended_by"]) == ("failed", "lost"), facts
            assert (facts["exit_code"], facts["signal"], facts["attempt"]) == (None, None, 1), facts
            assert facts["error_message"]
            # They could be killed and were: what is dead, or a zombie that nobody has reaped, has not survived.
            assert facts["survivors"] == []
            assert lifeline.gone(10)
            assert not running(pid)
            got = surface.bytes_of(run_id)
            assert got
            assert got == (PART * (len(got) // len(PART) + 1))[: len(got)]
            assert surface.read(run_id, offset=len(got))["eof"] is True
    # The bound is the contract's; a loaded machine gets three tries.
    assert min(seconds) <= 1, seconds


@pytest.mark.requirement("1.11", "0.8", "F05")
def test_keepers_killed_one_after_the_other() -> None:
    """Injector: SIGKILL to 8 keepers under one daemon. At length, and to the second: `python -m prove keepers_lost`."""
    assert keepers_lost.prove(8, within_s=5).startswith("8 keepers killed")


@pytest.mark.requirement("1.11", "F05")
def test_what_was_lost_under_a_living_daemon_is_never_started_again(
    new_home: NewHome, lifeline: Lifeline, tmp_path: Path
) -> None:
    """Injector: SIGKILL to the keeper; then a restart of the daemon by SIGKILL, and a reboot."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(f"echo started >>'{tmp_path}/starts'; " + lifeline.hold + "exec sleep 1000")
    lifeline.word()
    kill_keeper(home, run_id)
    before = Http(home).finish(run_id)
    assert (before["status"], before["ended_by"]) == ("failed", "lost")
    home.kill_daemon()
    home.start()
    reboot(home)
    home.start()
    after = Http(home).facts(run_id)
    assert {name: after[name] for name in ("status", "ended_by", "attempt", "finished_at")} == {
        name: before[name] for name in ("status", "ended_by", "attempt", "finished_at")
    }
    assert (tmp_path / "starts").read_text() == "started\n"


@pytest.mark.requirement("1.11", "1.4", "F05")
def test_the_items_of_a_lost_run_end_with_its_status(house: Home, http: Http, lifeline: Lifeline) -> None:
    """Injector: SIGKILL to the keeper."""
    run_id = http.spawn(lifeline.hold + "echo said; exec sleep 1000")
    lifeline.word()
    http.read(run_id, wait_ms=60_000)
    kill_keeper(house, run_id)
    http.finish(run_id)
    items = all_items(http, run_id)
    assert statuses(items)[-2:] == ["running", "failed"]
    assert items[-1]["kind"] == "status"
    assert events(items, "recovered") == []


@pytest.mark.requirement("F05", "1.11")
def test_other_runs_do_not_notice(house: Home, http: Http, lifeline: Lifeline, gate: Gate) -> None:
    """Injector: SIGKILL to one keeper of two."""
    other = http.spawn("echo before; " + gate.wait + "echo after; exit 6")
    doomed = http.spawn(lifeline.hold + "exec sleep 1000")
    lifeline.word()
    kill_keeper(house, doomed)
    assert http.finish(doomed)["ended_by"] == "lost"
    gate.open()
    assert http.finish(other)["exit_code"] == 6
    assert http.bytes_of(other) == b"before\nafter\n"


@pytest.mark.requirement("F07", "0.8")
def test_a_stopped_keeper_is_unresponsive_not_lost(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """Injector: SIGSTOP to the keeper; the test fails if it is not in state T."""
    home = new_home()
    home.start()
    http = Http(home)
    run_id = http.spawn(lifeline.hold + gate.wait + "seq 1 500000; exit 3")
    lifeline.word()
    other = http.spawn("exec sleep 1000")
    keeper = keeper_pid(home, run_id)
    os.kill(keeper, signal.SIGSTOP)
    try:
        until(lambda: state(keeper) == "T", "the keeper to stop")
        gate.open()
        until(lambda: http.facts(run_id)["unresponsive"], "the run to be shown as unresponsive", 60)
        facts = http.facts(run_id)
        assert (facts["status"], facts["ended_by"]) == ("running", None), facts
        assert http.facts(other)["unresponsive"] is False
        assert not lifeline.gone(0)
    finally:
        os.kill(keeper, signal.SIGCONT)
    facts = http.finish(run_id)
    assert (facts["status"], facts["exit_code"], facts["ended_by"]) == ("failed", 3, "self"), facts
    assert facts["unresponsive"] is False
    assert http.bytes_of(run_id) == WHOLE


@pytest.mark.requirement("F08", "1.6")
def test_a_stopped_daemon_holds_nothing_up(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: SIGSTOP to the daemon; the test fails if it is not in state T."""
    home = new_home("[run]\nkill_grace_ms = 300\n")
    daemon = home.start()["pid"]
    http = Http(home)
    with Lifeline(tmp_path, "writes") as writes, Lifeline(tmp_path, "limited") as limited:
        writer = http.spawn(writes.hold + gate.wait + "seq 1 500000; exit 4")
        timed = http.spawn(limited.hold + "trap '' TERM; while :; do sleep 0.1; done", timeout_secs=2)
        writes.word()
        limited.word()
        os.kill(daemon, signal.SIGSTOP)
        try:
            until(lambda: state(daemon) == "T", "the daemon to stop")
            gate.open()
            assert writes.gone(60)
            assert limited.gone(60)
            assert state(daemon) == "T"
        finally:
            os.kill(daemon, signal.SIGCONT)
    assert http.finish(writer)["exit_code"] == 4
    assert http.bytes_of(writer) == WHOLE
    facts = http.finish(timed)
    assert (facts["status"], facts["ended_by"]) == ("timed_out", "timeout")
    assert facts["finished_at"] - facts["started_at"] < 10_000, "the limit was held when the daemon woke up"


@pytest.mark.requirement("F10", "1.6", "1.11")
@pytest.mark.parametrize("wrong", ["boot_id", "start_time"])
def test_a_pid_that_is_somebody_else_now_is_left_alone(new_home: NewHome, lifeline: Lifeline, wrong: str) -> None:
    """Injector: a journal whose pids are a stranger's, of another boot or of another start time."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(lifeline.hold + "exec sleep 1000", on_lost="fail")
    lifeline.word()
    reboot(home)
    stranger = subprocess.Popen(["sleep", "1000"], start_new_session=True)
    try:
        stat = Path(f"/proc/{stranger.pid}/stat").read_text().rpartition(")")[2].split()
        start_time = int(stat[19])

        def change(facts: list[Answer]) -> None:
            for fact in facts:
                if fact["fact"] == "prepared":
                    fact["cgroup"] = None
                    fact["keeper"]["pid"] = stranger.pid
                    fact["keeper"]["start_time"] = start_time - 5
                    if wrong == "boot_id":
                        fact["keeper"]["boot_id"] = "00000000-0000-4000-8000-000000000000"
                elif fact["fact"] == "started":
                    fact["pid"] = stranger.pid
                    fact["start_time"] = start_time - (5 if wrong == "start_time" else 0)

        rewrite(attempt_directory(home, run_id) / "keeper.journal", change)
        home.start()
        facts = Http(home).finish(run_id)
        assert (facts["status"], facts["ended_by"], facts["exit_code"]) == ("failed", "lost", None), facts
        assert stranger.pid not in facts["survivors"]
        # And asked to kill what is no more, it kills nobody either.
        Http(home).ok("runs.kill", {"run_id": run_id})
        assert stranger.poll() is None
        assert running(stranger.pid)
    finally:
        stranger.kill()
        stranger.wait(20)
