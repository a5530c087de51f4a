"""runs.wait for a match in the output: which run, which condition, nothing missed or repeated between calls (0.11)."""

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from .fifos import Gate
from .hits import WAIT_HIT, Hit, chain, feed, hit_of, names, timed_out, wait, wait_params, waited
from .home import Answer
from .surface import Http, Surface


@pytest.mark.requirement("0.11", "3.5", "0.2")
def test_a_match_is_waited_for(surface: Surface, gate: Gate) -> None:
    run_id = surface.spawn(f"echo one; {gate.wait} echo 'é ready; now'; {gate.wait} exit 3")
    condition: Answer = {"regex": "ready;"}
    timed_out(surface, [run_id], condition)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait, surface, [run_id], {"regex": "nosuch"}, condition, {"exit": True})
        gate.open()
        answer = waiting.result(60)
    assert (answer["run_id"], answer["met"], answer["run"]["status"]) == (run_id, condition, "running")
    assert (waited(answer), answer[WAIT_HIT]["stream"]) == (Hit(7, 13, "ready;"), "stdout")
    gate.open()
    assert wait(surface, [run_id], {"exit": True})["run"]["exit_code"] == 3
    # Without a cursor it is asked from the first byte: what is there already holds at once.
    assert waited(wait(surface, [run_id], condition, timeout_ms=0)) == Hit(7, 13, "ready;")


@pytest.mark.requirement("0.11")
def test_of_several_runs_the_one_that_says_it(surface: Surface, gate: Gate) -> None:
    silent = surface.spawn("echo other; exec sleep 1000")
    speaker = surface.spawn(f"{gate.wait} echo ready; exec sleep 1000")
    timed_out(surface, [silent, speaker], {"regex": "ready"})
    gate.open()
    answer = wait(surface, [silent, speaker], {"regex": "ready"})
    assert (answer["run_id"], waited(answer)) == (speaker, Hit(0, 5, "ready"))
    # Both have said something, each is still to be told of: no run's hit hides another's.
    others = wait(surface, [silent, speaker], {"regex": "other"}, since=answer["from"])
    assert others["run_id"] == silent
    for run_id in (silent, speaker):
        surface.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.11", "3.5")
@pytest.mark.parametrize(("stream", "start"), [("stdout", 0), ("stderr", 4)])
def test_a_stream_is_chosen(http: Http, stream: str, start: int) -> None:
    run_id = http.ok("shell", {"command": "printf it; printf 'not it' >&2"})["run_id"]
    answer = wait(http, [run_id], {"regex": "it", "stream": stream})
    assert (waited(answer), answer[WAIT_HIT]["stream"]) == (Hit(start, start + 2, "it"), stream)
    other = {"stdout": "stderr", "stderr": "stdout"}[stream]
    absent = {"regex": "^it" if other == "stderr" else "not", "stream": other}
    assert wait(http, [run_id], absent, {"exit": True})["met"] == {"exit": True}


@pytest.mark.requirement("0.11", "1.8", "3.5")
def test_each_stream_is_by_itself(http: Http) -> None:
    run_id = http.ok("shell", {"command": "printf nee; printf dle >&2; printf ' it'; printf ' it' >&2"})["run_id"]
    assert wait(http, [run_id], {"regex": "needle"}, {"exit": True})["met"] == {"exit": True}
    found = sorted(chain(http, run_id, {"regex": "it"}))
    assert found == [("stderr", Hit(4, 6, "it")), ("stdout", Hit(4, 6, "it"))]


@pytest.mark.requirement("0.11")
def test_a_match_across_a_timeout_is_not_missed(surface: Surface, gate: Gate) -> None:
    """Half of it is there when the first wait times out; the second goes on from that answer."""
    run_id = surface.spawn(f"printf 'it, nee'; {gate.wait} printf 'dle it'; exec sleep 1000")
    first = wait(surface, [run_id], {"regex": "it"})
    late = timed_out(surface, [run_id], {"regex": "needle"}, since=first["from"])
    gate.open()
    answer = wait(surface, [run_id], {"regex": "needle"}, since=late["from"], timeout_ms=10_000)
    assert waited(answer) == Hit(4, 10, "needle")
    # What a call has answered is not answered again; what stands behind it is.
    assert waited(wait(surface, [run_id], {"regex": "it"}, since=answer["from"])) == Hit(11, 13, "it")
    surface.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.11")
def test_each_of_two_conditions_has_its_turn(http: Http) -> None:
    run_id = http.ok("shell", {"command": "printf 'a1 b1 a2 b2'"})["run_id"]
    conditions: list[Answer] = [{"regex": "b[0-9]"}, {"regex": "a[0-9]"}]
    cursor: Answer | None = None
    found: list[str] = []
    while (answer := wait(http, [run_id], *conditions, {"exit": True}, since=cursor))["met"] != {"exit": True}:
        found.append(waited(answer).match)
        assert answer["met"] == conditions["ba".index(found[-1][0])]
        cursor = answer["from"]
    assert found == ["a1", "b1", "a2", "b2"]


@pytest.mark.requirement("0.11", "3.5")
def test_a_wait_from_a_byte_knows_what_stands_before_it(http: Http) -> None:
    """Anchors and boundaries look at real neighbours; a line begins where it begins."""
    run_id = http.spawn("printf 'ab ab\\nab'; exec sleep 1000")
    http.read(run_id, wait_ms=60_000)
    at: Answer = {run_id: {"stdout": 1}}
    assert waited(wait(http, [run_id], {"regex": "^a"}, since=at)) == Hit(6, 7, "a")
    assert waited(wait(http, [run_id], {"regex": r"\bb?a"}, since=at)) == Hit(3, 4, "a")
    assert waited(wait(http, [run_id], {"regex": "b"}, since=at)) == Hit(1, 2, "b")
    answer = wait(http, [run_id], {"regex": "b.*", "match_type": "line"}, since=at)
    assert (waited(answer), answer[WAIT_HIT]["line"]) == (Hit(1, 5, "b ab"), "ab ab")
    timed_out(http, [run_id], {"regex": "^b", "match_type": "line"}, since=at)
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.11", "3.5")
def test_lines_and_plain_words(http: Http) -> None:
    run_id = http.spawn("exec cat", stdin="open")
    feed(http, run_id, [b"axb a.b 12", b"34"], close=False)
    assert waited(wait(http, [run_id], {"regex": "a.b", "match_type": "substring"})) == Hit(4, 7, "a.b")
    assert waited(wait(http, [run_id], {"regex": "a.b", "match_type": "regex"})) == Hit(0, 3, "axb")
    number: Answer = {"regex": "[0-9]+", "match_type": "line"}
    timed_out(http, [run_id], number)
    feed(http, run_id, [b"\n"], close=False)
    assert waited(wait(http, [run_id], number)) == Hit(8, 12, "1234")
    timed_out(http, [run_id], {"regex": "A.B", "match_type": "substring"})
    feed(http, run_id, [b"last"])
    assert waited(wait(http, [run_id], {"regex": "^last$", "match_type": "line"})) == Hit(13, 17, "last")


@pytest.mark.requirement("0.11")
def test_what_a_run_said_before_its_end_holds_first(surface: Surface) -> None:
    run_id = surface.ok("shell", {"command": "echo said; exit 3"})["run_id"]
    conditions: list[Answer] = [{"exit": True}, {"regex": "said"}]
    answer = wait(surface, [run_id], *conditions)
    assert (answer["met"], hit_of(answer[WAIT_HIT])) == ({"regex": "said"}, Hit(0, 4, "said"))
    assert wait(surface, [run_id], *conditions, since=answer["from"])["met"] == {"exit": True}


@pytest.mark.requirement("0.11", "0.3")
def test_what_can_never_come_is_not_waited_for(surface: Surface) -> None:
    """The run is over and did not say it: that is told at once, as a wait without success, not a minute later."""
    run_id = surface.ok("shell", {"command": "echo said"})["run_id"]
    begun = time.monotonic()
    timed_out(surface, [run_id], {"regex": "nosuch"}, timeout_ms=50_000)
    assert time.monotonic() - begun < 20


@pytest.mark.requirement("0.11", "1.11", "6.2")
def test_waiting_does_not_disturb_others(http: Http, gate: Gate) -> None:
    """Twenty wait for the same word at once, each for itself."""
    run_id = http.spawn(f"{gate.wait} echo ready; exec sleep 1000")
    with ThreadPoolExecutor(20) as pool:
        waiting = [pool.submit(wait, http, [run_id], {"regex": "ready"}) for _ in range(20)]
        gate.open()
        assert {waited(one.result(60)) for one in waiting} == {Hit(0, 5, "ready")}
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.11", "0.3")
@pytest.mark.parametrize(
    "condition",
    [
        {"regex": 5},
        {"regex": "a", "stream": "stdin"},
        {"regex": "a", "stream": 1},
        {"regex": "a", "match_type": "prompt"},
        {"regex": "", "match_type": "substring"},
        {"regex": "a", "exit": True},
        {"regex": "a", "once": True},
        {"stream": "stdout"},
        {"port": 0},
        {"port": 65536},
        {"port": "80"},
        {"port": True},
        {"port": 80, "regex": "a"},
    ],
    ids=str,
)
def test_a_condition_is_strict(http: Http, condition: Answer) -> None:
    run_id = http.ok("shell", {"command": "echo a"})["run_id"]
    refusal = http.refused("runs.wait", wait_params([run_id], condition, timeout_ms=100), "invalid_argument")
    assert names(refusal, "for"), refusal
