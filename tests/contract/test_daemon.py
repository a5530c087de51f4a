"""The daemon: one for each home, started when needed, private, stopped with or without its runs (6.1, 6.6)."""

import contextlib
import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .fifos import Lifeline
from .home import Home, json_lines, read_line, running, until
from .surface import Http

NewHome = Callable[..., Home]


@pytest.mark.requirement("6.1")
def test_the_ready_line(new_home: NewHome) -> None:
    home = new_home()
    ready = home.start()
    assert set(ready) >= {"event", "pid", "socket", "url", "home"}
    assert (ready["event"], ready["home"], ready["socket"]) == ("ready", str(home.path), str(home.socket))
    assert ready["pid"] == home.daemon_pid()
    assert running(ready["pid"])
    # Ready means ready.
    assert Http(home).ok("shell", {"command": "echo ready"})["stdout"] == "ready\n"


def tcp_listeners(pid: int) -> list[str]:
    """The listening TCP sockets among a process's descriptors."""
    inodes: set[str] = set()
    for table in ("tcp", "tcp6"):
        rows = [line.split() for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]]
        inodes |= {row[9] for row in rows if row[3] == "0A"}
    held: list[str] = []
    for link in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            held.append(str(link.readlink()))
    return [name for name in held if name.removeprefix("socket:[").removesuffix("]") in inodes]


@pytest.mark.requirement("6.1", "6.6")
def test_no_tcp_unless_asked_for_and_all_private(new_home: NewHome) -> None:
    home = new_home()
    ready = home.start()
    assert tcp_listeners(ready["pid"]) == []
    assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    mode = home.socket.lstat().st_mode
    assert stat.S_ISSOCK(mode)
    assert stat.S_IMODE(mode) == 0o600


@pytest.mark.requirement("6.6")
def test_a_home_that_others_may_enter_is_closed_or_refused(new_home: NewHome) -> None:
    home = new_home()
    home.path.mkdir()
    home.path.chmod(0o755)
    done = home.limpet("run", "true")
    if done.returncode == 0:
        assert stat.S_IMODE(home.path.stat().st_mode) == 0o700
    else:
        assert (done.returncode, str(home.path) in done.stderr.decode()) == (125, True), done


@pytest.mark.requirement("6.1")
def test_a_second_daemon_is_refused_by_name(house: Home) -> None:
    pid = house.daemon_pid()
    for command in (["serve"], ["serve", "--ready-json"]):
        second = house.limpet(*command)
        assert second.returncode == 1, second
        assert f"held by pid {pid}" in (second.stderr + second.stdout).decode(), second
        assert b"Traceback" not in second.stderr
    assert house.daemon_pid() == pid


@pytest.mark.requirement("6.1")
def test_status(house: Home) -> None:
    done = house.limpet("status", "--json")
    assert done.returncode == 0
    (told,) = json_lines(done.stdout)
    assert told["home"] == str(house.path)
    version = house.limpet("--version").stdout.decode().split()[-1]
    assert version in done.stdout.decode()
    plain = house.limpet("status")
    assert (plain.returncode, str(told["pid"]) in plain.stdout.decode()) == (0, True)


@pytest.mark.requirement("6.1")
def test_status_starts_nothing(new_home: NewHome) -> None:
    home = new_home()
    done = home.limpet("status", "--json")
    assert b"Traceback" not in done.stderr
    assert home.processes() == []
    assert not home.socket.exists()


@pytest.mark.requirement("6.1")
def test_a_command_starts_the_daemon(new_home: NewHome) -> None:
    home = new_home()
    done = home.limpet("run", "echo", "first")
    assert (done.returncode, done.stdout) == (0, b"first\n"), done
    pid = home.daemon_pid()
    assert running(pid)
    assert home.limpet("run", "echo", "second").stdout == b"second\n"
    assert home.daemon_pid() == pid
    # It has left the session of the command that started it.
    assert os.getsid(pid) not in (os.getsid(0), 0)


@pytest.mark.requirement("6.1")
def test_commands_at_once_start_one_daemon(new_home: NewHome) -> None:
    home = new_home()
    with ThreadPoolExecutor(6) as pool:
        ran = list(pool.map(home.limpet, ["run"] * 6, ["echo"] * 6, map(str, range(6))))
    assert [done.stderr.decode() for done in ran if done.stderr] == []
    assert [(done.returncode, done.stdout) for done in ran] == [(0, f"{n}\n".encode()) for n in range(6)], ran
    runs = Http(home).ok("runs.list", {"limit": 100})["runs"]
    assert len(runs) == 6


@pytest.mark.requirement("6.1")
def test_commands_find_a_daemon_that_is_only_just_starting(new_home: NewHome) -> None:
    """Someone serves in the foreground at the same moment; whoever is first, no command fails for it."""
    home = new_home()
    home.popen("serve")
    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(home.limpet, ["run"] * 4, ["echo"] * 4, map(str, range(4))))
    assert [done.stderr.decode() for done in ran if done.stderr] == []
    assert [(done.returncode, done.stdout) for done in ran] == [(0, f"{n}\n".encode()) for n in range(4)], ran


SYNC_CLIENT = """
import limpet
with limpet.connect_sync() as client:
    print(client.call("shell", command="echo from python")["stdout"], end="")
"""
ASYNC_CLIENT = """
import asyncio, limpet
async def main():
    async with limpet.connect() as client:
        print((await client.call("shell", command="echo from python"))["stdout"], end="")
asyncio.run(main())
"""


@pytest.mark.requirement("6.1", "6.2")
@pytest.mark.parametrize("program", [SYNC_CLIENT, ASYNC_CLIENT], ids=["sync", "async"])
def test_a_client_starts_the_daemon(new_home: NewHome, program: str) -> None:
    home = new_home()
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, env=home.env, cwd=home.work, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, b"from python\n"), done
    assert running(home.daemon_pid())


@pytest.mark.requirement("6.1")
def test_stop_leaves_the_runs(new_home: NewHome, lifeline: Lifeline) -> None:
    home = new_home()
    pid = home.start()["pid"]
    run_id = Http(home).spawn(lifeline.hold + "exec sleep 1000")
    command_pid = int(lifeline.word())
    assert home.limpet("stop").returncode == 0
    until(lambda: not running(pid), "the daemon to be gone")
    assert not lifeline.gone(0)
    assert running(command_pid)
    home.start()
    assert Http(home).facts(run_id)["status"] == "running"
    assert home.limpet("stop", "--kill-runs").returncode == 0
    assert lifeline.gone(30)
    until(lambda: not home.processes(), "every process of the home to be gone")
    home.start()
    facts = Http(home).facts(run_id)
    assert (facts["status"], facts["ended_by"], facts["signal"]) == ("killed", "kill", "SIGTERM")


@pytest.mark.requirement("6.1")
def test_stop_over_the_socket(new_home: NewHome) -> None:
    home = new_home()
    pid = home.start()["pid"]
    Http(home).ok("daemon.stop")
    until(lambda: not running(pid), "the daemon to be gone")
    # Whoever asks next finds a new one.
    assert home.limpet("run", "true").returncode == 0
    assert home.daemon_pid() != pid


@pytest.mark.requirement("6.1")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_the_daemon_in_the_foreground(
    new_home: NewHome, lifeline: Lifeline, number: signal.Signals
) -> None:
    home = new_home()
    pid = home.start()["pid"]
    run_id = Http(home).spawn(lifeline.hold + "exec sleep 1000")
    lifeline.word()
    os.kill(pid, number)
    until(lambda: not running(pid), "the daemon to be gone")
    assert not lifeline.gone(0)
    assert b"Traceback" not in (home.base / "serve.err").read_bytes()
    assert home.limpet("kill", run_id).returncode == 0
    assert lifeline.gone(30)


@pytest.mark.requirement("6.1")
def test_a_home_whose_socket_path_is_too_long(new_home: NewHome) -> None:
    home = new_home()
    long = home.base / ("d" * 120)
    for command, code in ((["serve"], 1), (["run", "true"], 125), (["ps"], 1)):
        done = home.limpet(*command, env={"LIMPET_HOME": str(long)})
        assert done.returncode == code, done
        told = done.stderr.decode()
        assert str(long) in told, done
        assert "Traceback" not in told, done
        assert done.stdout == b""


@pytest.mark.requirement("6.1", "2.4")
@pytest.mark.parametrize("config", ["[run]\nkill_grace_ms = 'soon'\n", "[run]\nkill_grace_ms = -5\n", "[run\n"])
def test_a_wrong_config_is_refused_at_start(new_home: NewHome, config: str) -> None:
    home = new_home(config)
    process = home.popen("serve", "--ready-json")
    assert read_line(process) == b"", "it started with a wrong value"
    assert process.wait(60) != 0
    assert process.stderr is not None
    told = process.stderr.read().decode()
    assert ("kill_grace_ms" if "kill" in config else "config.toml") in told, told
    assert "Traceback" not in told, told


@pytest.mark.requirement("6.1")
def test_status_shapes_agree(house: Home) -> None:
    over_http = Http(house).ok("daemon.status")
    told = json.loads(house.limpet("status", "--json").stdout)
    assert (over_http["pid"], over_http["home"]) == (told["pid"], told["home"])
