"""runs.wait for quiet and for the end, reads that wait: from one call to the next nothing is missed (0.11)."""

import json
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from .fifos import Gate
from .home import Answer
from .surface import Http, Surface

CHATTY = "for n in $(seq {times}); do echo $n; sleep 0.05; done; "


@pytest.mark.requirement("0.11")
def test_quiet_holds_once_nothing_comes(surface: Surface, gate: Gate) -> None:
    run_id = surface.spawn("echo said; " + gate.wait + "exit 3")
    condition: Answer = {"quiet_ms": 300}
    answer = surface.ok("runs.wait", {"run_ids": [run_id], "for": [condition], "timeout_ms": 60_000})
    assert (answer["run_id"], answer["met"], answer["run"]["status"]) == (run_id, condition, "running")
    gate.open()
    assert surface.finish(run_id)["exit_code"] == 3


@pytest.mark.requirement("0.11")
def test_quiet_does_not_hold_while_output_comes(http: Http) -> None:
    """Every 50 ms something comes, for about two seconds: a second of quiet is only there after the last of it."""
    run_id = http.spawn(CHATTY.format(times=40) + "exec sleep 1000")
    answer = http.ok("runs.wait", {"run_ids": [run_id], "for": [{"quiet_ms": 1000}], "timeout_ms": 60_000})
    assert answer["met"] == {"quiet_ms": 1000}
    assert http.bytes_of(run_id) == "".join(f"{n}\n" for n in range(1, 41)).encode()
    http.ok("runs.kill", {"run_id": run_id})
    assert http.finish(run_id)["status"] == "killed"


@pytest.mark.requirement("0.11", "0.3")
def test_a_wait_for_quiet_times_out(http: Http) -> None:
    run_id = http.spawn("while :; do echo on; sleep 0.05; done")
    params: Answer = {"run_ids": [run_id], "for": [{"quiet_ms": 5000}], "timeout_ms": 400}
    answer = http.refused("runs.wait", params, "timeout")
    assert "from" in answer
    assert [run["run_id"] for run in answer["runs"]] == [run_id]
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.11")
def test_of_several_conditions_the_first_that_holds_is_said(surface: Surface, gate: Gate) -> None:
    both: list[Answer] = [{"exit": True}, {"quiet_ms": 400}]
    waiting = surface.spawn("echo said; " + gate.wait)
    answer = surface.ok("runs.wait", {"run_ids": [waiting], "for": both, "timeout_ms": 60_000})
    assert answer["met"] == {"quiet_ms": 400}
    gate.open()
    surface.finish(waiting)
    answer = surface.ok("runs.wait", {"run_ids": [waiting], "for": [{"exit": True}, {"quiet_ms": 600_000}]})
    assert answer["met"] == {"exit": True}


@pytest.mark.requirement("0.11", "0.3")
@pytest.mark.parametrize(
    "condition", [{"quiet_ms": -1}, {"quiet_ms": "300"}, {"quiet_ms": True}, {"quiet_ms": 1.5}, {}, {"exit": "yes"}]
)
def test_a_condition_is_strict(http: Http, condition: Answer) -> None:
    run_id = http.ok("shell", {"command": "true"})["run_id"]
    refused = http.refused("runs.wait", {"run_ids": [run_id], "for": [condition]}, "invalid_argument")
    assert "for" in json.dumps(refused)


@pytest.mark.requirement("0.11")
def test_an_end_between_two_waits_is_not_missed(surface: Surface, gate: Gate) -> None:
    run_id = surface.spawn(gate.wait + "exit 5")
    params: Answer = {"run_ids": [run_id], "for": [{"exit": True}], "timeout_ms": 50}
    late = surface.refused("runs.wait", params, "timeout")
    gate.open()
    surface.finish(run_id)
    answer = surface.ok("runs.wait", {**params, "from": late["from"]})
    assert (answer["run_id"], answer["run"]["exit_code"]) == (run_id, 5)
    assert surface.ok("runs.wait", params)["run_id"] == run_id


@pytest.mark.requirement("0.11", "1.10")
def test_a_queued_run_is_waited_for_like_any(http: Http, gate: Gate) -> None:
    first = http.spawn(gate.wait, session_id="waited")
    second = http.spawn("exit 6", session_id="waited")
    params: Answer = {"run_ids": [second], "for": [{"exit": True}], "timeout_ms": 60_000}
    assert http.refused("runs.wait", {**params, "timeout_ms": 100}, "timeout")["runs"][0]["status"] == "queued"
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(http.ok, "runs.wait", params)
        gate.open()
        assert waiting.result(60)["run"]["exit_code"] == 6
    assert http.facts(first)["status"] == "completed"


@pytest.mark.requirement("0.11", "1.4")
def test_reading_waits_for_bytes_and_not_longer(http: Http, gate: Gate) -> None:
    run_id = http.spawn("printf one; " + gate.wait + "printf two")
    http.read(run_id, wait_ms=60_000)
    began = time.monotonic()
    page = http.read(run_id, offset=3, wait_ms=200)
    assert (page["data"], page["eof"], page["next_offset"]) == ("", False, 3)
    assert 0.15 < time.monotonic() - began < 20
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(http.read, run_id, offset=3, wait_ms=60_000)
        gate.open()
        assert reading.result(60)["data"] == "two"
    http.finish(run_id)
    for beyond in (7, 1 << 40):
        params: Answer = {"run_id": run_id, "stream": "stdout", "offset": beyond}
        refused = http.refused("runs.read", params, "invalid_argument")
        assert (refused["reason"], refused["total_bytes"]) == ("cursor_ahead", 6)
