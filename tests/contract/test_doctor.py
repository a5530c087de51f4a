"""`doctor` says what of the house is in order and what to do about the rest; status, stop, restart (6.1, F32)."""

import contextlib
import os
import re
import signal
from collections.abc import Callable

import pytest

from .fifos import Lifeline
from .home import Answer, Home, json_lines, running, until
from .remains import live_keepers
from .surface import Http, Surface

NewHome = Callable[..., Home]

NAMES = {"home", "sqlite", "cgroup", "disk", "keepers"}


def checks(told: Answer) -> dict[str, Answer]:
    by_name = {check["name"]: check for check in told["checks"]}
    assert len(by_name) == len(told["checks"]), told
    assert set(by_name) >= NAMES, told
    for check in by_name.values():
        assert set(check) >= {"name", "ok", "found", "advice"}, check
        assert type(check["ok"]) is bool, check
        assert check["found"], check
        # Whoever is told that something is wrong is told what to do.
        assert check["ok"] or check["advice"], check
    assert told["healthy"] is all(check["ok"] for check in by_name.values()), told
    return by_name


@pytest.mark.requirement("6.1", "0.2")
def test_the_same_checks_on_every_surface(surface: Surface, house: Home) -> None:
    by_name = checks(surface.ok("daemon.doctor"))
    assert by_name["home"]["ok"] is True
    assert str(house.path) in str(by_name["home"])
    assert by_name["disk"]["ok"] is True


@pytest.mark.requirement("F32", "6.1")
def test_it_says_which_sqlite_and_how_it_is_used(http: Http) -> None:
    sqlite = checks(http.ok("daemon.doctor"))["sqlite"]
    assert re.search(r"\b3\.\d+\.\d+\b", str(sqlite["found"])), sqlite
    version = tuple(int(n) for n in re.findall(r"\b3\.\d+\.\d+\b", str(sqlite["found"]))[0].split("."))
    assert version >= (3, 51, 3) or "wal" not in str(sqlite["found"]).lower() or sqlite["advice"], sqlite


@pytest.mark.requirement("6.1", "6.3")
def test_the_command_line_tells_it_in_words_too(new_home: NewHome) -> None:
    home = new_home()
    home.start()
    done = home.limpet("doctor", "--json")
    (told,) = json_lines(done.stdout)
    assert done.returncode == (0 if told["healthy"] else 1), done
    by_name = checks(told)
    words = home.limpet("doctor")
    assert words.returncode == done.returncode
    assert all(name in words.stdout.decode() for name in by_name), words


@pytest.mark.requirement("6.1", "0.14")
def test_a_disk_that_is_too_full_is_named(new_home: NewHome) -> None:
    """Injector: `store.min_free_bytes` above what the disk has."""
    home = new_home("[store]\nmin_free_bytes = 1152921504606846976\n")
    home.start()
    by_name = checks(Http(home).ok("daemon.doctor"))
    assert by_name["disk"]["ok"] is False
    assert by_name["home"]["ok"] is True
    done = home.limpet("doctor", "--json")
    assert (done.returncode, json_lines(done.stdout)[0]["healthy"]) == (1, False), done
    assert home.limpet("doctor").returncode == 1


@pytest.mark.requirement("6.1", "F07")
def test_a_keeper_that_stands_still_is_named(new_home: NewHome, lifeline: Lifeline) -> None:
    """Injector: SIGSTOP to a keeper."""
    home = new_home()
    home.start()
    http = Http(home)
    run_id = http.spawn(lifeline.hold + "exec sleep 1000")
    lifeline.word()
    assert checks(http.ok("daemon.doctor"))["keepers"]["ok"] is True
    (keeper,) = live_keepers(home)
    os.kill(keeper, signal.SIGSTOP)
    try:
        until(lambda: http.facts(run_id)["unresponsive"], "the run to be shown as unresponsive", 60)
        assert checks(http.ok("daemon.doctor"))["keepers"]["ok"] is False
    finally:
        os.kill(keeper, signal.SIGCONT)
    until(lambda: checks(http.ok("daemon.doctor"))["keepers"]["ok"], "the keeper to be well again")


@pytest.mark.requirement("6.1")
def test_status_tells_what_runs(new_home: NewHome, lifeline: Lifeline) -> None:
    home = new_home()
    assert home.limpet("status").returncode == 1
    home.start()
    http = Http(home)
    http.ok("shell", {"command": "true"})
    http.spawn(lifeline.hold + "exec sleep 1000")
    lifeline.word()
    (told,) = json_lines(home.limpet("status", "--json").stdout)
    assert (told["runs"]["running"], told["runs"]["total"]) == (1, 2), told
    assert {name: told[name] for name in ("pid", "home", "socket")} == {
        name: http.ok("daemon.status")[name] for name in ("pid", "home", "socket")
    }


@pytest.mark.requirement("6.1", "6.3")
def test_stop_and_restart_where_none_runs(new_home: NewHome) -> None:
    home = new_home()
    done = home.limpet("stop", "--json")
    assert b"Traceback" not in done.stderr
    assert len(json_lines(done.stdout)) == 1
    assert home.processes() == []
    (told,) = json_lines(home.limpet("restart", "--json").stdout)
    assert running(told["pid"])
    assert told["pid"] == home.daemon_pid()


@pytest.mark.requirement("6.1", "F11")
def test_of_many_daemons_at_once_one_stays(new_home: NewHome) -> None:
    """Injector: eight daemons started on one home at the same moment."""
    home = new_home()
    started = [home.popen("serve", "--ready-json") for _ in range(8)]
    until(lambda: sum(process.poll() is None for process in started) == 1, "all but one to give up", 60)
    (winner,) = [process for process in started if process.poll() is None]
    until(lambda: home.limpet("status").returncode == 0, "the one to serve")
    assert home.daemon_pid() == winner.pid
    for process in started:
        if process is not winner:
            assert process.stderr is not None
            assert f"held by pid {winner.pid}" in process.stderr.read().decode()
            assert process.returncode == 1


@pytest.mark.requirement("6.1", "F11")
@pytest.mark.parametrize("state", ["stopped", "without-socket"])
def test_a_daemon_that_does_not_answer_still_holds_its_home(new_home: NewHome, state: str) -> None:
    """Injector: SIGSTOP to the daemon, or its socket removed: the lock decides, not what else can be seen."""
    home = new_home()
    pid = home.start()["pid"]
    if state == "stopped":
        os.kill(pid, signal.SIGSTOP)
    else:
        home.socket.unlink()
    try:
        second = home.limpet("serve", timeout_s=30)
        assert second.returncode == 1, second
        assert f"held by pid {pid}" in second.stderr.decode(), second
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    assert running(pid)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.requirement("6.1", "F11")
def test_a_pid_in_a_file_holds_nothing(new_home: NewHome) -> None:
    """Injector: SIGKILL to the daemon, and the pid of a process that lives written where its own was."""
    home = new_home()
    home.start()
    home.kill_daemon()
    (home.path / "daemon.lock").write_text(f"{os.getpid()}\n")
    assert home.start()["pid"] != os.getpid()
    assert Http(home).ok("shell", {"command": "echo on"})["stdout"] == "on\n"
