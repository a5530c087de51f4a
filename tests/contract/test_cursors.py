"""A cursor that is ahead, of another run, or of bytes that are gone is told as such, never bent to fit (0.7, F64)."""

import base64
from collections.abc import Iterator

import pytest

from .hits import MISSED, Hit, hits, names, wait, wait_params, waited, watch
from .home import Answer, Home
from .items import all_items, events
from .surface import Http, Surface

ENDS: Answer = {"exit": True}


@pytest.fixture
def run_id(http: Http) -> str:
    return str(http.ok("shell", {"command": "printf 'aé🐚b'"})["run_id"])


@pytest.mark.requirement("0.7", "0.11", "F64")
def test_a_wait_from_beyond_the_end(surface: Surface, run_id: str) -> None:
    for condition in ({"regex": "b"}, ENDS):
        for offset in (9, 1 << 40):
            params = wait_params([run_id], condition, since={run_id: {"stdout": offset}})
            refusal = surface.refused("runs.wait", params, "invalid_argument")
            assert (refusal["reason"], refusal["total_bytes"]) == ("cursor_ahead", 8), refusal
    # The end itself is no error: nothing but the end is left.
    at_end: Answer = {run_id: {"stdout": 8}}
    assert wait(surface, [run_id], {"regex": "b"}, ENDS, since=at_end)["met"] == ENDS


@pytest.mark.requirement("0.7", "0.3", "F64", "F62")
@pytest.mark.parametrize("offset", [-1, "0", 1.5, True, 1 << 64, None, [0]], ids=str)
def test_a_wait_from_what_is_no_offset(http: Http, run_id: str, offset: object) -> None:
    params = wait_params([run_id], {"regex": "b"}, since={run_id: {"stdout": offset}})
    assert names(http.refused("runs.wait", params, "invalid_argument"), "from", "offset")


@pytest.mark.requirement("0.7", "F64")
def test_a_wait_from_another_runs_cursor(http: Http, run_id: str) -> None:
    other = http.ok("shell", {"command": "printf 'aé🐚b'"})["run_id"]
    for foreign in ({other: {"stdout": 0}}, {run_id: {"stdout": 0}, other: {"stdout": 0}}):
        params = wait_params([run_id], {"regex": "b"}, since=foreign)
        refusal = http.refused("runs.wait", params, "invalid_argument")
        assert refusal["reason"] == "cursor_foreign", refusal
        assert other in refusal["message"], refusal


@pytest.mark.requirement("0.7", "0.3", "F64")
def test_a_wait_from_a_stream_that_there_is_not(http: Http, run_id: str) -> None:
    for stream in ("pty", "stdin"):
        params = wait_params([run_id], {"regex": "b"}, since={run_id: {stream: 0}})
        http.refused("runs.wait", params, "invalid_argument")


@pytest.mark.requirement("0.5", "F64")
@pytest.mark.parametrize("offset", range(9))
def test_a_cursor_inside_a_character_loses_nothing(http: Http, run_id: str, offset: int) -> None:
    whole = "aé🐚b".encode()
    page = http.read(run_id, offset=offset, encoding="base64")
    assert base64.b64decode(page["data"]) == whole[offset:]
    at: Answer = {run_id: {"stdout": offset}}
    answer = wait(http, [run_id], {"regex": "🐚b|b"}, ENDS, since=at)
    if offset == 8:
        assert answer["met"] == ENDS
    else:
        assert waited(answer) == (Hit(3, 8, "🐚b") if offset <= 3 else Hit(7, 8, "b"))


@pytest.fixture(scope="module")
def bounded() -> Iterator[Http]:
    home = Home("[run]\nspool_max_bytes = 200_000\n")
    try:
        home.start()
        yield Http(home)
    finally:
        home.close()


@pytest.mark.requirement("0.7", "1.5", "1.8", "F64")
def test_a_cursor_into_what_is_gone(bounded: Http) -> None:
    """Whoever comes later is told where to go on; a watcher has seen those bytes, or it is said that it has not."""
    run_id = bounded.spawn("seq 1 100000; echo NEEDLE", max_output_bytes=1000, watch=[watch("^50000\n")])
    bounded.finish(run_id)
    middle: Answer = {run_id: {"stdout": 300_000}}
    gone = bounded.refused("runs.wait", wait_params([run_id], {"regex": "NEEDLE"}, since=middle), "gone")
    assert gone["reason"] == "cursor_expired"
    assert 300_000 < gone["base"] < 588_895, gone
    at_base: Answer = {run_id: {"stdout": gone["base"]}}
    assert waited(wait(bounded, [run_id], {"regex": "NEEDLE"}, since=at_base)) == Hit(588_895, 588_901, "NEEDLE")
    start = len("".join(f"{n}\n" for n in range(1, 50_000)))
    missed = [
        data for data in events(all_items(bounded, run_id), MISSED) if data["start"] < start + 6 and start < data["end"]
    ]
    found = hits(bounded, run_id)
    assert (found, missed) == ([Hit(start, start + 6, "50000\n")], []) or (found == [] and len(missed) == 1)
