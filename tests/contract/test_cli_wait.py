"""`limpet wait` for what runs say and do, and `limpet run --watch`: lines, exit codes, JSON (6.3, 0.11, 1.8)."""

import json
import socket
from collections.abc import Callable
from contextlib import closing

import pytest

from .fifos import Gate
from .home import Home
from .items import all_items, events
from .surface import Http

pytestmark = pytest.mark.requirement("6.3", "9.cli", "0.11")


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return int(server.getsockname()[1])


def test_a_line_is_printed_when_it_is_said(house: Home, http: Http, gate: Gate) -> None:
    run_id = http.spawn(f"echo starting; {gate.wait} echo 'ready \033[31mnow'; exec sleep 1000")
    waiting = house.popen("wait", "--for", "never", "--for", "ready.*\n", run_id)
    gate.open()
    assert waiting.communicate(timeout=60) == (b"ready ^[[31mnow\n", b"")
    assert waiting.returncode == 0
    by_line = house.limpet("wait", "--for", "ready (.*)", "--line", "--json", run_id)
    hit = json.loads(by_line.stdout)["hit"]
    assert (hit["line"], hit["groups"]) == ("ready \033[31mnow", {"1": "\033[31mnow"})
    http.ok("runs.kill", {"run_id": run_id})


def test_what_can_come_no_more_is_not_waited_for(house: Home, http: Http) -> None:
    run_id = http.ok("shell", {"command": "echo other; exit 3"})["run_id"]
    done = house.limpet("wait", "--for", "ready", run_id)
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"ended" in done.stderr
    told = json.loads(house.limpet("wait", "--for", "ready", "--json", run_id).stdout)
    assert (told["ok"], told["error"], told["reason"]) == (False, "timeout", "ended")


def test_time_that_is_over(house: Home, http: Http) -> None:
    run_id = http.spawn("exec sleep 1000")
    done = house.limpet("wait", "--for", "ready", "--timeout", "0.2", run_id)
    assert (done.returncode, done.stdout) == (124, b"")
    assert run_id.encode() in done.stderr
    http.ok("runs.kill", {"run_id": run_id})


def test_quiet_and_a_port(house: Home, http: Http) -> None:
    port = free_port()
    server = f"import socket, time; s = socket.create_server(('127.0.0.1', {port})); print('up'); time.sleep(1000)"
    run_id = http.spawn(f'exec python3 -uc "{server}"')
    assert house.limpet("wait", "--port", str(port), run_id).returncode == 0
    assert http.read(run_id, wait_ms=60_000)["data"] == "up\n"
    assert house.limpet("wait", "--quiet", "0.1", "--for", "down", run_id).returncode == 0
    http.ok("runs.kill", {"run_id": run_id})


def test_a_pattern_that_is_none_is_a_failure(house: Home, http: Http) -> None:
    run_id = http.ok("shell", {"command": "true"})["run_id"]
    done = house.limpet("wait", "--for", "(", run_id)
    assert done.returncode == 125
    assert b"for[0].regex" in done.stderr


@pytest.mark.requirement("1.8")
def test_a_run_is_watched(house: Home, http: Http) -> None:
    done = house.limpet(
        "run", "-d", "--watch", "bad=error: .", "--watch", "a=b=c", "--watch", "x[=]", "echo error: 1 b=c x="
    )
    run_id = done.stdout.decode().strip()
    http.finish(run_id)
    items = all_items(http, run_id)
    assert [data["match"] for data in events(items, "bad")] == ["error: 1"]
    assert [data["match"] for data in events(items, "a")] == ["b=c"]
    assert [data["match"] for data in events(items, "match")] == ["x="]


def test_only_what_is_new_counts(house: Home, http: Http, gate: Gate) -> None:
    run_id = http.spawn(f"echo ask; {gate.wait} echo ask; exec sleep 1000")
    assert house.limpet("wait", "--for", "ask\n", run_id).returncode == 0
    assert house.limpet("wait", "--for", "ask\n", "--new", "--timeout", "0.3", run_id).returncode == 124
    waiting = house.popen("wait", "--new", "--for", "ask\n", run_id)
    gate.open()
    # Whichever of the two came first: the second line is there for who asks for all that is said from the first on.
    assert http.ok("runs.wait", {"run_ids": [run_id], "for": [{"regex": "ask\nask\n"}]})["run_id"] == run_id
    waiting.kill()
    http.ok("runs.kill", {"run_id": run_id})


def test_a_run_that_is_not_there_is_no_failed_command(house: Home) -> None:
    assert house.limpet("wait", "1zzzzzzzzzzzz").returncode == 125


@pytest.mark.requirement("6.3")
def test_one_stream_goes_to_stdout_and_the_last_lines_are_enough(house: Home, http: Http) -> None:
    run_id = http.ok("shell", {"command": "seq 5; seq 11 15 >&2"})["run_id"]
    alone = house.limpet("logs", "--stream", "stderr", "--tail", "2", run_id)
    assert (alone.stdout, alone.stderr) == (b"14\n15\n", b"")
    both = house.limpet("logs", "-n", "1", run_id)
    assert (both.stdout, both.stderr) == (b"5\n", b"15\n")


@pytest.mark.requirement("6.3", "0.12")
def test_stdin_is_typed_into_a_terminal_and_so_is_its_end(house: Home) -> None:
    done = house.limpet("run", "--pty", "read one; cat; echo got $one", stdin=b"first\nsecond")
    assert (done.returncode, done.stdout) == (0, b"first\nsecond" + b"second" + b"got first\n"), "echoed, then said"


@pytest.mark.requirement("6.1", "2.4")
def test_a_daemon_that_could_not_start_anew_is_not_stopped(new_home: Callable[..., Home]) -> None:
    home = new_home()
    home.start()
    pid = home.daemon_pid()
    home.configure("[run]\nsync = 5\n")
    refused = home.limpet("restart")
    assert refused.returncode == 1
    assert b"sync" in refused.stderr
    assert home.daemon_pid() == pid
