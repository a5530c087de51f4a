"""Output past its bounds: items stop, the spool goes on; past the spool's own bound the middle is gone (1.5, 0.7)."""

import base64
from collections.abc import Iterator

import pytest

from .home import Answer, Home
from .items import all_items, events
from .surface import Http, Surface

HEAD_BYTES = 10_000
SPOOL_BYTES = 1_000_000
LINES = 500_000
COMMAND = f"seq 1 {LINES}"
WHOLE = "".join(f"{n}\n" for n in range(1, LINES + 1)).encode()


@pytest.mark.requirement("1.5")
def test_a_one_shot_past_its_bound(surface: Surface) -> None:
    ran = surface.ok("shell", {"command": "seq 1 20000", "max_output_bytes": 1000})
    whole = "".join(f"{n}\n" for n in range(1, 20_001))
    assert (ran["truncated"], ran["exit_code"]) == (True, 0)
    assert 0 < len(ran["stdout"]) <= 1000
    assert whole.startswith(ran["stdout"]) or whole.endswith(ran["stdout"])
    assert surface.bytes_of(ran["run_id"]) == whole.encode()
    assert surface.facts(ran["run_id"])["truncated"] is True


@pytest.mark.requirement("1.5")
@pytest.mark.parametrize(("bound", "truncated"), [(9, True), (10, False), (11, False)])
def test_the_bound_is_exact(http: Http, bound: int, truncated: bool) -> None:
    ran = http.ok("shell", {"command": "printf 0123456789", "max_output_bytes": bound})
    assert (ran["truncated"], ran["stdout"]) == (truncated, "0123456789"[:bound])


@pytest.mark.requirement("0.5", "1.5")
def test_the_bound_splits_no_character(http: Http) -> None:
    ran = http.ok("shell", {"command": "printf 'aé🐚b'", "max_output_bytes": 5})
    assert ran["truncated"] is True
    assert "aé🐚b".startswith(ran["stdout"]), ran
    assert len(ran["stdout"].encode()) <= 5


@pytest.fixture(scope="module")
def bounded() -> Iterator[Http]:
    home = Home(f"[run]\nspool_max_bytes = {SPOOL_BYTES}\n")
    try:
        home.start()
        yield Http(home)
    finally:
        home.close()


@pytest.fixture(scope="module")
def big(bounded: Http) -> str:
    """A run with more output than its spool may keep."""
    ran = bounded.ok("shell", {"command": COMMAND, "max_output_bytes": HEAD_BYTES})
    assert (ran["exit_code"], ran["truncated"]) == (0, True)
    return str(ran["run_id"])


def hole(http: Http, run_id: str) -> Answer:
    params: Answer = {"run_id": run_id, "stream": "stdout", "offset": len(WHOLE) // 2, "max_bytes": 100}
    return http.refused("runs.read", params, "gone")


@pytest.mark.requirement("1.5")
def test_the_head_stays(bounded: Http, big: str) -> None:
    page = bounded.read(big, max_bytes=HEAD_BYTES, encoding="base64")
    assert base64.b64decode(page["data"]) == WHOLE[:HEAD_BYTES]
    assert page["total_bytes"] == len(WHOLE)
    assert page["eof"] is False


@pytest.mark.requirement("0.7", "1.5")
def test_a_read_in_the_hole_is_gone_and_says_where_to_go_on(bounded: Http, big: str) -> None:
    """HTTP's 410 is checked by the surface."""
    base = hole(bounded, big)["base"]
    assert len(WHOLE) // 2 < base < len(WHOLE)
    assert bounded.bytes_of(big, offset=base) == WHOLE[base:]
    params: Answer = {"run_id": big, "stream": "stdout", "max_bytes": 1}
    assert bounded.refused("runs.read", {**params, "offset": base - 1}, "gone")["base"] == base


@pytest.mark.requirement("0.7", "1.5")
def test_no_page_jumps_over_the_hole(bounded: Http, big: str) -> None:
    offset = 0
    while True:
        params: Answer = {"run_id": big, "stream": "stdout", "offset": offset, "max_bytes": 3333, "encoding": "base64"}
        answer = bounded.call("runs.read", params)
        if not answer["ok"]:
            break
        data = base64.b64decode(answer["data"])
        assert data == WHOLE[offset : offset + len(data)]
        assert answer["next_offset"] == offset + len(data) > offset
        offset = answer["next_offset"]
    assert answer["error"] == "gone"
    assert HEAD_BYTES <= offset < answer["base"]


@pytest.mark.requirement("1.5")
def test_what_is_kept_is_as_much_as_the_bound(bounded: Http, big: str) -> None:
    """To within a tenth: the machine frees whole blocks."""
    kept_bytes = HEAD_BYTES + len(WHOLE) - hole(bounded, big)["base"]
    assert 0.9 * SPOOL_BYTES <= kept_bytes <= 1.1 * SPOOL_BYTES


@pytest.mark.requirement("0.7", "1.5")
def test_the_tail_is_the_true_one(bounded: Http, big: str) -> None:
    page = bounded.ok("runs.read", {"run_id": big, "stream": "stdout", "last_lines": 3})
    assert page["data"] == f"{LINES - 2}\n{LINES - 1}\n{LINES}\n"
    assert (page["next_offset"], page["total_bytes"], page["eof"]) == (len(WHOLE), len(WHOLE), True)


@pytest.mark.requirement("1.5")
def test_under_the_bound_nothing_goes(bounded: Http) -> None:
    ran = bounded.ok("shell", {"command": "seq 1 100000", "max_output_bytes": HEAD_BYTES})
    assert bounded.bytes_of(ran["run_id"]) == "".join(f"{n}\n" for n in range(1, 100_001)).encode()


@pytest.mark.requirement("1.5")
def test_the_disk_holds_no_more_than_the_bound(bounded: Http, big: str) -> None:
    facts = bounded.facts(big)
    assert facts["truncated"] is True
    ran = bounded.ok("shell", {"command": "yes 0123456789abcde | head -c 20000000", "max_output_bytes": HEAD_BYTES})
    assert ran["exit_code"] == 0
    page = bounded.ok("runs.read", {"run_id": ran["run_id"], "stream": "stdout", "last_bytes": 16})
    assert (page["data"], page["total_bytes"]) == ("0123456789abcde\n", 20_000_000)


@pytest.mark.requirement("0.7", "1.5")
def test_the_log_says_what_was_given_up(bounded: Http, big: str) -> None:
    """One event for the stream, from where on; how far, which grows as the run goes on, the run says."""
    (dropped,) = events(all_items(bounded, big), "output_dropped")
    assert dropped["stream"] == "stdout"
    assert HEAD_BYTES <= dropped["start"] < len(WHOLE) // 2
    assert bounded.facts(big)["streams"]["stdout"]["base"] == hole(bounded, big)["base"]
    params: Answer = {"run_id": big, "stream": "stdout", "max_bytes": 1}
    assert bounded.ok("runs.read", {**params, "offset": dropped["start"] - 1})["next_offset"] == dropped["start"]
    bounded.refused("runs.read", {**params, "offset": dropped["start"]}, "gone")


@pytest.mark.requirement("0.7", "1.5")
def test_where_nothing_was_given_up_nothing_is_said(bounded: Http) -> None:
    ran = bounded.ok("shell", {"command": "seq 1 1000", "max_output_bytes": HEAD_BYTES})
    assert events(all_items(bounded, ran["run_id"]), "output_dropped") == []
