"""Answers have one form on every surface; what is wrong with a request is named, and nothing is coerced (0.2, 0.3)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .fifos import Gate
from .home import Answer, Home, json_lines
from .surface import Http, Surface

NO_OPERATION = "no.such_operation"
VOLATILE = {"run_id", "session_id", "duration_ms"}


def lasting(answer: Answer) -> Answer:
    return {name: value for name, value in answer.items() if name not in VOLATILE and not name.endswith("_at")}


@pytest.mark.requirement("0.2", "1.1")
@pytest.mark.parametrize(
    ("op", "params"),
    [
        ("shell", {"command": "echo out; echo err >&2; exit 3"}),
        ("shell", {"command": "printf '\\303\\251\\377'"}),
        ("shell", {"command": "true", "cwd": "/no/such/folder"}),
        ("shell", {"command": "true", "comand": "false"}),
        ("shell", {"command": 5}),
        ("runs.get", {"run_id": "nosuchrun"}),
        ("runs.wait", {"run_ids": ["nosuchrun"], "for": [{"exit": True}], "timeout_ms": 1000}),
        (NO_OPERATION, {}),
    ],
)
def test_every_surface_answers_the_same(surfaces: dict[str, Surface], op: str, params: Answer) -> None:
    """What is no tool, MCP refuses by an error of its own protocol, as it must."""
    asked = {name: surface for name, surface in surfaces.items() if op != NO_OPERATION or name != "mcp"}
    answers = {name: lasting(surface.call(op, params)) for name, surface in asked.items()}
    for name, answer in answers.items():
        assert answer == answers["http"], name


@pytest.mark.requirement("0.1", "0.2")
def test_every_surface_sees_the_same_run(surfaces: dict[str, Surface], house: Home) -> None:
    ran = surfaces["http"].ok("shell", {"command": "seq 3; echo no >&2; exit 4", "session_id": "same-run"})
    for op, params in (
        ("runs.get", {"run_id": ran["run_id"]}),
        ("runs.read", {"run_id": ran["run_id"], "stream": "stderr", "offset": 0, "max_bytes": 100}),
        ("runs.list", {"session_id": "same-run"}),
        ("runs.wait", {"run_ids": [ran["run_id"]], "for": [{"exit": True}], "timeout_ms": 10_000}),
    ):
        first = surfaces["http"].ok(op, params)
        # What is durable may grow between two answers.
        first.pop("durable_offset", None)
        for name, surface in surfaces.items():
            again = surface.ok(op, params)
            again.pop("durable_offset", None)
            if op == "runs.get" and "run" in again:
                first["run"].pop("durable_offset", None)
                again["run"].pop("durable_offset", None)
            assert again == first, (name, op)
    assert any(ran["run_id"] in json.dumps(line) for line in json_lines(house.limpet("ps", "--json", "--all").stdout))


@pytest.mark.requirement("0.2")
def test_a_run_started_on_one_surface_is_steered_from_the_others(surfaces: dict[str, Surface]) -> None:
    run_id = surfaces["async"].spawn("read line; echo got $line; sleep 1000", stdin="open")
    surfaces["cli"].ok("runs.write", {"run_id": run_id, "text": "it\n"})
    assert surfaces["sync"].read(run_id, wait_ms=60_000)["data"] == "got it\n"
    surfaces["http"].ok("runs.kill", {"run_id": run_id})
    assert surfaces["async"].finish(run_id)["status"] == "killed"


@pytest.mark.requirement("0.3")
def test_unknown_run_is_not_found(surface: Surface, http: Http) -> None:
    known = http.ok("shell", {"command": "true"})["run_id"]
    unknown = known[:-1] + ("0" if known[-1] != "0" else "1")
    for op, params in (
        ("runs.get", {}),
        ("runs.read", {"stream": "stdout", "offset": 0, "max_bytes": 10}),
        ("runs.kill", {}),
        ("runs.write", {"text": "x"}),
        ("runs.signal", {"signal": "SIGTERM"}),
    ):
        refused = surface.refused(op, {"run_id": unknown, **params}, "not_found")
        assert unknown in refused["message"], refused
    surface.refused("runs.wait", {"run_ids": [known, unknown], "for": [{"exit": True}], "timeout_ms": 10}, "not_found")


@pytest.mark.requirement("0.3")
def test_a_timeout_is_an_ordinary_answer(surface: Surface, gate: Gate) -> None:
    """The surfaces check the rest: HTTP status 200 with application/json, exit code 124 of the CLI."""
    run_id = surface.spawn(gate.wait + "exit 0")
    answer = surface.call("runs.wait", {"run_ids": [run_id], "for": [{"exit": True}], "timeout_ms": 50})
    assert (answer["ok"], answer["error"]) == (False, "timeout"), answer
    gate.open()
    surface.ok("runs.wait", {"run_ids": [run_id], "for": [{"exit": True}], "timeout_ms": 60_000})


@pytest.mark.requirement("0.3")
def test_a_timeout_says_where_to_go_on(http: Http, gate: Gate) -> None:
    run_id = http.spawn("echo some; " + gate.wait)
    http.read(run_id, wait_ms=60_000)
    waiting: Answer = {"run_ids": [run_id], "for": [{"exit": True}], "timeout_ms": 50}
    answer = http.call("runs.wait", waiting)
    assert answer["error"] == "timeout", answer
    cursors = [name for name in answer if "cursor" in name or name in {"from", "next"}]
    assert cursors, answer
    gate.open()
    http.ok("runs.wait", {**waiting, "timeout_ms": 60_000, "from": answer[cursors[0]]})


BAD: list[tuple[str, Answer, str]] = [
    ("shell", {}, "command"),
    ("shell", {"command": 5}, "command"),
    ("shell", {"command": ["true"]}, "command"),
    ("shell", {"command": "true", "comand": "x"}, "comand"),
    ("shell", {"command": "true", "action": "nosuch"}, "action"),
    ("shell", {"action": "spawn"}, "command"),
    ("shell", {"command": "true", "action": "spawn", "background": "true"}, "background"),
    ("shell", {"command": "true", "action": "spawn", "background": 1}, "background"),
    ("shell", {"command": "true", "timeout_secs": "5"}, "timeout_secs"),
    ("shell", {"command": "true", "timeout_secs": True}, "timeout_secs"),
    ("shell", {"command": "true", "timeout_secs": -1}, "timeout_secs"),
    ("shell", {"command": "true", "max_output_bytes": "10"}, "max_output_bytes"),
    ("shell", {"command": "true", "max_output_bytes": -1}, "max_output_bytes"),
    ("shell", {"command": "true", "max_output_bytes": 1.5}, "max_output_bytes"),
    ("shell", {"command": "true", "session_id": 7}, "session_id"),
    ("shell", {"command": "true", "labels": "x"}, "labels"),
    ("shell", {"command": "true", "labels": [1]}, "labels"),
    ("shell", {"command": "true", "env": {"A": 1}}, "env"),
    ("shell", {"command": "true", "env": ["A=1"]}, "env"),
    ("shell", {"command": "true\0false"}, "command"),
    ("shell", {"command": "true", "cwd": 5}, "cwd"),
    ("shell", {"command": "true", "stdin": 5}, "stdin"),
    ("shell", {"command": "true", "key": 5}, "key"),
    ("shell", {"command": "true", "context": {"runId": 5}}, "runId"),
    ("shell", {"command": "true", "context": "x"}, "context"),
    ("shell", {"command": "true", "on_lost": "perhaps"}, "on_lost"),
    ("runs.list", {"limit": "5"}, "limit"),
    ("runs.list", {"limit": True}, "limit"),
    ("runs.list", {"limit": -1}, "limit"),
    ("runs.list", {"status": 5}, "status"),
    ("runs.list", {"labels": ["x"]}, "labels"),
    ("runs.get", {}, "run_id"),
    ("runs.get", {"run_id": 5}, "run_id"),
    ("runs.wait", {"run_ids": "x", "for": [{"exit": True}]}, "run_ids"),
    ("runs.wait", {"run_ids": [], "for": [{"exit": True}]}, "run_ids"),
    ("runs.wait", {"run_ids": ["RUN"], "for": [{"exit": "yes"}]}, "exit"),
    ("runs.wait", {"run_ids": ["RUN"], "for": [{"exist": True}]}, "exist"),
    ("runs.wait", {"run_ids": ["RUN"], "for": [{"exit": True}], "timeout_ms": "5"}, "timeout_ms"),
    ("runs.kill", {"run_id": "RUN", "signal": 9}, "signal"),
    ("runs.kill", {"run_id": "LIVE", "signal": "SIGNOSUCH"}, "signal"),
    ("runs.signal", {"run_id": "RUN"}, "signal"),
    ("runs.signal", {"run_id": "LIVE", "signal": "15"}, "signal"),
    ("runs.write", {"run_id": "RUN", "text": 5}, "text"),
    ("runs.write", {"run_id": "RUN", "text": "x", "close": "yes"}, "close"),
    ("runs.write", {"run_id": "RUN", "data_base64": "?"}, "data_base64"),
    ("runs.read", {"run_id": "RUN", "stream": "stdout", "offset": 0, "encoding": "latin-1"}, "encoding"),
    ("runs.read", {"run_id": "RUN", "stream": "nosuch", "offset": 0}, "stream"),
    ("runs.read", {"run_id": "RUN", "stream": "stdout", "offset": 0, "max_bytes": "10"}, "max_bytes"),
    ("runs.read", {"run_id": "RUN", "stream": "stdout", "offset": 0, "max_bytes": -1}, "max_bytes"),
    ("runs.read", {"run_id": "RUN", "stream": "stdout", "offset": 0, "wait_ms": "5"}, "wait_ms"),
    *(
        ("runs.read", {"run_id": "RUN", "stream": "stdout", "offset": offset}, "offset")
        for offset in (2**64, 10**400, -1, "1e3", "3", True, 1.5, [0], 4)
    ),
]


@pytest.fixture(scope="module")
def runs(http: Http) -> Iterator[dict[str, str]]:
    """RUN stands for a run that has ended, with three bytes of output; LIVE for one that goes on."""
    live = http.spawn("exec sleep 1000")
    yield {"RUN": http.ok("shell", {"command": "printf abc"})["run_id"], "LIVE": live}
    http.ok("runs.kill", {"run_id": live})
    http.finish(live)


def fill(params: Answer, runs: dict[str, str]) -> Answer:
    text = json.dumps(params)
    for name, run_id in runs.items():
        text = text.replace(f'"{name}"', json.dumps(run_id))
    filled: Answer = json.loads(text)
    return filled


def check_refusal(surface: Surface, op: str, params: Answer, field: str) -> None:
    refused = surface.refused(op, params, "invalid_argument")
    assert field in json.dumps(refused), refused


@pytest.mark.requirement("0.3", "F62")
@pytest.mark.parametrize(("op", "params", "field"), BAD, ids=lambda value: str(value)[:60])
def test_a_bad_parameter_is_refused_by_name(
    http: Http, runs: dict[str, str], op: str, params: Answer, field: str
) -> None:
    check_refusal(http, op, fill(params, runs), field)


@pytest.mark.requirement("0.3", "1.3")
@pytest.mark.parametrize("env", [{"A=B": "1"}, {"A": "x\0y"}, {"": "x"}])
def test_an_environment_that_no_process_can_have(http: Http, env: dict[str, str]) -> None:
    """It is refused, or the run could not start; either way `env` is named, and nothing runs."""
    answer = http.call("shell", {"command": "true", "env": env})
    if answer["ok"]:
        assert answer["exit_code"] is None, answer
        assert "env" in answer["error_message"], answer
    else:
        assert (answer["error"], "env" in answer["message"]) == ("invalid_argument", True), answer


@pytest.mark.requirement("0.2", "0.3", "F62")
@pytest.mark.parametrize("name", ["async", "sync", "cli"])
def test_every_surface_refuses_by_name(surfaces: dict[str, Surface], runs: dict[str, str], name: str) -> None:
    for op, params, field in BAD[:: 8 if name == "cli" else 1]:
        if "\\u0000" not in json.dumps(params) or name != "cli":
            check_refusal(surfaces[name], op, fill(params, runs), field)


@pytest.mark.requirement("0.3")
@pytest.mark.parametrize("extra", [{"nosuch": 1}, {"timeout_secs": "5"}, {"labels": 5}, {"session_id": "a b"}])
def test_nothing_is_started_by_a_refused_call(http: Http, tmp_path: Path, extra: dict[str, Any]) -> None:
    command = f"echo x >>'{tmp_path}/ran'"
    http.refused("shell", {"command": command, **extra}, "invalid_argument")
    assert http.ok("runs.list", {"text": command})["runs"] == []
    http.ok("shell", {"command": command})
    assert (tmp_path / "ran").read_text() == "x\n"
