"""What is secret reaches the command alone: not its parent's environment, no fact, no view, no file (0.10, F72)."""

import json
from collections.abc import Callable

import pytest

from .fifos import Gate
from .home import Home, until
from .items import all_items, poll
from .remains import holding
from .surface import Http

NewHome = Callable[..., Home]
DAEMONS = {"API_TOKEN": "daemon-5be81f02", "AWS_SECRET_ACCESS_KEY": "daemon-aa01c6d4", "PLAIN": "daemon-plain-77"}
SECRET = "argued-0f9e8d7c"


@pytest.mark.requirement("0.10", "F72")
@pytest.mark.parametrize("pty", [False, True])
def test_the_daemons_environment_is_not_its_childrens(new_home: NewHome, pty: bool) -> None:
    """Neither in their own, nor in that of the process that keeps them, nor in what ps shows of their terminal."""
    home = new_home()
    home.start(env=DAEMONS)
    http = Http(home)
    run_id = http.spawn(
        "env; echo; cat /proc/$PPID/environ; echo; cat /proc/$PPID/cmdline; echo; ps e; echo over", pty=pty
    )
    assert http.finish(run_id)["exit_code"] == 0
    told = http.bytes_of(run_id, "pty" if pty else "stdout").decode(errors="replace")
    assert "PATH=" in told
    assert told.endswith("over\n")
    assert [value for value in DAEMONS.values() if value in told] == []
    token = home.path / "token"
    if token.exists():
        assert token.read_text().strip() not in told


@pytest.mark.requirement("0.10", "F72")
def test_a_secret_in_the_command_is_redacted_everywhere(new_home: NewHome, gate: Gate) -> None:
    """A secret of the environment that the caller has also written out: the command gets it, nobody is told it."""
    home = new_home()
    home.start()
    http = Http(home)
    command = f"{gate.wait} test {SECRET} = \"$API_TOKEN\"; printf %s '{SECRET}' | wc -c"
    run_id = http.spawn(command, env={"API_TOKEN": SECRET}, key="told", labels=["told"])
    told = json.dumps([http.ok("runs.get", {"run_id": run_id}), http.ok("runs.list"), poll(http, run_id)])
    assert "test " in told, "the rest of the command is told"
    assert SECRET not in told
    shown = home.limpet("ps", "--all").stdout + home.limpet("ps", "--all", "--json").stdout
    assert run_id.encode() in shown
    assert SECRET.encode() not in shown
    gate.open()
    assert http.finish(run_id)["exit_code"] == 0
    assert int(http.bytes_of(run_id)) == len(SECRET)
    assert SECRET not in json.dumps([http.ok("runs.get", {"run_id": run_id}), all_items(http, run_id)])
    home.kill_daemon()
    home.start()
    assert SECRET not in json.dumps([http.ok("runs.get", {"run_id": run_id}), http.ok("runs.list")])
    assert holding(home.path, SECRET) == []
    assert SECRET not in (home.base / "serve.err").read_text()


@pytest.mark.requirement("0.10", "F72")
def test_what_is_not_secret_is_told(http: Http) -> None:
    """The other way round: a plain value is not taken for one."""
    run_id = http.spawn("echo plain-6d5c4b", env={"PLAIN": "plain-6d5c4b"})
    http.finish(run_id)
    assert "plain-6d5c4b" in http.facts(run_id)["command"]


@pytest.mark.requirement("0.10", "0.3", "F72")
@pytest.mark.parametrize(
    "params", [{"timeout_secs": "soon"}, {"nosuch": 1}, {"cwd": "/no/such/place"}, {"watch": [{"regex": "("}]}], ids=str
)
def test_a_refusal_does_not_repeat_a_secret(http: Http, params: dict[str, object]) -> None:
    answer = http.call("shell", {"command": f"echo {SECRET}", "env": {"API_TOKEN": SECRET}, **params})
    assert SECRET not in json.dumps(answer)


@pytest.mark.requirement("0.10", "F72")
def test_a_secret_in_a_long_command_goes_with_the_run(new_home: NewHome, gate: Gate) -> None:
    """A command that is handed over as a file: it is private, it is sound to verify, and it is gone with the run."""
    home = new_home()
    home.start()
    http = Http(home)
    command = f'{gate.wait} : {"x" * 120_000}; test {SECRET} = "$API_TOKEN"'
    run_id = http.spawn(command, env={"API_TOKEN": SECRET})
    told = json.dumps(http.facts(run_id))
    assert ("xxx; test " in told, SECRET in told) == (True, False)
    assert holding(home.path, SECRET) != []
    assert all(path.stat().st_mode & 0o077 == 0 for path in holding(home.path, SECRET))
    assert http.ok("runs.verify", {"run_id": run_id})["findings"] == []
    gate.open()
    assert http.finish(run_id)["exit_code"] == 0
    until(lambda: holding(home.path, SECRET) == [], "the files with its true values to go")
