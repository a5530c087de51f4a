"""Runs in general: found by their facts, page by page, read from either end, waited for, killed, signalled (0.11)."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from .fifos import Gate, Lifeline
from .home import Answer
from .surface import Http, Surface


def ids(answer: Answer) -> list[str]:
    return [run["run_id"] for run in answer["runs"]]


def listed(surface: Surface, **filters: Any) -> set[str]:
    found = ids(surface.ok("runs.list", {"limit": 1000, **filters}))
    assert len(found) == len(set(found))
    return set(found)


def next_cursor(answer: Answer) -> Any:
    return answer.get("next_cursor") or answer.get("cursor")


def wait(surface: Surface, run_ids: Sequence[str], timeout_ms: int = 60_000) -> Answer:
    return surface.call("runs.wait", {"run_ids": list(run_ids), "for": [{"exit": True}], "timeout_ms": timeout_ms})


@pytest.mark.requirement("0.11")
def test_list_filters_by_session_label_and_text(surface: Surface) -> None:
    name = f"list-{surface.name}"
    one = surface.spawn(f"true {name} one", session_id=name, labels=[f"{name}-red", "big"])
    two = surface.spawn(f"true {name} two", session_id=name, labels=[f"{name}-blue"])
    other = surface.spawn(f"true {name} other", session_id=f"{name}-other")
    for run_id in (one, two, other):
        surface.finish(run_id)
    assert listed(surface, session_id=name) == {one, two}
    assert listed(surface, label=f"{name}-red") == {one}
    assert listed(surface, label=f"{name}-blue") == {two}
    assert listed(surface, label=name) == set()
    assert listed(surface, text=f"{name} o") == {one, other}
    assert listed(surface, text=f"{name} two", session_id=name, label=f"{name}-blue") == {two}
    assert listed(surface, text=f"{name} two", label=f"{name}-red") == set()
    assert listed(surface, session_id=f"{name}-nobody") == set()


@pytest.mark.requirement("0.11")
def test_text_is_literal(http: Http) -> None:
    run_id = http.spawn("echo 100%_done [a-z]* \\d 'é' list-literal")
    http.finish(run_id)
    assert listed(http, text="0%_done [a-z]* \\d 'é' list-literal") == {run_id}
    assert run_id not in listed(http, text="%d_ne")
    assert listed(http, text="echo.*list-literal") == set()


@pytest.mark.requirement("0.11", "1.3")
def test_list_filters_by_status_and_dialect(http: Http, gate: Gate) -> None:
    made = {
        "completed": http.spawn("true", labels=["status"]),
        "failed": http.spawn("false", labels=["status"]),
        "killed": http.spawn("exec sleep 1000", labels=["status"]),
        "timed_out": http.spawn("exec sleep 1000", labels=["status"], timeout_secs=1),
        "running": http.spawn("echo on; " + gate.wait, labels=["status"]),
    }
    http.ok("runs.kill", {"run_id": made["killed"]})
    for status in ("completed", "failed", "killed", "timed_out"):
        http.finish(made[status])
    http.read(made["running"], wait_ms=60_000)
    for status, run_id in made.items():
        assert listed(http, label="status", status=status) == {run_id}, status
    assert listed(http, label="status", dialect="shell") == set(made.values())
    assert listed(http, label="status", dialect="pty") == set()
    gate.open()
    http.finish(made["running"])
    assert listed(http, label="status", status="running") == set()


@pytest.mark.requirement("0.11")
@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_list_pages_hold_every_run_once(http: Http, limit: int) -> None:
    label = f"paged-{limit}"
    made = [http.spawn("true", labels=[label]) for _ in range(7)]
    found: list[str] = []
    answer = http.ok("runs.list", {"label": label, "limit": limit})
    for _ in range(10):
        assert len(answer["runs"]) <= limit
        found += ids(answer)
        cursor = next_cursor(answer)
        if cursor is None:
            break
        # What starts meanwhile shifts no page.
        http.spawn("true", labels=["elsewhere"])
        answer = http.ok("runs.list", {"label": label, "limit": limit, "cursor": cursor})
    assert sorted(found) == made
    assert found in (made, made[::-1])


@pytest.mark.requirement("0.11", "0.3")
def test_a_cursor_that_list_never_gave(http: Http) -> None:
    for cursor in ("nonsense", "-1", "\0", 5, True):
        http.refused("runs.list", {"cursor": cursor}, "invalid_argument")


@pytest.mark.requirement("0.1", "0.6", "0.11")
def test_get_tells_the_facts(surface: Surface) -> None:
    run_id = surface.spawn("echo out", session_id=f"get-{surface.name}", labels=["a", "b"], cwd="/")
    facts = surface.finish(run_id)
    expected = {
        "run_id": run_id,
        "command": "echo out",
        "session_id": f"get-{surface.name}",
        "labels": ["a", "b"],
        "cwd": "/",
        "status": "completed",
        "dialect": "shell",
    }
    assert {name: facts.get(name) for name in expected} == expected
    times = [facts[name] for name in ("created_at", "started_at", "finished_at")]
    assert all(type(moment) is int for moment in times), times
    assert times == sorted(times)
    assert times[0] > 1_700_000_000_000
    row = surface.ok("runs.list", {"session_id": f"get-{surface.name}"})["runs"][0]
    # What is durable may grow between two answers.
    same = (set(row) & set(facts)) - {"durable_offset", "streams"}
    assert same >= set(expected)
    assert {name: row[name] for name in same} == {name: facts[name] for name in same}


@pytest.mark.requirement("0.11")
def test_read_from_the_end(surface: Surface) -> None:
    run_id = surface.ok("shell", {"command": "seq 1 1000"})["run_id"]
    whole = "".join(f"{n}\n" for n in range(1, 1001))
    base: Answer = {"run_id": run_id, "stream": "stdout"}
    for params, expected in (
        ({"last_lines": 3}, "998\n999\n1000\n"),
        ({"last_lines": 1}, "1000\n"),
        ({"last_lines": 5000}, whole),
        ({"last_bytes": 7}, whole[-7:]),
        ({"last_bytes": 1 << 30}, whole),
    ):
        page = surface.ok("runs.read", {**base, **params})
        assert page["data"] == expected, params
        assert page["offset_bytes"] == len(whole) - len(expected), params
        assert (page["next_offset"], page["total_bytes"], page["eof"]) == (len(whole), len(whole), True), params


@pytest.mark.requirement("0.5", "0.11")
def test_read_from_the_end_splits_no_character(http: Http) -> None:
    run_id = http.ok("shell", {"command": "printf 'aé🐚b\\nlast without newline é'"})["run_id"]
    whole = "aé🐚b\nlast without newline é"
    base: Answer = {"run_id": run_id, "stream": "stdout"}
    assert http.ok("runs.read", {**base, "last_lines": 1})["data"] == "last without newline é"
    for last_bytes in range(1, len(whole.encode()) + 1):
        page = http.ok("runs.read", {**base, "last_bytes": last_bytes})
        assert whole.endswith(page["data"]), page
        assert page["next_offset"] - page["offset_bytes"] == len(page["data"].encode()), page


@pytest.mark.requirement("0.3", "0.11")
@pytest.mark.parametrize("params", [{"last_lines": -1}, {"last_bytes": "7"}, {"last_lines": True}, {"last_bytes": 1.5}])
def test_read_from_the_end_is_strict(http: Http, params: Answer) -> None:
    run_id = http.ok("shell", {"command": "true"})["run_id"]
    refused = http.refused("runs.read", {"run_id": run_id, "stream": "stdout", **params}, "invalid_argument")
    assert next(iter(params)) in json.dumps(refused)


@pytest.mark.requirement("0.11", "1.6")
def test_kill_is_idempotent(surface: Surface, lifeline: Lifeline) -> None:
    run_id = surface.spawn(lifeline.hold + "exec sleep 1000")
    lifeline.word()
    for _ in range(3):
        surface.ok("runs.kill", {"run_id": run_id})
    facts = surface.finish(run_id)
    assert facts["status"] == "killed"
    surface.ok("runs.kill", {"run_id": run_id})
    again = surface.facts(run_id)
    assert {name: again[name] for name in ("status", "signal", "ended_by", "finished_at")} == {
        name: facts[name] for name in ("status", "signal", "ended_by", "finished_at")
    }


@pytest.mark.requirement("0.11", "1.6")
def test_kill_after_the_end_changes_nothing(surface: Surface) -> None:
    ran = surface.ok("shell", {"command": "exit 4"})
    surface.ok("runs.kill", {"run_id": ran["run_id"]})
    facts = surface.facts(ran["run_id"])
    assert (facts["status"], facts["exit_code"], facts["ended_by"]) == ("failed", 4, "self")


@pytest.mark.requirement("0.8", "0.11")
def test_kill_may_begin_with_another_signal(surface: Surface, lifeline: Lifeline) -> None:
    run_id = surface.spawn("trap 'exit 7' INT; " + lifeline.hold + "while :; do sleep 0.05; done")
    lifeline.word()
    surface.ok("runs.kill", {"run_id": run_id, "signal": "SIGINT"})
    facts = surface.finish(run_id)
    assert (facts["status"], facts["exit_code"], facts["signal"], facts["ended_by"]) == ("killed", 7, None, "kill")


@pytest.mark.requirement("0.11")
def test_signal_sends_that_one_and_no_more(surface: Surface, lifeline: Lifeline) -> None:
    run_id = surface.spawn(
        "trap 'echo usr' USR1; trap 'exit 8' TERM; " + lifeline.hold + "while :; do sleep 0.05; done"
    )
    lifeline.word()
    surface.ok("runs.signal", {"run_id": run_id, "signal": "SIGUSR1"})
    assert surface.read(run_id, wait_ms=60_000)["data"].startswith("usr\n")
    facts = surface.facts(run_id)
    assert (facts["status"], facts.get("stopping", False)) == ("running", False)
    surface.ok("runs.signal", {"run_id": run_id, "signal": "SIGTERM"})
    facts = surface.finish(run_id)
    assert (facts["exit_code"], facts["signal"]) == (8, None)


@pytest.mark.requirement("0.11")
def test_wait_says_which_run_ended(surface: Surface, lifeline: Lifeline, gate: Gate) -> None:
    slow = surface.spawn(lifeline.hold + "exec sleep 1000")
    quick = surface.spawn(gate.wait + "exit 3")
    assert wait(surface, [slow, quick], 50)["error"] == "timeout"
    gate.open()
    answer = wait(surface, [slow, quick])
    assert answer["ok"] is True
    assert answer["run_id"] == quick, answer
    # And from now on at once, in any order of asking.
    assert wait(surface, [quick, slow], 10_000)["run_id"] == quick
    assert wait(surface, [slow], 50)["error"] == "timeout"
    surface.ok("runs.kill", {"run_id": slow})
    assert wait(surface, [slow])["run_id"] == slow
    assert lifeline.gone(30)


@pytest.mark.requirement("0.11")
def test_wait_of_nothing_at_all_answers_at_once(http: Http, gate: Gate) -> None:
    run_id = http.spawn(gate.wait)
    assert wait(http, [run_id], 0)["error"] == "timeout"
    gate.open()
    assert wait(http, [run_id])["ok"] is True
