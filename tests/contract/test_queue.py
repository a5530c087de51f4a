"""Runs of one session go one after another, those of different sessions side by side, within bounds (1.10, 1.6)."""

import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .fifos import Gate, Lifeline
from .home import Answer, until
from .items import all_items, poll, statuses
from .surface import Http, Surface


def noted(folder: Path, name: object) -> str:
    """A command that leaves its name where it was started."""
    return f"echo {name} >>'{folder}/order'; "


def alone(folder: Path) -> str:
    """A command that fails with 9 where another of its kind is at work."""
    return f"mkdir '{folder}/alone' || exit 9; sleep 0.02; rmdir '{folder}/alone' || exit 9; "


def begun(folder: Path) -> list[str]:
    order = folder / "order"
    return order.read_text().split() if order.exists() else []


@pytest.mark.requirement("1.10", "1.2", "1.3", "9.shell")
def test_a_session_is_a_queue(surface: Surface, tmp_path: Path, gate: Gate) -> None:
    session = f"queue-{surface.name}"
    first = surface.spawn(gate.wait + noted(tmp_path, 1), session_id=session)
    answer = surface.ok(
        "shell",
        {"action": "spawn", "command": noted(tmp_path, 2) + "exit 2", "session_id": session, "timeout_secs": 60},
    )
    second = answer["run_id"]
    assert (answer["status"], answer["session_id"]) == ("queued", session)
    third = surface.spawn(noted(tmp_path, 3), session_id=session)
    assert surface.facts(first)["status"] == "running"
    assert surface.facts(first).get("waiting_for") is None
    for run_id, behind in ((second, {first}), (third, {first, second})):
        for told in (surface.facts(run_id), poll(surface, run_id)):
            assert told["status"] == "queued", told
            assert told["waiting_for"] in behind, told
            assert (told["started_at"], told["finished_at"], told["exit_code"]) == (None, None, None), told
            assert (told["attempt"], told["ended_by"]) == (1, None), told
    listed = surface.ok("runs.list", {"session_id": session, "status": "queued"})["runs"]
    assert {run["run_id"] for run in listed} == {second, third}
    assert begun(tmp_path) == []
    gate.open()
    assert surface.finish(third)["exit_code"] == 0
    assert [surface.facts(run_id)["exit_code"] for run_id in (first, second)] == [0, 2]
    assert begun(tmp_path) == ["1", "2", "3"]
    assert statuses(all_items(surface, second)) == ["queued", "running", "failed"]
    one, two = surface.facts(first), surface.facts(second)
    assert one["finished_at"] <= two["started_at"], (one, two)
    assert two.get("waiting_for") is None


@pytest.mark.requirement("1.10")
def test_first_in_is_first_out(http: Http, tmp_path: Path, gate: Gate) -> None:
    made = [http.spawn(gate.wait, session_id="fifo")]
    made += [http.spawn(noted(tmp_path, n) + alone(tmp_path), session_id="fifo") for n in range(12)]
    gate.open()
    assert [http.finish(run_id)["exit_code"] for run_id in made] == [0] * 13
    assert begun(tmp_path) == [str(n) for n in range(12)]
    facts = [http.facts(run_id) for run_id in made]
    for before, after in itertools.pairwise(facts):
        assert before["finished_at"] <= after["started_at"], (before, after)


@pytest.mark.requirement("1.10")
def test_other_sessions_and_runs_without_one_do_not_wait(http: Http, tmp_path: Path, gate: Gate) -> None:
    holder = http.spawn(gate.wait, session_id="side-0")
    waiting = http.spawn("true", session_id="side-0")
    for params in ({"session_id": "side-1"}, {"session_id": "side-2"}, {}, {}):
        assert http.finish(http.spawn(noted(tmp_path, 0), **params))["status"] == "completed"
    assert http.ok("shell", {"command": "echo now"})["stdout"] == "now\n"
    assert http.facts(waiting)["status"] == "queued"
    gate.open()
    assert http.finish(waiting)["status"] == "completed"
    assert http.facts(holder)["status"] == "completed"


@pytest.mark.requirement("1.10", "1.1")
def test_a_one_shot_takes_its_place_too(surface: Surface, http: Http, tmp_path: Path, gate: Gate) -> None:
    session = f"oneshot-{surface.name}"
    first = surface.spawn(noted(tmp_path, 1) + gate.wait + noted(tmp_path, 2), session_id=session)
    until(lambda: begun(tmp_path) == ["1"], "the first to be at its gate")
    with ThreadPoolExecutor(1) as pool:
        shot = pool.submit(
            surface.call, "shell", {"command": noted(tmp_path, 3) + "echo shot; exit 4", "session_id": session}
        )
        queued: Answer = {"session_id": session, "status": "queued"}
        until(lambda: len(http.ok("runs.list", queued)["runs"]) == 1, "the one-shot to be queued")
        assert not shot.done()
        gate.open()
        answer = shot.result(60)
    assert (answer["stdout"], answer["exit_code"]) == ("shot\n", 4)
    assert begun(tmp_path) == ["1", "2", "3"]
    assert surface.facts(first)["status"] == "completed"


@pytest.mark.requirement("1.10")
@pytest.mark.parametrize(
    ("params", "status"),
    [
        ({"command": "exit 1"}, "failed"),
        ({"command": "true", "cwd": "/no/such/place"}, "failed"),
        ({"command": "kill -KILL $$"}, "failed"),
        ({"command": "exec sleep 1000", "timeout_secs": 1}, "timed_out"),
        ({"command": "sleep 1000 & exit 0"}, "completed"),
    ],
    ids=["fails", "cannot-start", "dies", "timeout", "survivor"],
)
def test_whatever_its_end_a_run_makes_room(http: Http, params: Answer, status: str) -> None:
    session = f"room-{status}-{len(str(params))}"
    first = http.spawn(**params, session_id=session)
    second = http.spawn("echo on", session_id=session)
    assert http.finish(second)["status"] == "completed"
    assert http.facts(first)["status"] == status
    http.ok("runs.kill", {"run_id": first})


@pytest.mark.requirement("1.6", "1.3", "1.10")
@pytest.mark.parametrize("op", ["runs.kill", "shell"])
def test_killing_a_queued_run_never_starts_it(surface: Surface, tmp_path: Path, gate: Gate, op: str) -> None:
    session = f"kill-{op}-{surface.name}"
    first = surface.spawn(gate.wait, session_id=session)
    doomed = surface.spawn(noted(tmp_path, "doomed"), session_id=session)
    third = surface.spawn(noted(tmp_path, "third"), session_id=session)
    assert surface.facts(doomed)["status"] == "queued"
    ask: Answer = {"run_id": doomed, **({"action": "kill"} if op == "shell" else {})}
    for _ in range(3):
        surface.ok(op, ask)
        facts = surface.facts(doomed)
        assert (facts["status"], facts["ended_by"], facts["started_at"]) == ("killed", "kill", None), facts
        assert (facts["exit_code"], facts["signal"], facts["stopping"]) == (None, None, False), facts
    # It is over although the one before it goes on.
    assert surface.finish(doomed, 10_000)["finished_at"] is not None
    assert statuses(all_items(surface, doomed)) == ["queued", "killed"]
    assert surface.facts(first)["status"] == "running"
    assert surface.facts(third)["waiting_for"] == first
    gate.open()
    assert surface.finish(third)["status"] == "completed"
    assert begun(tmp_path) == ["third"]


@pytest.mark.requirement("1.6", "1.3")
def test_the_wait_in_the_queue_is_bounded(http: Http, tmp_path: Path, gate: Gate) -> None:
    first = http.spawn(gate.wait, session_id="bounded")
    late = http.spawn(noted(tmp_path, "late"), session_id="bounded", queue_timeout_secs=0.5)
    patient = http.spawn(noted(tmp_path, "patient"), session_id="bounded", queue_timeout_secs=600)
    facts = http.finish(late)
    assert (facts["status"], facts["ended_by"], facts["started_at"]) == ("timed_out", "timeout", None), facts
    assert (facts["exit_code"], facts["signal"]) == (None, None), facts
    assert facts["finished_at"] - facts["created_at"] >= 500, facts
    assert statuses(all_items(http, late)) == ["queued", "timed_out"]
    assert http.facts(first)["status"] == "running"
    gate.open()
    assert http.finish(patient)["status"] == "completed"
    assert begun(tmp_path) == ["patient"]


@pytest.mark.requirement("1.6", "1.1")
def test_a_one_shot_whose_queue_timeout_is_over(http: Http, gate: Gate, tmp_path: Path) -> None:
    first = http.spawn(gate.wait, session_id="shot")
    params: Answer = {"command": noted(tmp_path, 1), "session_id": "shot", "queue_timeout_secs": 0.3}
    answer = http.ok("shell", params)
    assert (answer["timed_out"], answer["exit_code"], answer["stdout"]) == (True, None, "")
    gate.open()
    http.finish(first)
    assert begun(tmp_path) == []


@pytest.mark.requirement("1.6")
def test_each_clock_counts_its_own_time(http: Http, lifeline: Lifeline, gate: Gate) -> None:
    """A time limit does not run in the queue; a queue timeout does not run once the process does."""
    first = http.spawn(gate.wait, session_id="clocks")
    limited = http.spawn("sleep 0.2; exit 6", session_id="clocks", timeout_secs=1.5)
    until_s = time.monotonic() + 2
    until(lambda: time.monotonic() > until_s, "more time than the limit to pass")
    assert http.facts(limited)["status"] == "queued"
    gate.open()
    assert (http.finish(limited)["status"], http.facts(limited)["exit_code"]) == ("failed", 6)
    assert http.facts(first)["status"] == "completed"
    quick = http.spawn(lifeline.hold + gate.wait + "exit 7", session_id="clocks", queue_timeout_secs=0.5)
    lifeline.word()
    until_s = time.monotonic() + 1
    until(lambda: time.monotonic() > until_s, "more time than the queue timeout to pass")
    assert http.facts(quick)["status"] == "running"
    gate.open()
    assert http.finish(quick)["exit_code"] == 7


@pytest.mark.requirement("1.6", "0.3")
@pytest.mark.parametrize("value", [0, -1, "5", True, float("1e300")])
def test_a_queue_timeout_is_a_positive_number(http: Http, value: object) -> None:
    params: Answer = {"action": "spawn", "command": "true", "queue_timeout_secs": value}
    assert http.refused("shell", params, "invalid_argument").get("field") == "queue_timeout_secs"


@pytest.mark.requirement("0.9", "1.10")
def test_a_key_finds_the_queued_run(surface: Surface, tmp_path: Path, gate: Gate) -> None:
    session = f"keyed-{surface.name}"
    first = surface.spawn(gate.wait, session_id=session)
    request: Answer = {"command": noted(tmp_path, 1), "session_id": session, "key": f"queued-{surface.name}"}
    made = {surface.spawn(**request) for _ in range(3)}
    assert len(made) == 1
    (run_id,) = made
    assert surface.facts(run_id)["status"] == "queued"
    taken: Answer = {"action": "spawn", **request, "queue_timeout_secs": 5}
    surface.refused("shell", taken, "conflict")
    gate.open()
    assert surface.finish(run_id)["status"] == "completed"
    assert surface.spawn(**request) == run_id
    assert begun(tmp_path) == ["1"]
    assert surface.facts(first)["status"] == "completed"
