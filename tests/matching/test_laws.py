"""The matcher against brute force: random patterns, bytes, cuts, starts and restarts."""

from __future__ import annotations

import os

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fuzz.feed import pieces
from limpet.engine.matching import Hit, MatchType, Pattern, WatchSet, compile_pattern, shared
from limpet.model.errors import Refusal
from tests.matching import oracle
from tests.matching.feeding import fed, spans
from tests.matching.patterns import for_re, patterns, texts

pytestmark = pytest.mark.requirement("3.5")

MORE = int(os.environ.get("LIMPET_MATCHING_EXAMPLES", "1"))
"""How many times as many examples as each time."""
Span = tuple[int, int]


def compiled(text: str, match_type: MatchType) -> Pattern:
    """A refused one is not what these laws are about: tests of refusals are."""
    try:
        return compile_pattern(text, match_type)
    except Refusal as refusal:
        assume(refusal.code != "invalid_argument")
        raise


def line_before(data: bytes, place: int) -> bytes:
    return data[:place].rpartition(b"\n")[2]


def cut(source: st.DataObject, data: bytes) -> list[bytes]:
    places = source.draw(st.sets(st.integers(0, len(data)), max_size=6), label="cuts")
    return pieces(data, sorted(places - {0, len(data)}))


def expected(text: str, match_type: MatchType, data: bytes, begin: int) -> list[Span]:
    if match_type == "line":
        return oracle.in_lines(for_re(text), data, begin)
    return oracle.on_stream(for_re(text), data, begin)


@pytest.mark.parametrize("match_type", ["regex", "line"])
@given(text=patterns(), data=texts(), source=st.data())
@settings(max_examples=MORE * 400, deadline=None)
def test_hits_are_those_of_brute_force(match_type: MatchType, text: str, data: bytes, source: st.DataObject) -> None:
    pattern = compiled(text, match_type)
    begin = source.draw(st.integers(0, len(data)), label="begin")
    scanner = pattern.scanner(begin, line_before(data, begin))
    assert spans(fed(scanner, cut(source, data[begin:]))) == expected(text, match_type, data, begin)
    assert scanner.position == len(data)


@pytest.mark.parametrize("match_type", ["regex", "line"])
@given(text=patterns(), data=texts(), source=st.data())
@settings(max_examples=MORE * 400, deadline=None)
def test_a_restart_finds_what_was_still_to_come(
    match_type: MatchType, text: str, data: bytes, source: st.DataObject
) -> None:
    pattern = compiled(text, match_type)
    begin = source.draw(st.integers(0, len(data)), label="begin")
    middle = source.draw(st.integers(begin, len(data)), label="middle")
    first = pattern.scanner(begin, line_before(data, begin))
    for part in cut(source, data[begin:middle]):
        first.feed(part)
    at = first.restart_at
    assert begin <= at <= middle == first.position
    again = pattern.scanner(at, line_before(data, at))
    rest = [hit for part in cut(source, data[middle:]) for hit in first.feed(part)] + first.finish()
    first.close()
    assert fed(again, cut(source, data[at:])) == rest


@given(text=st.text(st.sampled_from("ab\n"), min_size=1, max_size=4), data=texts(), source=st.data())
@settings(max_examples=MORE * 200, deadline=None)
def test_plain_text_is_found(text: str, data: bytes, source: st.DataObject) -> None:
    raw = text.encode()
    begin = source.draw(st.integers(0, len(data)), label="begin")
    scanner = compile_pattern(text, "substring").scanner(begin, line_before(data, begin))
    found: list[Span] = []
    place = begin
    while (at := data.find(raw, place)) >= 0:
        place = at + len(raw)
        found.append((at, place))
    assert spans(fed(scanner, cut(source, data[begin:]))) == found


@pytest.mark.requirement("1.8")
@pytest.mark.parametrize("kept_bytes", [shared.KEPT_BYTES, 3])
@given(texts=st.lists(patterns(), min_size=2, max_size=5), data=texts(), source=st.data())
@settings(max_examples=MORE * 150, deadline=None)
def test_a_set_finds_what_each_would_alone(
    kept_bytes: int, texts: list[str], data: bytes, source: st.DataObject
) -> None:
    """Where little is kept, patterns leave the others in the middle of a line, and come back at its end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shared, "KEPT_BYTES", kept_bytes)
        check_set(texts, data, source)


def check_set(texts: list[str], data: bytes, source: st.DataObject) -> None:
    kinds: list[MatchType] = ["regex", "line"]
    made = [compiled(text, source.draw(st.sampled_from(kinds), label="match_type")) for text in texts]
    begins = [source.draw(st.integers(0, len(data)) | st.just(0), label="begin") for _ in made]
    first = min(begins)
    watch = WatchSet(made, begins, line_before(data, first))
    each = [pattern.scanner(at, line_before(data, at)) for pattern, at in zip(made, begins, strict=True)]
    place = first
    for part in [*cut(source, data[first:]), None]:
        found = watch.finish() if part is None else watch.feed(part)
        alone: list[tuple[int, Hit]] = []
        for index, scanner in enumerate(each):
            if part is None:
                alone += [(index, hit) for hit in scanner.finish()]
            else:
                alone += [(index, hit) for hit in scanner.feed(part[max(0, begins[index] - place) :])]
        assert found == sorted(alone, key=lambda one: (one[1].end, one[0]))
        place += len(part or b"")
        assert watch.position == place
        assert all(begins[index] <= watch.restart_at(index) for index in range(len(made)))
    watch.close()
    for scanner in each:
        scanner.close()
