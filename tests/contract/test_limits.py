"""What a run may use at most (0.14): memory, processes and CPU seconds are held, or the run is refused (F06, F37)."""

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.cgroups import hierarchy

from .fifos import Gate, Lifeline
from .home import Answer, Home, json_lines, running, until
from .remains import attempt_directory, keeper_pid, kill_keeper, reboot, records, seal
from .surface import Http, Surface

NewHome = Callable[..., Home]

MIB = 1 << 20
# What is under a limit is to be the program alone: what `python3` stands for may be a script.
PYTHON = f"'{sys.executable}' -c"
EATER = f"exec {PYTHON} 'eaten = bytes([1]) * (200 << 20); print(2, flush=True)'"
BUSY = f"{PYTHON} 'while True: pass'"
# Forks until it is refused, in every process of it; those that were say so and stay.
BOMB = f"""exec {PYTHON} '
import os, signal
while True:
    try:
        os.fork()
    except BlockingIOError:
        os.write(1, b"EAGAIN\\n")
        signal.pause()
'"""


def needs(*controllers: str) -> pytest.MarkDecorator:
    lacking = [each for each in controllers if hierarchy(each) is None]
    return pytest.mark.skipif(bool(lacking), reason=f"no cgroup v1 hierarchy for {lacking} that may be written")


def groups(run_id: str) -> list[Path]:
    """Every cgroup of a run by its limits, wherever it was made."""
    return [
        Path(where) / name
        for where, names, _ in os.walk("/sys/fs/cgroup")
        for name in names
        if f"limpet-{run_id}-" in name
    ]


def held(run_id: str, file: str) -> list[str]:
    return [(group / file).read_text().strip() for group in groups(run_id) if (group / file).exists()]


def none_left(run_id: str) -> None:
    until(lambda: groups(run_id) == [], "the cgroups to be removed")


@needs("memory")
@pytest.mark.requirement("0.14", "0.8", "F06")
def test_who_eats_too_much_memory_dies_of_it(house: Home, http: Http, gate: Gate) -> None:
    """Injector: a program that wants 200 MB under a limit of 30; the test fails if the kernel did not kill it."""
    other = http.spawn("echo before; " + gate.wait + "echo after; exit 6", limits={"memory_bytes": 30 * MIB})
    eater = http.spawn(EATER, limits={"memory_bytes": 30 * MIB})
    facts = http.finish(eater)
    assert (facts["status"], facts["ended_by"]) == ("failed", "oom"), facts
    assert (facts["exit_code"], facts["signal"]) == (None, "SIGKILL"), facts
    assert http.bytes_of(eater) == b""
    # Its keeper saw the end, and wrote all that there was to write.
    seal(house, [eater])
    journal = records(attempt_directory(house, eater) / "keeper.journal")
    assert [fact["oom"] for fact in journal if fact["fact"] == "exited"] == [True]
    none_left(eater)
    gate.open()
    facts = http.finish(other)
    assert (facts["exit_code"], facts["ended_by"]) == (6, "self"), facts
    assert http.bytes_of(other) == b"before\nafter\n"
    none_left(other)


@needs("pids")
@pytest.mark.requirement("0.14", "1.6", "F37")
def test_a_fork_bomb_is_bounded_and_killed(http: Http, lifeline: Lifeline) -> None:
    """Injector: a fork bomb under 20 processes; the test fails if no fork of it was refused."""
    run_id = http.spawn(lifeline.hold + BOMB, limits={"pids": 20})
    lifeline.word()
    until(lambda: http.bytes_of(run_id).count(b"EAGAIN\n") == 20, "every process of it to be refused a fork")
    assert held(run_id, "pids.current") == ["20"]
    assert held(run_id, "pids.events") != ["max 0"]
    # Neither its keeper nor the daemon nor other runs count among them.
    assert http.ok("shell", {"command": "for i in 1 2 3; do (exit $i); done; echo on"})["stdout"] == "on\n"
    http.ok("runs.kill", {"run_id": run_id})
    facts = http.finish(run_id)
    assert (facts["status"], facts["ended_by"], facts["survivors"]) == ("killed", "kill", []), facts
    assert lifeline.gone(30)
    none_left(run_id)


@pytest.mark.requirement("0.14", "0.8")
def test_cpu_seconds_end_a_process_that_used_them(http: Http) -> None:
    answer = http.ok("shell", {"command": "exec " + BUSY, "limits": {"cpu_secs": 1}})
    facts = http.facts(answer["run_id"])
    assert (facts["status"], facts["ended_by"]) == ("failed", "quota"), facts
    assert (facts["exit_code"], facts["signal"]) == (None, "SIGXCPU"), facts
    assert facts["limits"] == {"cpu_secs": 1}


@pytest.mark.requirement("0.14", "0.8")
def test_cpu_seconds_are_those_of_each_process(http: Http) -> None:
    """A shell whose child used up its time goes on: what ended is the child."""
    answer = http.ok("shell", {"command": BUSY + "; echo $?; exit 3", "limits": {"cpu_secs": 1}})
    assert (answer["exit_code"], answer["stdout"]) == (3, "152\n"), answer
    assert http.facts(answer["run_id"])["ended_by"] == "self"


@needs("memory", "pids")
@pytest.mark.requirement("0.14", "9.runs")
def test_every_surface_says_what_was_asked(surface: Surface) -> None:
    limits = {"memory_bytes": 300 * MIB, "pids": 50, "cpu_secs": 100}
    answer = surface.ok("shell", {"command": "ulimit -t; exit 4", "limits": limits})
    assert (answer["stdout"], answer["exit_code"]) == ("100\n", 4)
    assert surface.facts(answer["run_id"])["limits"] == limits
    assert surface.facts(surface.ok("shell", {"command": "true"})["run_id"])["limits"] == {}
    none_left(answer["run_id"])


@pytest.mark.requirement("0.14", "9.shell")
@pytest.mark.parametrize(
    ("limits", "named"),
    [
        ({"memory_bytes": 0}, "limits.memory_bytes"),
        ({"memory_bytes": -1}, "limits.memory_bytes"),
        ({"memory_bytes": "30M"}, "limits.memory_bytes"),
        ({"pids": 1.5}, "limits.pids"),
        ({"pids": True}, "limits.pids"),
        ({"pids": 1 << 23}, "limits.pids"),
        ({"cpu_secs": 0}, "limits.cpu_secs"),
        ({"cpu_secs": 1 << 63}, "limits.cpu_secs"),
        ({"beauty": 1}, "beauty"),
        ([], "limits"),
        (None, "limits"),
    ],
    ids=repr,
)
def test_what_is_no_limit_is_refused(http: Http, tmp_path: Path, limits: Any, named: str) -> None:
    ask: Answer = {"action": "spawn", "command": f"touch {tmp_path / 'ran'}", "limits": limits}
    refusal = http.refused("shell", ask, "invalid_argument")
    assert named in refusal["message"], refusal
    assert not (tmp_path / "ran").exists()


@pytest.mark.requirement("0.14", "1.2")
def test_limits_go_with_a_start_only(http: Http) -> None:
    run_id = http.ok("shell", {"command": "true"})["run_id"]
    ask = {"action": "poll", "run_id": run_id, "limits": {"pids": 5}}
    assert http.refused("shell", ask, "invalid_argument")["field"] == "limits"


@pytest.mark.requirement("0.14", "0.9")
def test_limits_are_part_of_the_request(http: Http) -> None:
    ask: Answer = {"action": "spawn", "command": "true", "key": f"limits-{os.urandom(6).hex()}"}
    run_id = http.ok("shell", {**ask, "limits": {"cpu_secs": 60}})["run_id"]
    assert http.ok("shell", {**ask, "limits": {"cpu_secs": 60}})["run_id"] == run_id
    assert http.refused("shell", {**ask, "limits": {"cpu_secs": 61}}, "conflict")["reason"] == "key_reused"


def checks(told: Answer) -> Answer:
    (check,) = [check for check in told["checks"] if check["name"] == "limits"]
    return check


@pytest.mark.requirement("0.14", "6.1")
def test_what_the_machine_cannot_hold_is_refused_before_anything_runs(new_home: NewHome, tmp_path: Path) -> None:
    """Injector: `run.cgroup_root` is a directory at which no hierarchy is mounted."""
    home = new_home(f"[run]\ncgroup_root = '{tmp_path}'\n")
    home.start()
    http = Http(home)
    for name, most in (("memory_bytes", 30 * MIB), ("pids", 20)):
        for queued in ({}, {"session_id": "one"}):
            ask: Answer = {"action": "spawn", "command": f"touch {tmp_path / 'ran'}", "limits": {name: most}, **queued}
            refusal = http.refused("shell", ask, "unavailable")
            assert (refusal["reason"], refusal["field"]) == ("limit_unsupported", f"limits.{name}"), refusal
            assert f"`limits.{name}`" in refusal["message"], refusal
            assert "no cgroup hierarchy" in refusal["message"], refusal
    assert http.ok("runs.list")["runs"] == []
    assert not (tmp_path / "ran").exists()
    # What the kernel alone holds is held, and without limits nothing is different.
    assert http.ok("shell", {"command": "ulimit -t", "limits": {"cpu_secs": 7}})["stdout"] == "7\n"
    assert http.ok("shell", {"command": "echo on", "session_id": "one"})["stdout"] == "on\n"
    told = checks(http.ok("daemon.doctor"))
    assert told["ok"] is True
    assert "memory_bytes: cannot be held" in told["found"], told
    assert "cpu_secs: can be held" in told["found"], told


@pytest.mark.requirement("0.14", "6.1")
def test_limits_for_all_runs_that_cannot_be_held_are_told_by_doctor(new_home: NewHome, tmp_path: Path) -> None:
    """Injector: `run.cgroup_root` is a directory at which no hierarchy is mounted."""
    home = new_home(f"[run]\ncgroup_root = '{tmp_path}'\nlimit_pids = 100\n")
    home.start()
    refusal = Http(home).refused("shell", {"command": "true"}, "unavailable")
    assert (refusal["reason"], "`run.limit_pids`" in refusal["message"]) == ("limit_unsupported", True), refusal
    told = checks(Http(home).ok("daemon.doctor"))
    assert told["ok"] is False
    assert "run.limit_pids" in told["advice"], told


@needs("memory", "pids")
@pytest.mark.requirement("0.14")
def test_the_configuration_limits_all_runs(new_home: NewHome, lifeline: Lifeline) -> None:
    home = new_home("[run]\nlimit_memory_bytes = 314572800\nlimit_pids = 60\nlimit_cpu_secs = 100\n")
    home.start()
    http = Http(home)
    run_id = http.spawn(lifeline.hold + "ulimit -t; exec sleep 1000", limits={"cpu_secs": 50})
    lifeline.word()
    assert http.facts(run_id)["limits"] == {"memory_bytes": 314572800, "pids": 60, "cpu_secs": 50}
    assert held(run_id, "memory.limit_in_bytes") == ["314572800"]
    assert held(run_id, "pids.max") == ["60"]
    until(lambda: http.bytes_of(run_id) == b"50\n", "what the command sees")
    http.ok("runs.kill", {"run_id": run_id})
    assert http.finish(run_id)["status"] == "killed"
    none_left(run_id)


@needs("memory", "pids")
@pytest.mark.requirement("0.14", "6.3")
def test_the_command_line_takes_limits(house: Home, http: Http) -> None:
    flags: Sequence[str] = ("--memory", "30M", "--pids", "50", "--cpu", "60")
    done = house.limpet("run", *flags, "--", EATER)
    assert (done.returncode, done.stdout) == (128 + signal.SIGKILL, b""), done
    run_id = house.limpet("run", "-d", *flags, "--", "true").stdout.decode().strip()
    assert http.finish(run_id)["limits"] == {"memory_bytes": 30 * MIB, "pids": 50, "cpu_secs": 60}
    none_left(run_id)
    for wrong in (("--memory", "much"), ("--pids", "1.5"), ("--cpu", "-1")):
        done = house.limpet("run", *wrong, "--", "true")
        assert done.returncode == 125, done
        assert wrong[0].strip("-") in done.stderr.decode(), done
    (told,) = json_lines(house.limpet("doctor", "--json").stdout)
    assert "memory_bytes: can be held; pids: can be held" in checks(told)["found"], told


@needs("memory", "pids")
@pytest.mark.requirement("0.14", "F05")
def test_a_killed_keeper_leaves_no_cgroup(house: Home, http: Http, lifeline: Lifeline) -> None:
    """Injector: SIGKILL to the keeper of a run whose cgroups are there, and hold a process of another session."""
    command = lifeline.hold + "setsid sleep 1000 & exec sleep 1000"
    run_id = http.spawn(command, limits={"memory_bytes": 300 * MIB, "pids": 50})
    lifeline.word()
    until(lambda: held(run_id, "pids.current") == ["2"], "both processes")
    kill_keeper(house, run_id)
    facts = http.finish(run_id)
    assert (facts["ended_by"], facts["survivors"]) == ("lost", []), facts
    assert lifeline.gone(30)
    none_left(run_id)


@needs("memory")
@pytest.mark.requirement("0.14", "0.8", "F03")
def test_limits_hold_without_a_daemon(new_home: NewHome, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon, before the program eats."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(gate.wait + EATER, limits={"memory_bytes": 30 * MIB})
    keeper = keeper_pid(home, run_id)
    home.kill_daemon()
    gate.open()
    until(lambda: not running(keeper), "the keeper to have recorded the end")
    none_left(run_id)
    home.start()
    facts = Http(home).facts(run_id)
    assert (facts["ended_by"], facts["limits"]) == ("oom", {"memory_bytes": 30 * MIB}), facts


@needs("memory", "pids")
@pytest.mark.requirement("0.14", "1.11")
def test_a_second_attempt_keeps_its_limits(new_home: NewHome, gate: Gate, tmp_path: Path) -> None:
    """Injector: SIGKILL to daemon, keeper and command, in this order."""
    home = new_home()
    home.start()
    limits = {"memory_bytes": 30 * MIB, "pids": 50, "cpu_secs": 60}
    command = f"echo started >>{tmp_path / 'starts'}; ulimit -t; " + gate.wait + EATER
    run_id = Http(home).spawn(command, limits=limits)
    until(lambda: Http(home).bytes_of(run_id) == b"60\n", "the first attempt's output")
    reboot(home)
    home.start()
    until(lambda: (tmp_path / "starts").read_text() == "started\n" * 2, "the second attempt")
    assert Http(home).facts(run_id)["limits"] == limits
    assert [group.name for group in groups(run_id)] == [f"limpet-{run_id}-2"] * 2
    gate.open()
    facts = Http(home).finish(run_id)
    assert (facts["attempt"], facts["ended_by"]) == (2, "oom"), facts
    none_left(run_id)


@needs("pids")
@pytest.mark.requirement("0.14", "1.10")
def test_a_run_that_waited_has_its_limits(new_home: NewHome, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon while the run is queued."""
    home = new_home()
    home.start()
    first = Http(home).spawn(gate.wait, session_id="one")
    second = Http(home).spawn("ulimit -t; " + BOMB, session_id="one", limits={"pids": 5, "cpu_secs": 60})
    assert Http(home).facts(second)["status"] == "queued"
    assert groups(second) == []
    home.kill_daemon()
    home.start()
    gate.open()
    http = Http(home)
    assert http.finish(first)["status"] == "completed"
    until(lambda: http.bytes_of(second) == b"60\n" + b"EAGAIN\n" * 5, "the bomb to be refused")
    http.ok("runs.kill", {"run_id": second})
    assert http.finish(second)["status"] == "killed"
    none_left(second)
