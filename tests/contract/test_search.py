"""runs.search finds text and patterns in what runs have said: which run, stream, bytes and line (0.11)."""

import json
from pathlib import Path

import pytest

from .fifos import Gate
from .hits import names, said_cut
from .home import Answer, until
from .surface import Http, Surface

FIELDS = {"run_id", "stream", "span", "line"}


def found(surface: Surface, **params: object) -> list[tuple[str, str, int, int]]:
    """Run, stream and span of every hit, in one order."""
    answer = surface.ok("runs.search", {"limit": 100, **params})
    assert all(set(hit) >= FIELDS for hit in answer["hits"]), answer
    return sorted((hit["run_id"], hit["stream"], hit["span"]["start"], hit["span"]["end"]) for hit in answer["hits"])


@pytest.mark.requirement("0.11", "9.runs", "0.2")
def test_text_is_found_where_it_stands(surface: Surface) -> None:
    """The span counts bytes, and what stands there is what was asked for."""
    word = f"née.d+le-{surface.name}"
    first = surface.ok("shell", {"command": f"echo 'é one {word} two'; echo x; echo '{word}{word}' >&2"})["run_id"]
    second = surface.ok("shell", {"command": f"echo nothing; printf '🐚\\nlast {word}'"})["run_id"]
    surface.ok("shell", {"command": f"echo 'néexd+le-{surface.name}'"})
    size = len(word.encode())
    assert found(surface, query=word) == sorted(
        [
            (first, "stdout", 7, 7 + size),
            (first, "stderr", 0, size),
            (first, "stderr", size, 2 * size),
            (second, "stdout", 18, 18 + size),
        ]
    )
    for hit in surface.ok("runs.search", {"query": word})["hits"]:
        start, end = hit["span"]["start"], hit["span"]["end"]
        assert surface.bytes_of(hit["run_id"], hit["stream"])[start:end] == word.encode()
        lines = {first: {"stdout": f"é one {word} two", "stderr": word + word}, second: {"stdout": f"last {word}"}}
        assert hit["line"] == lines[hit["run_id"]][hit["stream"]]
    assert found(surface, query=f"nosuch-{surface.name}") == []


@pytest.mark.requirement("0.11", "9.runs")
def test_a_pattern_is_found(surface: Surface) -> None:
    code = f"E{surface.name}"
    run_id = surface.ok("shell", {"command": f"printf 'é {code}[123];\\n{code}[4];{code}[x];\\n'"})["run_id"]
    start = len(f"é {code}[123];\n".encode())
    expected = [(run_id, "stdout", 3, start - 1), (run_id, "stdout", start, start + len(code) + 4)]
    assert found(surface, regex=rf"\b{code}\[[0-9]+\];") == expected
    assert found(surface, regex=rf"^{code}\[4\];") == expected[1:]
    # As text it is nobody's.
    assert found(surface, query=rf"\b{code}\[[0-9]+\];") == []


@pytest.mark.requirement("0.11", "9.runs")
def test_a_run_or_a_session_is_chosen(surface: Surface) -> None:
    word = f"chosen-{surface.name}"
    one, two = f"search-{surface.name}-1", f"search-{surface.name}-2"
    made = [
        surface.ok("shell", {"command": f"echo {word}", "session_id": session})["run_id"] for session in (one, one, two)
    ]
    span = ("stdout", 0, len(word))
    assert found(surface, query=word) == sorted((run_id, *span) for run_id in made)
    assert found(surface, query=word, session_id=one) == sorted((run_id, *span) for run_id in made[:2])
    assert found(surface, query=word, session_id=two) == [(made[2], *span)]
    assert found(surface, query=word, run_id=made[1]) == [(made[1], *span)]
    assert found(surface, query=word, run_id=made[1], session_id=one) == [(made[1], *span)]
    assert found(surface, query=word, run_id=made[1], session_id=two) == []
    surface.refused("runs.search", {"query": word, "run_id": "nosuch"}, "not_found")


@pytest.mark.requirement("0.11", "9.runs", "0.7")
def test_a_limit_that_cuts_says_so(http: Http) -> None:
    run_id = http.ok("shell", {"command": "for n in $(seq 10); do echo limited; done"})["run_id"]
    cut = http.ok("runs.search", {"query": "limited", "run_id": run_id, "limit": 4})
    assert len(cut["hits"]) == 4
    assert said_cut(cut) or cut.get("has_more") is True, cut
    whole = http.ok("runs.search", {"query": "limited", "run_id": run_id, "limit": 10})
    assert [hit["span"]["start"] for hit in whole["hits"]] == [8 * n for n in range(10)]
    assert not said_cut(whole), whole
    assert not whole.get("has_more"), whole
    assert cut["hits"] == whole["hits"][:4]


@pytest.mark.requirement("0.11", "0.5")
def test_a_live_run_is_searched_too(http: Http, gate: Gate) -> None:
    """And a terminal's; a word of which only half is written is not there yet."""
    run_id = http.spawn(f"printf 'half-of-'; {gate.wait} printf 'a-word\\n'; {gate.wait}", pty=True)
    until(lambda: found(http, query="half-of-", run_id=run_id) == [(run_id, "pty", 0, 8)], "the first half")
    assert found(http, query="half-of-a-word", run_id=run_id) == []
    gate.open()
    until(lambda: found(http, query="half-of-a-word", run_id=run_id) == [(run_id, "pty", 0, 14)], "the whole")
    gate.open()
    http.finish(run_id)


@pytest.mark.requirement("0.11", "0.5", "1.5")
def test_it_is_found_at_every_place_of_a_long_output(http: Http, tmp_path: Path) -> None:
    """Words across the ends of the pieces in which a long file may be read, past what becomes items."""
    places = sorted(n * size - 4 for size in (1 << 12, 1 << 16, 1 << 20) for n in (1, 2, 3))
    text = bytearray(b"." * (1 << 22))
    for place in places:
        text[place : place + 8] = b"<needle>"
    (tmp_path / "long").write_bytes(text)
    run_id = http.ok("shell", {"command": f"cat '{tmp_path}/long'", "max_output_bytes": 100})["run_id"]
    expected = [(run_id, "stdout", place, place + 8) for place in places]
    assert found(http, query="<needle>", run_id=run_id) == expected
    assert found(http, regex="<n[a-z]*e>", run_id=run_id) == expected
    hit = http.ok("runs.search", {"query": "<needle>", "run_id": run_id, "limit": 1})["hits"][0]
    assert len(hit["line"].encode()) <= 4096


@pytest.mark.requirement("0.11", "9.runs", "0.3")
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({}, "query"),
        ({"query": "a", "regex": "a"}, "regex"),
        ({"query": ""}, "query"),
        ({"query": 5}, "query"),
        ({"regex": 5}, "regex"),
        ({"query": "a", "limit": 0}, "limit"),
        ({"query": "a", "limit": -1}, "limit"),
        ({"query": "a", "limit": "5"}, "limit"),
        ({"query": "a", "limit": True}, "limit"),
        ({"query": "a", "session_id": "../x"}, "session_id"),
        ({"query": "a", "stream": "stdin"}, "stream"),
        ({"query": "a", "nosuch": 1}, "nosuch"),
    ],
    ids=str,
)
def test_search_is_strict(http: Http, params: Answer, field: str) -> None:
    assert names(http.refused("runs.search", params, "invalid_argument"), field)


@pytest.mark.requirement("0.11", "0.10", "6.7")
def test_what_is_found_is_data(http: Http) -> None:
    """Bytes that are no text, and escapes, come as JSON carries them; the span stays true."""
    run_id = http.ok("shell", {"command": "printf '\\377\\033]0;title\\007 data-needle\\377\\n'"})["run_id"]
    (hit,) = http.ok("runs.search", {"query": "data-needle", "run_id": run_id})["hits"]
    assert hit["span"] == {"start": 12, "end": 23}
    assert hit["line"] == "\ufffd\x1b]0;title\x07 data-needle\ufffd"
    assert "\x1b" not in json.dumps(hit)
