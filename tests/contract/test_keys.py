"""A key makes a start happen at most once: again, in parallel, from another surface, after a crash (0.9)."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .fifos import Gate
from .home import Answer, Home
from .surface import Http, Surface


def counted(folder: Path, rest: str = "") -> str:
    """A command that leaves a line for each time that it was started."""
    return f"echo started >>'{folder}/starts'; {rest}"


def starts(folder: Path) -> int:
    return (folder / "starts").read_text().count("started")


@pytest.mark.requirement("0.9")
def test_the_same_request_has_the_same_result(surface: Surface, tmp_path: Path) -> None:
    request: Answer = {"command": counted(tmp_path, "echo $$; exit 3"), "key": f"same-{surface.name}"}
    first = surface.ok("shell", request)
    assert surface.ok("shell", request) == first
    assert starts(tmp_path) == 1


@pytest.mark.requirement("0.9")
def test_the_same_spawn_is_the_same_run(surface: Surface, tmp_path: Path, gate: Gate) -> None:
    request: Answer = {
        "action": "spawn",
        "command": counted(tmp_path, gate.wait),
        "key": f"spawn-{surface.name}",
    }
    first = surface.ok("shell", request)
    assert surface.ok("shell", request)["run_id"] == first["run_id"]
    gate.open()
    surface.finish(first["run_id"])
    assert surface.ok("shell", request)["run_id"] == first["run_id"]
    assert starts(tmp_path) == 1


@pytest.mark.requirement("0.9", "0.2")
def test_a_key_holds_across_surfaces(surfaces: dict[str, Surface], tmp_path: Path) -> None:
    """Of the callers' own environment and cwd nothing counts: the command line sends both."""
    request: Answer = {"action": "spawn", "command": counted(tmp_path), "key": "across"}
    assert len({surface.ok("shell", request)["run_id"] for surface in surfaces.values()}) == 1


@pytest.mark.requirement("0.9")
def test_the_callers_cwd_environment_and_context_do_not_count(house: Home, http: Http, tmp_path: Path) -> None:
    text = '{"action": "spawn", "command": "true", "key": "ambient"%s}'
    made = [
        house.limpet("call", "shell", text % "").stdout,
        house.limpet("call", "shell", text % "", cwd=tmp_path, env={"OTHER": "x"}).stdout,
        house.limpet("call", "shell", text % ', "context": {"runId": "r1", "sessionKey": "s"}').stdout,
    ]
    first = http.ok("shell", {"action": "spawn", "command": "true", "key": "ambient"})["run_id"]
    # A refusal would name the first run too.
    assert [(answer["ok"], answer["run_id"]) for answer in map(json.loads, made)] == [(True, first)] * 3


@pytest.mark.requirement("0.9", "0.3")
@pytest.mark.parametrize(
    "change",
    [
        {"command": "false"},
        {"timeout_secs": 60},
        {"cwd": "/"},
        {"env": {"A": "1"}},
        {"stdin": "text"},
        {"session_id": "another"},
        {"labels": ["x"]},
        {"action": "spawn"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_another_request_is_a_conflict(http: Http, change: Answer) -> None:
    request: Answer = {"command": "true", "key": "taken"}
    first = http.ok("shell", request)
    refused = http.refused("shell", {**request, **change}, "conflict")
    assert "taken" in refused["message"], refused
    assert http.ok("shell", request) == first


@pytest.mark.requirement("0.9")
@pytest.mark.parametrize("action", ["spawn", None])
def test_twenty_calls_at_once_are_one_run(http: Http, tmp_path: Path, action: str | None) -> None:
    request: Answer = {"command": counted(tmp_path, "echo $$"), "key": f"parallel-{action}"}
    if action:
        request["action"] = action
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(http.ok, ["shell"] * 20, [request] * 20))
    assert len({answer["run_id"] for answer in answers}) == 1
    if not action:
        assert len({answer["stdout"] for answer in answers}) == 1
    http.finish(answers[0]["run_id"])
    assert starts(tmp_path) == 1


@pytest.mark.requirement("0.9")
def test_twenty_different_requests_with_one_key_are_one_run(http: Http, tmp_path: Path) -> None:
    def call(number: int) -> Answer:
        return http.call("shell", {"command": counted(tmp_path, f": {number}"), "key": "raced"})

    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(call, range(20)))
    assert [answer["ok"] for answer in answers].count(True) == 1
    assert {answer["error"] for answer in answers if not answer["ok"]} == {"conflict"}
    assert starts(tmp_path) == 1


@pytest.mark.requirement("0.9", "1.11")
def test_a_key_holds_after_a_crash(new_home: Callable[..., Home], tmp_path: Path) -> None:
    """Injector: SIGKILL to the daemon, once while the run goes on and once after its end."""
    home = new_home()
    home.start()
    with Gate(tmp_path) as gate:
        request: Answer = {"action": "spawn", "command": counted(tmp_path, gate.wait + "exit 3"), "key": "crash"}
        first = Http(home).ok("shell", request)["run_id"]
        home.kill_daemon()
        home.start()
        assert Http(home).ok("shell", request)["run_id"] == first
        gate.open()
        assert Http(home).finish(first)["exit_code"] == 3
    one_shot: Answer = {"command": counted(tmp_path, "echo $$"), "key": "crash-one-shot"}
    answer = Http(home).ok("shell", one_shot)
    home.kill_daemon()
    home.start()
    assert Http(home).ok("shell", one_shot) == answer
    assert Http(home).ok("shell", request)["run_id"] == first
    Http(home).refused("shell", {**request, "command": "true"}, "conflict")
    assert starts(tmp_path) == 2
