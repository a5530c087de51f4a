"""Every match is found exactly once, whatever becomes of the daemon and of its database meanwhile (1.8, 1.11, 1.12)."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from .fifos import Gate, Lifeline
from .hits import SUPPRESSED, Hit, hits, watch
from .home import Home, until
from .items import all_items, events
from .remains import drop_database
from .surface import Http

NewHome = Callable[..., Home]


@pytest.mark.requirement("1.8", "1.11")
@pytest.mark.parametrize("without_daemon", [False, True])
def test_a_match_across_a_crash(new_home: NewHome, lifeline: Lifeline, gate: Gate, without_daemon: bool) -> None:
    """Injector: SIGKILL to the daemon between the two halves of a match; the second comes with or without a daemon."""
    home = new_home()
    home.start()
    watchers = [
        watch("^needle", "regex"),
        watch("needle ([0-9])", "line", match_type="line"),
        watch("e", "one", once=True),
    ]
    run_id = Http(home).spawn(lifeline.hold + f"printf nee; {gate.wait} echo dle 1", watch=watchers)
    assert Http(home).read(run_id, wait_ms=60_000)["data"] == "nee"
    until(lambda: len(hits(Http(home), run_id, "one")) == 1, "the hit that is there already")
    home.kill_daemon()
    if without_daemon:
        gate.open()
        assert lifeline.gone(30)
        home.start()
    else:
        home.start()
        gate.open()
    http = Http(home)
    http.finish(run_id)
    assert hits(http, run_id, "regex") == [Hit(0, 6, "needle")]
    assert hits(http, run_id, "line") == [Hit(0, 8, "needle 1")]
    assert hits(http, run_id, "one") == [Hit(1, 2, "e")]


@pytest.mark.requirement("1.8", "1.11", "1.4")
def test_exactly_once_through_many_crashes(new_home: NewHome, lifeline: Lifeline, tmp_path: Path) -> None:
    """Injector: SIGKILL to the daemon, four times in the midst of bursts of hits; the last burst finds no daemon."""
    home = new_home()
    home.start()
    bursts, each = 5, 100
    with contextlib.ExitStack() as stack:
        gates = [stack.enter_context(Gate(tmp_path, f"gate{n}")) for n in range(bursts)]
        script = "".join(
            f"{gate.wait} for n in $(seq {n * each} {(n + 1) * each - 1}); do echo hit $n,; sleep 0.002; done; "
            for n, gate in enumerate(gates)
        )
        run_id = Http(home).spawn(
            lifeline.hold + script, watch=[watch("hit [0-9]+,"), watch("hit 7,", "once", once=True)]
        )
        lifeline.word()
        seen = all_items(Http(home), run_id)
        for gate in gates[:-1]:
            gate.open()
            home.kill_daemon()
            home.start()
            now = all_items(Http(home), run_id)
            # What was answered once stays as it was: the same seq, the same hit.
            assert now[: len(seen)] == seen
            seen = now
        home.kill_daemon()
        gates[-1].open()
        assert lifeline.gone(30)
        home.start()
    http = Http(home)
    http.finish(run_id)
    whole = http.bytes_of(run_id).decode()
    assert [hit.match for hit in hits(http, run_id)] == [f"hit {n}," for n in range(bursts * each)]
    assert all(whole[hit.start : hit.end] == hit.match for hit in hits(http, run_id))
    assert [hit.match for hit in hits(http, run_id, "once")] == ["hit 7,"]
    assert all_items(http, run_id)[: len(seen)] == seen


@pytest.mark.requirement("1.8", "1.11", "0.7")
def test_the_thousand_are_counted_across_a_crash(new_home: NewHome, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon once it has told 900 hits."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(f"seq 1 900; {gate.wait} seq 901 2000", watch=[watch("^[0-9]+\n")])
    until(lambda: len(hits(Http(home), run_id)) == 900, "900 hits")
    home.kill_daemon()
    home.start()
    gate.open()
    http = Http(home)
    http.finish(run_id)
    assert [hit.match for hit in hits(http, run_id)] == [f"{n}\n" for n in range(1, 1001)]
    assert len(events(all_items(http, run_id), SUPPRESSED)) == 1


@pytest.mark.requirement("1.8", "1.12", "F30")
def test_hits_are_rebuilt_from_the_files(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """Injectors: SIGKILL to the daemon, and its database deleted, while one watched run goes on and one is over."""
    home = new_home()
    home.start()
    http = Http(home)
    watchers = [watch("[0-9]+\n"), watch("^1", "line", match_type="line", scope="stderr")]
    over = http.spawn("seq 1 50; seq 9 11 >&2; seq 51 60", watch=watchers)
    http.finish(over)
    live = http.spawn(f"{lifeline.hold} seq 1 20; {gate.wait} seq 21 30", watch=watchers)
    until(lambda: len(hits(http, live)) == 20, "the hits so far")
    before = [all_items(http, over), all_items(http, live)]
    home.kill_daemon()
    drop_database(home)
    home.start()
    assert [all_items(http, over), all_items(http, live)] == before
    gate.open()
    http.finish(live)
    assert all_items(http, live)[: len(before[1])] == before[1]
    assert [hit.match for hit in hits(http, live)] == [f"{n}\n" for n in range(1, 31)]
    assert [hit.match for hit in hits(http, over, "line", "stderr")] == ["1", "1"]
