"""The daemon dies at any point, or its disk is slow or full: what it answered holds, and runs do not notice (1.11)."""

import contextlib
import http.client
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.faults.injectors import traced

from .fifos import Gate, Lifeline
from .home import LIMPET, Answer, Home, read_line, running, until
from .remains import keeper_pid
from .surface import Http

NewHome = Callable[..., Home]

CALLS = "write,writev,sendto,sendmsg,pwrite64,fdatasync,rename,renameat,renameat2,unlink,unlinkat,connect"
SYNCS = "fdatasync,fsync"


@pytest.mark.requirement("F01", "1.11")
def test_a_hundred_runs_outlive_the_daemon(new_home: NewHome, tmp_path: Path) -> None:
    """Injector: SIGKILL to the daemon while 100 runs write; every cursor handed out before goes on after."""
    home = new_home()
    home.start()
    first = Http(home)
    command = "i=0; while [ $i -lt 60 ]; do echo $i; i=$((i+1)); sleep 0.03; done; {wait}seq 60 199; exit {code}"
    with Gate(tmp_path) as gate:
        made = [first.spawn(command.format(wait=gate.wait, code=n)) for n in range(100)]
        before = {run_id: first.read(run_id) for run_id in made}
        home.kill_daemon()
        home.start()
        http = Http(home)
        facts = [http.facts(run_id) for run_id in made]
        assert {(told["status"], told["attempt"], told["exit_code"]) for told in facts} == {("running", 1, None)}
        for _ in made:
            gate.open()
        for code, run_id in enumerate(made):
            assert http.finish(run_id, 100_000)["exit_code"] == code
            cursor = before[run_id]["next_offset"]
            got = before[run_id]["data"].encode() + http.bytes_of(run_id, offset=cursor)
            assert got == "".join(f"{n}\n" for n in range(200)).encode()
    assert len(http.ok("runs.list", {"limit": 1000})["runs"]) == 100


@pytest.mark.requirement("F02", "F03", "0.9", "1.11")
@pytest.mark.parametrize("when", [1, 2, 3, 4, 6, 8, 11, 15, 20, 30])
def test_killed_at_a_chosen_system_call(new_home: NewHome, tmp_path: Path, when: int) -> None:
    """Injector: strace, SIGKILL at the n-th of the daemon's calls that move or sync data, while it starts runs."""
    home = new_home()
    pid = home.start()["pid"]
    answered: dict[int, str] = {}
    asked = 0

    def ask(n: int) -> str:
        return Http(home).spawn(f"echo {n} >>'{tmp_path}/starts'; echo {n}", key=f"k{n}")

    with traced(pid, tmp_path / "log", calls=CALLS, inject=[f"{CALLS}:signal=KILL:when={when}"]) as trace:
        with contextlib.suppress(OSError, http.client.HTTPException):
            for n in range(60):
                asked = n + 1
                answered[n] = ask(n)
        until(lambda: not running(pid), "the daemon to be killed")
        trace.wait_end(30)
        assert trace.killed()
    home.start()
    made = [ask(n) for n in range(asked)]
    assert {n: made[n] for n in answered} == answered
    assert len(set(made)) == asked
    for n, run_id in enumerate(made):
        assert Http(home).finish(run_id)["status"] == "completed"
        assert Http(home).bytes_of(run_id) == f"{n}\n".encode()
    assert sorted(map(int, (tmp_path / "starts").read_text().split())) == list(range(asked))
    listed = [run["run_id"] for run in Http(home).ok("runs.list", {"limit": 1000})["runs"]]
    assert sorted(listed) == sorted(made)
    assert Http(home).ok("runs.verify")["findings"] == []


@pytest.mark.requirement("F03", "0.9")
def test_killed_before_the_answer_could_be_read(new_home: NewHome, tmp_path: Path, lifeline: Lifeline) -> None:
    """Injector: SIGKILL to the daemon once the command runs; the client never reads the answer, and asks again."""
    home = new_home()
    home.start()
    request: Answer = {
        "action": "spawn",
        "command": f"echo x >>'{tmp_path}/starts'; " + lifeline.hold + "exec sleep 1000",
        "key": "once",
    }
    with ThreadPoolExecutor(1) as pool:
        pool.submit(Http(home).call, "shell", request)
        lifeline.word()
        home.kill_daemon()
    home.start()
    made = {Http(home).ok("shell", request)["run_id"] for _ in range(3)}
    assert made == {run["run_id"] for run in Http(home).ok("runs.list", {"limit": 10})["runs"]}
    assert len(made) == 1
    assert (tmp_path / "starts").read_text() == "x\n"
    assert Http(home).facts(made.pop())["status"] == "running"


@pytest.mark.requirement("F14", "1.11", "6.1")
@pytest.mark.parametrize("end", ["term", "group-int", "group-hup", "ctrl-c", "hang-up"])
def test_whatever_ends_the_daemon_leaves_the_keepers(
    new_home: NewHome, lifeline: Lifeline, gate: Gate, end: str
) -> None:
    """Injector: a signal to the daemon or its whole process group, Ctrl-C on its terminal, the terminal closed."""
    home = new_home()
    home.path.mkdir(mode=0o700)
    master, slave = pty.openpty()
    try:
        with subprocess.Popen(
            ["setsid", "--ctty", LIMPET, "serve", "--ready-json"],
            env=home.env,
            stdin=slave,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as daemon:
            os.close(slave)
            assert b"ready" in read_line(daemon)
            assert os.getsid(daemon.pid) == daemon.pid
            run_id = Http(home).spawn(lifeline.hold + "echo one; " + gate.wait + "echo two; exit 3")
            command_pid = int(lifeline.word())
            keeper = keeper_pid(home, run_id)
            if end == "term":
                os.kill(daemon.pid, signal.SIGTERM)
            elif end == "group-int":
                os.killpg(daemon.pid, signal.SIGINT)
            elif end == "group-hup":
                os.killpg(daemon.pid, signal.SIGHUP)
            elif end == "ctrl-c":
                os.write(master, b"\x03")
            else:
                os.close(master)
                master = -1
            if end in ("term", "group-int", "ctrl-c"):
                until(lambda: daemon.poll() is not None, "the daemon to end")
            # Hung up it may end or go on; whoever asks next finds a daemon, and the run as it was.
            assert home.limpet("ps").returncode == 0
            assert Http(home).facts(run_id)["status"] == "running"
            assert (running(keeper), running(command_pid)) == (True, True)
            gate.open()
            assert Http(home).finish(run_id)["exit_code"] == 3
            assert Http(home).bytes_of(run_id) == b"one\ntwo\n"
            home.limpet("stop")
            daemon.kill()
    finally:
        if master >= 0:
            os.close(master)


@pytest.mark.requirement("F27", "0.13")
def test_a_slow_disk_delays_the_answer_to_a_start_alone(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: strace, each fdatasync of the daemon 3 s late: a start waits for it, nobody else does."""
    home = new_home()
    pid = home.start()["pid"]
    http_ = Http(home)
    alive = http_.spawn("echo one; " + gate.wait + "seq 1 1000; exit 3")
    http_.read(alive, wait_ms=60_000)
    slowest_s = 0.0
    with traced(pid, tmp_path / "log", calls=SYNCS, inject=[f"{SYNCS}:delay_enter=3000000"]) as trace:
        with ThreadPoolExecutor(1) as pool:
            began = time.monotonic()
            starting = pool.submit(http_.spawn, "true")
            gate.open()
            while not starting.done():
                asked = time.monotonic()
                http_.facts(alive)
                http_.ok("runs.list")
                http_.read(alive)
                slowest_s = max(slowest_s, time.monotonic() - asked)
            assert time.monotonic() - began >= 3
        assert http_.finish(starting.result())["status"] == "completed"
        trace.detach()
        assert trace.delayed() > 0
    assert slowest_s < 1.5, slowest_s
    facts = http_.finish(alive)
    assert facts["exit_code"] == 3
    assert facts["finished_at"] - facts["started_at"] < 60_000


@pytest.mark.requirement("F27", "0.13")
def test_a_slow_disk_under_a_keeper_holds_no_output_up(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: strace, each fdatasync of one keeper 2 s late."""
    home = new_home("[run]\nsync_ms = 100\n")
    home.start()
    http_ = Http(home)
    run_id = http_.spawn("".join(f"echo {n}; {gate.wait}" for n in range(5)) + "exit 3")
    http_.read(run_id, wait_ms=60_000)
    log = tmp_path / "log"
    with traced(keeper_pid(home, run_id), log, calls=SYNCS, inject=[f"{SYNCS}:delay_enter=2000000"]) as trace:
        for n in range(1, 5):
            began = time.monotonic()
            gate.open()
            assert http_.read(run_id, offset=2 * n, wait_ms=60_000)["data"] == f"{n}\n"
            assert time.monotonic() - began < 1.5
            until_s = began + 0.3
            until(lambda until_s=until_s: time.monotonic() > until_s, "a sync to be due")
        assert http_.ok("shell", {"command": "echo other"})["stdout"] == "other\n"
        until(lambda: "(DELAYED)" in log.read_text(), "a sync to have been late")
        trace.detach()
    gate.open()
    assert http_.finish(run_id)["exit_code"] == 3


@pytest.mark.requirement("F16", "0.13", "0.7")
def test_what_cannot_be_recorded_is_not_started(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: strace, ENOSPC for each fdatasync of the daemon; keepers have room."""
    home = new_home()
    pid = home.start()["pid"]
    http_ = Http(home)
    alive = http_.spawn("echo one; " + gate.wait + "seq 1 50000; exit 3")
    http_.read(alive, wait_ms=60_000)
    request: Answer = {"action": "spawn", "command": f"echo x >>'{tmp_path}/starts'", "key": "k"}
    with traced(pid, tmp_path / "log", calls=SYNCS, inject=[f"{SYNCS}:error=ENOSPC"]) as trace:
        for _ in range(3):
            refused = http_.call("shell", request)
            assert (refused["ok"], refused.get("reason")) == (False, "storage_full"), refused
        gate.open()
        assert http_.finish(alive)["exit_code"] == 3
        assert http_.bytes_of(alive).decode() == "one\n" + "".join(f"{n}\n" for n in range(1, 50_001))
        trace.detach()
        assert trace.injected() > 0
    assert not (tmp_path / "starts").exists()
    made = {http_.ok("shell", request)["run_id"] for _ in range(2)}
    assert len(made) == 1
    assert http_.finish(made.pop())["status"] == "completed"
    assert (tmp_path / "starts").read_text() == "x\n"
