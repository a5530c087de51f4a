"""A restart of the daemon, asked for or by kill -9, neither disturbs what runs nor loses any of it (1.11, 6.2)."""

import contextlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .fifos import Gate, Lifeline
from .home import Home, read_line, running
from .surface import Async, Http, Sync

NewHome = Callable[..., Home]

TALKING = "echo one; echo err-one >&2; {wait} echo two; echo err-two >&2; exit 7"


@pytest.mark.requirement("1.11", "6.1")
def test_restart_leaves_the_runs_alone(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    home = new_home()
    old = home.start()["pid"]
    run_id = Http(home).spawn(lifeline.hold + TALKING.format(wait=gate.wait))
    command_pid = int(lifeline.word())
    assert home.limpet("restart").returncode == 0
    new = home.daemon_pid()
    assert new != old
    assert not running(old)
    http = Http(home)
    assert http.facts(run_id)["status"] == "running"
    assert running(command_pid)
    gate.open()
    facts = http.finish(run_id)
    assert (facts["status"], facts["exit_code"], facts["ended_by"]) == ("failed", 7, "self")
    assert http.bytes_of(run_id) == b"one\ntwo\n"
    assert http.bytes_of(run_id, "stderr") == b"err-one\nerr-two\n"


@pytest.mark.requirement("1.11")
def test_kill_9_while_a_run_goes_on(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon. The command that comes next starts a new one, which finds the run running."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(lifeline.hold + TALKING.format(wait=gate.wait))
    lifeline.word()
    home.kill_daemon()
    assert not lifeline.gone(0)
    shown = home.limpet("ps")
    assert shown.returncode == 0, shown
    assert run_id in shown.stdout.decode()
    assert Http(home).facts(run_id)["status"] == "running"
    gate.open()
    assert home.limpet("wait", run_id).returncode == 7
    assert Http(home).bytes_of(run_id) == b"one\ntwo\n"
    assert Http(home).bytes_of(run_id, "stderr") == b"err-one\nerr-two\n"


@pytest.mark.requirement("1.11")
def test_a_run_that_ends_while_there_is_no_daemon(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(lifeline.hold + gate.wait + "seq 1 50000; exit 9")
    lifeline.word()
    home.kill_daemon()
    gate.open()
    assert lifeline.gone(30)
    assert home.limpet("wait", run_id).returncode == 9
    facts = Http(home).facts(run_id)
    assert (facts["status"], facts["exit_code"], facts["ended_by"]) == ("failed", 9, "self")
    assert Http(home).bytes_of(run_id) == "".join(f"{n}\n" for n in range(1, 50_001)).encode()


@pytest.mark.requirement("1.6", "1.11")
def test_a_timeout_holds_while_there_is_no_daemon(new_home: NewHome, lifeline: Lifeline) -> None:
    """Injector: SIGKILL to the daemon, before the timeout; no daemon is there when the run is ended."""
    home = new_home("[run]\nkill_grace_ms = 300\n")
    home.start()
    command = lifeline.hold + "trap '' TERM; setsid sleep 1000 & while :; do sleep 0.1; done"
    run_id = Http(home).spawn(command, timeout_secs=5)
    lifeline.word()
    home.kill_daemon()
    assert not lifeline.gone(0)
    assert lifeline.gone(60)
    home.start()
    facts = Http(home).finish(run_id)
    assert (facts["status"], facts["ended_by"], facts["signal"]) == ("timed_out", "timeout", "SIGKILL")


@pytest.mark.requirement("1.11", "0.12")
def test_stdin_stays_open_across_a_crash(new_home: NewHome) -> None:
    """Injector: SIGKILL to the daemon."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn("while read -r line; do echo got $line; done", stdin="open")
    Http(home).ok("runs.write", {"run_id": run_id, "text": "one\n"})
    assert Http(home).read(run_id, wait_ms=60_000)["data"] == "got one\n"
    home.kill_daemon()
    home.start()
    Http(home).ok("runs.write", {"run_id": run_id, "text": "two\n", "close": True})
    assert Http(home).finish(run_id)["exit_code"] == 0
    assert Http(home).bytes_of(run_id) == b"got one\ngot two\n"


@pytest.mark.requirement("1.11", "0.4")
def test_many_runs_and_many_crashes(new_home: NewHome, tmp_path: Path) -> None:
    """Injector: SIGKILL to the daemon, four times while ten runs go on."""
    home = new_home()
    home.start()
    http = Http(home)
    with contextlib.ExitStack() as stack:
        gates = [stack.enter_context(Gate(tmp_path, f"gate{n}")) for n in range(10)]
        made = [http.spawn(f"echo a{n}; {gate.wait} echo b{n}; exit {n}") for n, gate in enumerate(gates)]
        for turn in range(4):
            home.kill_daemon()
            gates[turn].open()
            home.start()
        for gate in gates[4:]:
            gate.open()
        for n, run_id in enumerate(made):
            assert http.finish(run_id)["exit_code"] == n
            assert http.bytes_of(run_id) == f"a{n}\nb{n}\n".encode()
    listed = [run["run_id"] for run in http.ok("runs.list", {"limit": 100})["runs"]]
    assert sorted(listed) == made


@pytest.mark.requirement("6.2")
@pytest.mark.parametrize("kind", [Sync, Async])
def test_a_client_finds_the_daemon_again(new_home: NewHome, gate: Gate, kind: type[Sync] | type[Async]) -> None:
    """Injector: SIGKILL to the daemon, while the client is connected."""
    home = new_home()
    home.start()
    client = kind(home)
    try:
        run_id = client.spawn("echo one; " + gate.wait + "exit 4", key="again")
        home.kill_daemon()
        home.start()
        assert client.facts(run_id)["status"] == "running"
        assert client.spawn("echo one; " + gate.wait + "exit 4", key="again") == run_id
        gate.open()
        assert client.finish(run_id)["exit_code"] == 4
    finally:
        client.close()


WAITER = """
import sys, limpet
with limpet.connect_sync() as client:
    print("waiting", flush=True)
    answer = client.call("runs.wait", run_ids=[sys.argv[1]], **{"for": [{"exit": True}]}, timeout_ms=60000)
    print(answer["ok"], flush=True)
"""


@pytest.mark.requirement("6.2", "1.11")
def test_a_wait_goes_on_across_a_crash(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon while a client and a `limpet run` wait for the run."""
    home = new_home()
    home.start()
    script = home.work / "script"
    script.write_text("echo one\n" + gate.wait + "\necho two\nexit 5\n")
    shown = home.popen("run", "sh", str(script))
    assert read_line(shown) == b"one\n"
    run_id = Http(home).spawn(lifeline.hold + gate.wait)
    lifeline.word()
    argv = [sys.executable, "-c", WAITER, run_id]
    waiter = subprocess.Popen(argv, env=home.env, stdout=subprocess.PIPE)
    try:
        assert read_line(waiter) == b"waiting\n"
        home.kill_daemon()
        # Either of the two may have started the next daemon already; this finds it or starts it.
        assert home.limpet("ps").returncode == 0
        gate.open()
        gate.open()
        assert read_line(waiter, 60) == b"True\n"
        assert waiter.wait(60) == 0
        assert read_line(shown, 60) == b"two\n"
        assert shown.wait(60) == 5
    finally:
        waiter.kill()
        waiter.wait(20)
        if waiter.stdout is not None:
            waiter.stdout.close()


@pytest.mark.requirement("1.11", "6.1")
def test_a_stale_socket_and_a_reused_pid_are_no_daemon(new_home: NewHome) -> None:
    """Injector: SIGKILL to the daemon, which leaves its socket file and its claim on the home behind."""
    home = new_home()
    home.start()
    old = home.kill_daemon()
    assert home.socket.exists()
    assert home.limpet("run", "echo", "new").stdout == b"new\n"
    assert home.daemon_pid() != old
