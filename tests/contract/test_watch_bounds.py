"""No watcher stalls anything: hostile patterns, hostile output, more hits than a run takes (1.8, F70)."""

import time

import pytest

from .hits import SUPPRESSED, Hit, hits, wait, watch
from .items import all_items, events
from .surface import Http

# Each of these takes a backtracking engine longer than the world has.
HOSTILE = ["(a+)+$", "([a-z]+)+;", "(a|aa)+;", "(a|a)*b;", r"^(([a-z])+.)+[A-Z]([a-z])+;"]
NEARLY = "a" * 100_000 + "!\n"
EVENTS_MAX = 1000


@pytest.mark.requirement("1.8", "3.5", "F70")
@pytest.mark.parametrize("match_type", ["regex", "line"])
@pytest.mark.parametrize("pattern", HOSTILE)
def test_a_hostile_pattern_stalls_nothing(http: Http, pattern: str, match_type: str) -> None:
    """While it is at work, every other answer comes at once; and it finds what there is."""
    run_id = http.spawn("exec cat", stdin=NEARLY * 5 + "aaa\nab;\n", watch=[watch(pattern, match_type=match_type)])
    begun = time.monotonic()
    slowest_s = 0.0
    while http.facts(run_id)["finished_at"] is None:
        asked = time.monotonic()
        http.ok("runs.list", {"limit": 1})
        slowest_s = max(slowest_s, time.monotonic() - asked)
        assert time.monotonic() - begun < 60
    assert slowest_s < 3
    assert len(http.bytes_of(run_id)) == 5 * len(NEARLY) + 8
    at = 5 * len(NEARLY)
    expected = {
        "(a+)+$": [Hit(at, at + 3, "aaa")],
        "([a-z]+)+;": [Hit(at + 4, at + 7, "ab;")],
        "(a|a)*b;": [Hit(at + 4, at + 7, "ab;")],
    }
    assert hits(http, run_id) == expected.get(pattern, [])


@pytest.mark.requirement("0.11", "3.5", "F70")
@pytest.mark.parametrize("match_type", ["regex", "line"])
def test_a_hostile_pattern_stalls_no_wait(http: Http, match_type: str) -> None:
    run_id = http.spawn("exec cat", stdin=NEARLY * 5)
    condition = {"regex": "(a+)+b|(a|aa)+;", "match_type": match_type}
    assert wait(http, [run_id], condition, {"exit": True})["met"] == {"exit": True}


@pytest.mark.requirement("0.11", "F70")
def test_a_hostile_pattern_stalls_no_search(http: Http) -> None:
    run_id = http.ok("shell", {"command": "exec cat", "stdin": NEARLY * 5, "max_output_bytes": 1})["run_id"]
    assert http.ok("runs.search", {"regex": "(a+)+b|(a|aa)+;", "run_id": run_id})["hits"] == []


@pytest.mark.requirement("1.8", "0.7")
def test_a_thousand_events_and_then_one_that_says_so(http: Http) -> None:
    """The bound is each watcher's own: the other one still has its hit behind it all."""
    watchers = [watch("^[0-9]+\n", "line"), watch("^3000\n", "last")]
    run_id = http.spawn("seq 1 3000", watch=watchers)
    http.finish(run_id)
    items = all_items(http, run_id)
    assert [data["match"] for data in events(items, "line")] == [f"{n}\n" for n in range(1, EVENTS_MAX + 1)]
    (told,) = [item for item in items if item.get("event") == SUPPRESSED]
    assert "line" in str(told["data"]), told
    thousandth = [item["seq"] for item in items if item.get("event") == "line"][-1]
    assert told["seq"] > thousandth
    assert len(events(items, "last")) == 1


@pytest.mark.requirement("1.8", "0.7")
def test_a_thousand_events_alone_are_not_too_many(http: Http) -> None:
    run_id = http.spawn(f"seq 1 {EVENTS_MAX}", watch=[watch("^[0-9]+\n")])
    http.finish(run_id)
    items = all_items(http, run_id)
    assert len(events(items, "hit")) == EVENTS_MAX
    assert events(items, SUPPRESSED) == []


@pytest.mark.requirement("1.8", "0.5", "F70")
def test_the_spool_is_whole_under_many_watchers(http: Http) -> None:
    watchers = [watch(f"(x|{n})+;{n};", f"w{n}") for n in range(20)] + [watch("2000000\n", "end")]
    run_id = http.spawn("seq 1 2000000", watch=watchers)
    http.finish(run_id)
    assert http.bytes_of(run_id) == "".join(f"{n}\n" for n in range(1, 2_000_001)).encode()
    assert len(hits(http, run_id, "end")) == 1
