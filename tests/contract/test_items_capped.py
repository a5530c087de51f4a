"""What becomes items is bounded by `max_output_bytes`: past it one event says so, and nothing else stops (1.5, F26)."""

from collections.abc import Callable

import pytest

from .fifos import Gate
from .home import Home, until
from .items import SNIPPET_MAX_CHARS, all_items, events, poll, statuses, text_of
from .surface import Http, Surface

NewHome = Callable[..., Home]

WHOLE = "".join(f"{n}\n" for n in range(1, 20_001))
BOUND_BYTES = 10_000


@pytest.mark.requirement("1.5", "0.7", "F26")
def test_past_the_bound_one_event_and_no_more_output(surface: Surface) -> None:
    run_id = surface.spawn("seq 1 20000", max_output_bytes=BOUND_BYTES)
    surface.finish(run_id)
    items = all_items(surface, run_id)
    assert text_of(items) == WHOLE[:BOUND_BYTES]
    assert events(items, "output_capped") == [{"max_output_bytes": BOUND_BYTES}]
    capped = next(place for place, item in enumerate(items) if item.get("event") == "output_capped")
    assert not [item for item in items[capped:] if item["kind"] == "output"]
    assert statuses(items)[-1] == "completed"
    told = poll(surface, run_id)
    assert told["truncated"] is True
    assert told["snippet"] == WHOLE[-SNIPPET_MAX_CHARS:]
    assert surface.bytes_of(run_id) == WHOLE.encode()
    assert surface.facts(run_id)["truncated"] is True


@pytest.mark.requirement("1.5")
@pytest.mark.parametrize(("bound_bytes", "capped"), [(9, True), (10, False), (11, False), (0, True)])
def test_the_bound_is_exact(http: Http, bound_bytes: int, capped: bool) -> None:
    run_id = http.spawn("printf 0123456789", max_output_bytes=bound_bytes)
    http.finish(run_id)
    items = all_items(http, run_id)
    assert text_of(items) == "0123456789"[:bound_bytes]
    assert len(events(items, "output_capped")) == capped
    assert poll(http, run_id)["truncated"] is capped
    assert poll(http, run_id)["snippet"] == "0123456789"


@pytest.mark.requirement("1.5")
def test_the_bound_counts_both_streams_in_order_of_arrival(http: Http, gate: Gate) -> None:
    run_id = http.spawn("printf 0123456789; " + gate.wait + "printf abcdefghij >&2", max_output_bytes=15)
    until(lambda: text_of(all_items(http, run_id)) == "0123456789", "the first stream")
    assert poll(http, run_id)["truncated"] is False
    gate.open()
    http.finish(run_id)
    items = all_items(http, run_id)
    assert (text_of(items), text_of(items, "stderr")) == ("0123456789", "abcde")
    assert events(items, "output_capped") == [{"max_output_bytes": 15}]
    assert http.bytes_of(run_id, "stderr") == b"abcdefghij"


@pytest.mark.requirement("1.5", "0.5")
def test_the_bound_splits_no_character(http: Http) -> None:
    run_id = http.spawn("printf 'aé🐚b'", max_output_bytes=5)
    http.finish(run_id)
    items = all_items(http, run_id)
    assert text_of(items) == "aé"
    assert events(items, "output_capped") == [{"max_output_bytes": 5}]


@pytest.mark.requirement("1.5")
def test_the_snippet_stays_live_past_the_bound(http: Http, gate: Gate) -> None:
    run_id = http.spawn("seq 1 1000; echo first; " + gate.wait + "echo second", max_output_bytes=100)
    until(lambda: poll(http, run_id)["snippet"].endswith("first\n"), "the snippet to follow")
    told = poll(http, run_id)
    assert (told["status"], told["truncated"]) == ("running", True)
    # One event, said while the run goes on.
    assert len(events(all_items(http, run_id), "output_capped")) == 1
    gate.open()
    http.finish(run_id)
    assert poll(http, run_id)["snippet"].endswith("first\nsecond\n")
    assert len(events(all_items(http, run_id), "output_capped")) == 1


@pytest.mark.requirement("1.5", "F26")
def test_the_default_bound_is_16_mib(http: Http) -> None:
    run_id = http.spawn("yes 0123456789abcde | head -c 17000000")
    http.finish(run_id)
    items = all_items(http, run_id)
    assert len(text_of(items)) == 16 << 20
    assert events(items, "output_capped") == [{"max_output_bytes": 16 << 20}]
    assert http.read(run_id, offset=16_999_984)["data"] == "0123456789abcde\n"


@pytest.mark.requirement("1.5", "F26", "0.7")
def test_items_stay_when_the_spool_gives_its_middle_up(new_home: NewHome) -> None:
    """Output past `run.spool_max_bytes` goes, but never what became items."""
    home = new_home("[run]\nspool_max_bytes = 200000\n")
    home.start()
    http = Http(home)
    run_id = http.spawn("seq 1 200000", max_output_bytes=BOUND_BYTES)
    http.finish(run_id)
    whole = "".join(f"{n}\n" for n in range(1, 200_001))
    items = all_items(http, run_id)
    assert text_of(items) == whole[:BOUND_BYTES]
    assert poll(http, run_id)["snippet"] == whole[-SNIPPET_MAX_CHARS:]
    gone = http.refused("runs.read", {"run_id": run_id, "offset": 500_000}, "gone")
    assert http.bytes_of(run_id, offset=gone["base"]).decode() == whole[gone["base"] :]


@pytest.mark.requirement("1.4", "1.5", "1.11")
def test_items_and_their_numbers_outlive_the_daemon(new_home: NewHome, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon, before and after the bound is passed; a cursor goes on across both."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(
        "printf 01234; " + gate.wait + "printf 56789abc; " + gate.wait + "echo err >&2", max_output_bytes=10
    )
    until(lambda: text_of(all_items(Http(home), run_id)) == "01234", "the first words")
    first = all_items(Http(home), run_id)
    home.kill_daemon()
    home.start()
    assert all_items(Http(home), run_id) == first
    gate.open()
    until(lambda: bool(events(all_items(Http(home), run_id), "output_capped")), "the bound")
    second = all_items(Http(home), run_id)
    assert second[: len(first)] == first
    home.kill_daemon()
    home.start()
    assert all_items(Http(home), run_id) == second
    gate.open()
    Http(home).finish(run_id)
    whole = all_items(Http(home), run_id)
    assert whole[: len(second)] == second
    assert whole == first + all_items(Http(home), run_id, since_seq=first[-1]["seq"])
    assert (text_of(whole), text_of(whole, "stderr")) == ("0123456789", "")
    assert len(events(whole, "output_capped")) == 1
    assert poll(Http(home), run_id)["snippet"] == "0123456789abcerr\n"
