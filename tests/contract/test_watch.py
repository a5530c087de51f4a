"""A watcher's hit becomes an event item with what matched and where; each stream is by itself (1.8, 1.4, 1.9)."""

import pytest

from .fifos import Gate, Lifeline
from .hits import HIT_FIELDS, Hit, feed, hit_of, hits, watch
from .home import Answer, until
from .items import all_items, checked_items, events, poll, statuses
from .surface import Http, Surface


@pytest.mark.requirement("1.8", "1.4", "0.2")
def test_a_match_becomes_an_event_item(surface: Surface) -> None:
    watchers = [watch("port [0-9]+;", "up"), watch("nosuch", "never")]
    run_id = surface.spawn("echo 'é on port 8080; go'; echo 'port 9;' >&2; exit 3", watch=watchers)
    assert surface.finish(run_id)["exit_code"] == 3
    items = all_items(surface, run_id)
    told = events(items, "up")
    assert len(told) == 2, items
    assert all(set(data) >= HIT_FIELDS for data in told)
    by_stream = {data["stream"]: data for data in told}
    assert (hit_of(by_stream["stdout"]), by_stream["stdout"]["line"]) == (
        Hit(6, 16, "port 8080;"),
        "é on port 8080; go",
    )
    assert (hit_of(by_stream["stderr"]), by_stream["stderr"]["line"]) == (Hit(0, 7, "port 9;"), "port 9;")
    assert surface.bytes_of(run_id)[6:16] == b"port 8080;"
    assert events(items, "never") == []
    # An item like any other: by poll too, and nothing behind the end.
    assert poll(surface, run_id)["items"] == items
    assert (items[-1]["kind"], statuses(items)[-1]) == ("status", "failed")


@pytest.mark.requirement("1.8", "1.2")
def test_a_waited_for_spawn_answers_with_its_events(surface: Surface) -> None:
    answer = surface.ok(
        "shell", {"action": "spawn", "command": "echo ready", "background": False, "watch": [watch("ready")]}
    )
    (data,) = events(checked_items(answer["items"]), "hit")
    assert hit_of(data) == Hit(0, 5, "ready")


@pytest.mark.requirement("1.8")
def test_a_hit_is_there_while_the_run_goes_on(surface: Surface, gate: Gate) -> None:
    """The line is the whole line that the match stands on, as far as it is written when the answer is read."""
    run_id = surface.spawn(
        f"printf 'one\\ntwo NEEDLE, '; {gate.wait} echo and more; echo three", watch=[watch("NEEDLE")]
    )
    until(lambda: hits(surface, run_id) == [Hit(8, 14, "NEEDLE")], "the hit")
    (data,) = events(all_items(surface, run_id), "hit")
    assert data["line"] == "two NEEDLE, "
    gate.open()
    surface.finish(run_id)
    (later,) = events(all_items(surface, run_id), "hit")
    assert later == {**data, "line": "two NEEDLE, and more"}


@pytest.mark.requirement("1.8")
@pytest.mark.parametrize(
    ("scope", "streams"), [("any", {"stdout", "stderr"}), ("stdout", {"stdout"}), ("stderr", {"stderr"})]
)
def test_a_scope_chooses_streams(http: Http, scope: str, streams: set[str]) -> None:
    run_id = http.spawn("echo it; echo it >&2", watch=[watch("it", scope=scope)])
    http.finish(run_id)
    told = events(all_items(http, run_id), "hit")
    assert len(told) == len(streams)
    assert {data["stream"] for data in told} == streams


@pytest.mark.requirement("1.8")
def test_each_stream_is_by_itself(http: Http) -> None:
    """A word whose halves come in two streams is in neither; one that is cut by the other stream is whole."""
    command = "printf nee; sleep 0.1; printf dle >&2; sleep 0.1; printf dle; sleep 0.1; printf ' needle' >&2"
    run_id = http.spawn(command, watch=[watch("needle")])
    http.finish(run_id)
    assert hits(http, run_id) == [Hit(0, 6, "needle")]
    assert hits(http, run_id, stream="stderr") == [Hit(4, 10, "needle")]


@pytest.mark.requirement("1.8")
@pytest.mark.parametrize("once", [True, False])
def test_once(http: Http, once: bool) -> None:
    run_id = http.spawn("for n in 1 2 3; do echo it$n; done", watch=[watch("it[0-9]", once=once)])
    http.finish(run_id)
    assert [hit.match for hit in hits(http, run_id)] == (["it1"] if once else ["it1", "it2", "it3"])


@pytest.mark.requirement("1.8")
def test_watchers_do_not_hide_matches_from_each_other(http: Http) -> None:
    """Two with the same pattern, and one whose matches overlap theirs."""
    watchers = [watch("abc", "first"), watch("abc", "second"), watch("bcd", "third")]
    run_id = http.spawn("printf 'abcd abcd'", watch=watchers)
    http.finish(run_id)
    for event, offset in (("first", 0), ("second", 0), ("third", 1)):
        assert [hit.start for hit in hits(http, run_id, event)] == [offset, offset + 5], event


@pytest.mark.requirement("1.8", "1.5", "1.4")
def test_matches_are_found_past_what_becomes_items(surface: Surface) -> None:
    run_id = surface.spawn(
        "seq 1 20000; echo NEEDLE", max_output_bytes=1000, watch=[watch("NEEDLE"), watch("^20\n", "early")]
    )
    surface.finish(run_id)
    items = all_items(surface, run_id)
    whole = surface.bytes_of(run_id)
    start = whole.index(b"NEEDLE")
    assert [hit_of(data) for data in events(items, "hit")] == [Hit(start, start + 6, "NEEDLE")]
    assert len(events(items, "early")) == len(events(items, "output_capped")) == 1
    assert sum(len(item["text"]) for item in items if item["kind"] == "output") <= 1000


@pytest.mark.requirement("1.8", "0.5")
def test_the_output_of_a_terminal_is_one_stream(http: Http) -> None:
    """Spans count in the spool, where CR LF is folded."""
    run_id = http.spawn("printf 'one\\ntwo\\n' >&2; echo three", pty=True, watch=[watch("^t[a-z]+\n")])
    http.finish(run_id)
    assert hits(http, run_id, stream="pty") == [Hit(4, 8, "two\n"), Hit(8, 14, "three\n")]


@pytest.mark.requirement("0.8", "1.8")
def test_what_survivors_write_is_no_hit(http: Http, lifeline: Lifeline, gate: Gate) -> None:
    """Neither what comes after the end, nor a match that begins before it and is complete only behind it."""
    run_id = http.spawn(lifeline.hold + f"({gate.wait} echo dle needle) & printf 'needle nee'", watch=[watch("needle")])
    http.finish(run_id)
    before = all_items(http, run_id)
    assert hits(http, run_id) == [Hit(0, 6, "needle")]
    gate.open()
    assert lifeline.gone(30)
    assert http.read(run_id, offset=10, wait_ms=60_000)["data"] == "dle needle\n"
    assert all_items(http, run_id) == before


@pytest.mark.requirement("1.8", "0.9")
def test_watchers_are_part_of_the_request(http: Http) -> None:
    request: Answer = {"action": "spawn", "command": "echo it", "key": "watched", "watch": [watch("it")]}
    run_id = http.ok("shell", request)["run_id"]
    assert http.ok("shell", request)["run_id"] == run_id
    http.refused("shell", {**request, "watch": [watch("at")]}, "conflict")
    http.refused("shell", {**request, "watch": []}, "conflict")
    http.finish(run_id)
    assert hits(http, run_id) == [Hit(0, 2, "it")]


@pytest.mark.requirement("1.8", "3.5")
def test_a_match_is_found_wherever_its_pieces_fall(http: Http) -> None:
    """Byte by byte, and over more output than is ever read at once."""
    run_id = http.spawn("exec cat", stdin="open", watch=[watch("🐚 n[a-z]+le;")])
    text = "x🐚 needle;y".encode()
    feed(http, run_id, [text[n : n + 1] for n in range(len(text))], close=False)
    feed(http, run_id, [b"." * (3 << 20), text])
    http.finish(run_id)
    second = len(text) + (3 << 20) + 1
    assert hits(http, run_id) == [Hit(1, 13, "🐚 needle;"), Hit(second, second + 12, "🐚 needle;")]
