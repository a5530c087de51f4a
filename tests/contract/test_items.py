"""What poll and log show of a run: items in order, cursors that miss and repeat nothing, a tail of it all (1.4)."""

import json
from typing import Any

import pytest

from .fifos import Gate, Lifeline
from .home import Answer, until
from .items import (
    CHUNK_MAX_CHARS,
    LIMIT_MAX,
    SNIPPET_MAX_CHARS,
    all_items,
    checked_items,
    log,
    poll,
    statuses,
    text_of,
)
from .surface import Http, Surface

POLLED = {
    "ok", "run_id", "session_id", "command", "status", "exit_code", "signal", "ended_by", "attempt", "truncated",
    "error_message", "created_at", "started_at", "finished_at", "snippet", "items", "next_seq", "has_more",
}  # fmt: skip
LOGGED = {"ok", "items", "next_seq", "has_more"}


def finished(surface: Surface, command: str, **params: Any) -> str:
    run_id = surface.spawn(command, **params)
    surface.finish(run_id)
    return run_id


@pytest.mark.requirement("1.4", "1.2", "0.2")
def test_what_poll_and_log_answer(surface: Surface) -> None:
    run_id = finished(surface, "echo out; echo err >&2; exit 3", session_id=f"poll-{surface.name}")
    told = poll(surface, run_id)
    assert set(told) >= POLLED
    expected = {
        "run_id": run_id,
        "session_id": f"poll-{surface.name}",
        "command": "echo out; echo err >&2; exit 3",
        "status": "failed",
        "exit_code": 3,
        "signal": None,
        "ended_by": "self",
        "attempt": 1,
        "truncated": False,
        "has_more": False,
    }
    assert {name: told[name] for name in expected} == expected
    facts = surface.facts(run_id)
    for name in ("created_at", "started_at", "finished_at", "error_message"):
        assert told[name] == facts[name], name
    logged = log(surface, run_id)
    assert set(logged) >= LOGGED
    assert logged["items"] == told["items"] == all_items(surface, run_id)
    assert logged["next_seq"] == told["next_seq"] == told["items"][-1]["seq"]


@pytest.mark.requirement("1.4", "1.3", "0.8")
@pytest.mark.parametrize(
    ("command", "status"), [("true", "completed"), ("exit 9", "failed"), ("exec sleep 1000", "timed_out")]
)
def test_the_statuses_come_in_order_around_the_output(http: Http, command: str, status: str) -> None:
    run_id = finished(http, f"echo begin; {command}", timeout_secs=2 if status == "timed_out" else 60)
    items = all_items(http, run_id)
    assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
    # A run that did not wait may have been queued for a moment.
    assert statuses(items) in (["queued", "running", status], ["running", status])
    kinds = [item["kind"] for item in items]
    assert kinds[-1] == "status"
    assert kinds.index("output") > next(
        place for place, item in enumerate(items) if item.get("data") == {"status": "running"}
    )
    assert all(set(item) >= {"seq", "ts", "kind"} for item in items)


@pytest.mark.requirement("1.4", "1.3")
def test_a_run_that_cannot_start_has_its_statuses(http: Http) -> None:
    run_id = finished(http, "true", cwd="/no/such/place")
    told = poll(http, run_id)
    assert (told["status"], told["started_at"], told["exit_code"]) == ("failed", None, None), told
    assert "/no/such/place" in told["error_message"]
    assert statuses(told["items"])[-1] == "failed"
    assert "running" not in statuses(told["items"])


@pytest.mark.requirement("1.4")
@pytest.mark.parametrize("limit", [1, 2, 7, 1000])
def test_pages_of_any_size_are_the_same_items(surface: Surface, limit: int) -> None:
    if surface.name == "cli" and limit < 7:
        limit = 50  # each page is a process
    run_id = finished(surface, "seq 1 30000; seq 1 3000 >&2; echo end")
    items = all_items(surface, run_id)
    assert len(items) > 20
    assert all_items(surface, run_id, limit=limit) == items
    assert text_of(items) == "".join(f"{n}\n" for n in range(1, 30_001)) + "end\n"
    assert text_of(items, "stderr") == "".join(f"{n}\n" for n in range(1, 3_001))
    # From the middle, exclusive of the item named.
    middle = items[len(items) // 2]["seq"]
    assert all_items(surface, run_id, since_seq=middle) == items[middle:]
    page = poll(surface, run_id, since_seq=middle)
    assert page["items"] == items[middle:][: len(page["items"])]
    # Over MCP a page is bounded in bytes, too.
    assert page["has_more"] == (surface.name == "mcp" and len(page["items"]) < len(items[middle:]))


@pytest.mark.requirement("1.4")
def test_the_limit_has_a_default_and_a_cap(http: Http) -> None:
    run_id = finished(http, "seq 1 2000000", max_output_bytes=1 << 24)
    items = all_items(http, run_id)
    assert len(items) > LIMIT_MAX
    assert log(http, run_id)["items"] == items[:200]
    assert log(http, run_id, limit=5)["items"] == items[:5]
    assert log(http, run_id, limit=10_000_000)["items"] == items[:LIMIT_MAX]
    first = poll(http, run_id)
    assert (first["has_more"], first["items"]) == (True, items[: first["next_seq"]])
    assert 0 < len(first["items"]) <= LIMIT_MAX
    assert text_of(items) == "".join(f"{n}\n" for n in range(1, 2_000_001))


@pytest.mark.requirement("1.4", "0.7")
def test_a_stream_is_selected_before_the_limit_counts(surface: Surface) -> None:
    run_id = finished(surface, "for n in 1 2 3; do echo out$n; sleep 0.05; echo err$n >&2; sleep 0.05; done")
    items = all_items(surface, run_id)
    for stream in ("stdout", "stderr"):
        chosen = [item for item in items if item.get("stream") == stream]
        word = stream[-3:]
        assert text_of(items, stream) == f"{word}1\n{word}2\n{word}3\n"
        page = log(surface, run_id, stream=stream)
        assert page["items"] == chosen
        # Past what it hid too: nothing is left to ask for.
        assert (page["next_seq"], page["has_more"]) == (items[-1]["seq"], False), page
        one = log(surface, run_id, stream=stream, limit=1)
        assert (one["items"], one["has_more"]) == (chosen[:1], True), one
        assert all_items(surface, run_id, limit=1, stream=stream) == chosen


@pytest.mark.requirement("1.4", "9.common", "0.3", "0.7")
@pytest.mark.parametrize("action", ["poll", "log"])
def test_a_cursor_beyond_the_end_is_refused(http: Http, action: str) -> None:
    run_id = finished(http, "echo out")
    last = all_items(http, run_id)[-1]["seq"]
    at_end = http.ok("shell", {"action": action, "run_id": run_id, "since_seq": last})
    assert (at_end["items"], at_end["next_seq"], at_end["has_more"]) == ([], last, False)
    for since_seq in (last + 1, 1 << 40, -1, "1", True, 1.5):
        params: Answer = {"action": action, "run_id": run_id, "since_seq": since_seq}
        assert "since_seq" in json.dumps(http.refused("shell", params, "invalid_argument"))


@pytest.mark.requirement("1.4", "0.3")
@pytest.mark.parametrize(
    "params",
    [
        {"action": "log", "limit": 0},
        {"action": "log", "limit": -1},
        {"action": "log", "limit": "5"},
        {"action": "log", "stream": "stdin"},
        {"action": "log", "stream": 1},
        {"action": "nosuch"},
    ],
    ids=str,
)
def test_log_is_strict(http: Http, params: Answer) -> None:
    run_id = finished(http, "echo out")
    field = [name for name in params if name != "action"] or ["action"]
    refused = http.refused("shell", {"run_id": run_id, **params}, "invalid_argument")
    assert field[0] in json.dumps(refused), refused


@pytest.mark.requirement("1.2", "0.3")
@pytest.mark.parametrize("action", ["poll", "log", "kill"])
def test_an_action_needs_a_run_that_is_there(surface: Surface, action: str) -> None:
    assert "run_id" in json.dumps(surface.refused("shell", {"action": action}, "invalid_argument"))
    surface.refused("shell", {"action": action, "run_id": "nosuch"}, "not_found")


@pytest.mark.requirement("1.4", "0.5")
def test_no_item_splits_a_character_or_is_too_long(http: Http) -> None:
    """Characters of 1 to 4 bytes at every offset within an item, and bytes that are none."""
    line = "aé€🐚" * 5000
    run_id = finished(http, f"printf %s '{line}'; printf '\\377\\360\\237'; printf '{line[:9]}'")
    items = all_items(http, run_id)
    texts = [item["text"] for item in items if item["kind"] == "output"]
    assert max(map(len, texts)) <= CHUNK_MAX_CHARS
    told = "".join(texts)
    assert told.startswith(line)
    assert told.endswith(line[:9])
    between = told[len(line) : -9]
    assert between == "�" * len(between)
    assert 1 <= len(between) <= 3


@pytest.mark.requirement("0.5", "1.4")
def test_a_character_that_comes_in_two_writes_is_one(http: Http, gate: Gate) -> None:
    run_id = http.spawn("printf 'a\\360\\237'; " + gate.wait + "printf '\\220\\232b'")
    until(lambda: "a" in text_of(all_items(http, run_id)), "the first half")
    assert text_of(all_items(http, run_id)) == "a"
    gate.open()
    http.finish(run_id)
    assert text_of(all_items(http, run_id)) == "a🐚b"


@pytest.mark.requirement("1.4")
def test_the_snippet_is_the_tail_of_both_streams_as_they_came(surface: Surface, gate: Gate) -> None:
    run_id = surface.spawn(
        "printf one; sleep 0.2; printf two >&2; sleep 0.2; printf three; " + gate.wait + "seq 1 9999"
    )
    until(lambda: "three" in poll(surface, run_id)["snippet"], "the third word")
    assert poll(surface, run_id)["snippet"] == "onetwothree"
    gate.open()
    surface.finish(run_id)
    told = poll(surface, run_id)
    whole = "onetwothree" + "".join(f"{n}\n" for n in range(1, 10_000))
    assert told["snippet"] == whole[-SNIPPET_MAX_CHARS:]
    # Wherever the caller's cursor is.
    assert poll(surface, run_id, since_seq=told["next_seq"])["snippet"] == told["snippet"]


@pytest.mark.requirement("1.4", "0.5")
def test_the_snippet_counts_characters(http: Http) -> None:
    run_id = finished(http, "printf %s '" + "é🐚" * 3000 + "'")
    assert poll(http, run_id)["snippet"] == "é🐚" * (SNIPPET_MAX_CHARS // 2)


@pytest.mark.requirement("1.4", "1.6")
def test_poll_and_log_do_not_wait(surface: Surface, gate: Gate) -> None:
    answer = surface.ok("shell", {"action": "spawn", "command": "printf here; " + gate.wait + "echo there"})
    run_id, cursor = answer["run_id"], answer["next_seq"]
    until(lambda: poll(surface, run_id)["snippet"] == "here", "the first word")
    told = poll(surface, run_id)
    assert (told["status"], told["exit_code"], told["finished_at"]) == ("running", None, None)
    assert text_of(all_items(surface, run_id)) == "here"
    later = poll(surface, run_id, since_seq=told["next_seq"])
    assert (later["items"], later["next_seq"], later["has_more"]) == ([], told["next_seq"], False)
    gate.open()
    surface.finish(run_id)
    rest = poll(surface, run_id, since_seq=told["next_seq"])["items"]
    assert text_of(rest) == "there\n"
    assert checked_items(told["items"]) + checked_items(rest) == all_items(surface, run_id)
    # The cursor of the spawn counts as one of these.
    assert all_items(surface, run_id)[cursor:] == all_items(surface, run_id, since_seq=cursor)


@pytest.mark.requirement("0.8", "1.4")
def test_what_survivors_write_is_no_item(http: Http, lifeline: Lifeline, gate: Gate) -> None:
    run_id = http.spawn(lifeline.hold + f"({gate.wait} echo late) & echo now")
    http.finish(run_id)
    before = all_items(http, run_id)
    gate.open()
    assert lifeline.gone(30)
    assert http.read(run_id, offset=4, wait_ms=60_000)["data"] == "late\n"
    assert all_items(http, run_id) == before
    assert text_of(before) == "now\n"
    assert (poll(http, run_id)["snippet"], before[-1]["kind"]) == ("now\n", "status")
