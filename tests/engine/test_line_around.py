"""The line around a match: all of it where it is short, the match and what is near it where it is long."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.engine import shown
from limpet.engine.shown import LINE_MAX_BYTES, line_around
from limpet.model.run import Run
from limpet.model.stream import Stream

BYTES = st.lists(st.sampled_from([b"a", b"b", b"\n", "é".encode(), "😀".encode(), b"\xff"]), max_size=60).map(b"".join)


def around(data: bytes, start: int, end: int, stream: Stream | None = None) -> tuple[str, bool]:
    run = Run(run_id="r", streams={"stdout": stream or Stream(bytes=len(data))})
    line = line_around(run, "stdout", start, end, lambda _name, low, high: data[low:high])
    return line.text, line.is_cut


@pytest.mark.requirement("1.8", "3.5")
@settings(max_examples=300, deadline=None)
@given(BYTES, st.data())
def test_a_short_line_is_whole(data: bytes, draw: st.DataObject) -> None:
    start = draw.draw(st.integers(0, max(0, len(data) - 1)))
    end = draw.draw(st.integers(start + 1, max(start + 1, len(data))))
    if not data:
        return
    begin = data.rfind(b"\n", 0, start) + 1
    stop = data.find(b"\n", end - 1)
    expected = data[begin : stop if stop >= 0 else len(data)]
    assert around(data, start, end) == (expected.decode("utf-8", errors="replace"), False)


@pytest.mark.requirement("1.8", "3.5")
@pytest.mark.parametrize("before", [0, 10, LINE_MAX_BYTES - 1, LINE_MAX_BYTES, 50_000])
@pytest.mark.parametrize("behind", [0, 10, LINE_MAX_BYTES, 50_000])
def test_of_a_long_line_the_match_and_what_is_near_is_told(before: int, behind: int) -> None:
    data = b"first\n" + b"x" * before + b"MATCH" + b"y" * behind + b"\nlast"
    start = data.index(b"MATCH")
    text, is_cut = around(data, start, start + 5)
    assert "MATCH" in text
    assert len(text) <= LINE_MAX_BYTES
    assert "first" not in text
    assert "last" not in text
    assert is_cut is (before + 5 + behind > LINE_MAX_BYTES)
    assert is_cut or len(text) == before + 5 + behind


@pytest.mark.requirement("3.5")
def test_a_cut_line_holds_whole_characters() -> None:
    data = "é".encode() * 10_000
    text, is_cut = around(data, 10_000, 10_002)
    assert is_cut
    assert set(text) == {"é"}


@pytest.mark.requirement("1.8", "0.7")
def test_what_is_gone_is_not_made_up() -> None:
    data = b"gone\n" + b"\0" * 20 + b"kept MATCH\n"
    start = data.index(b"MATCH")
    hole = Stream(bytes=len(data), holes=((5, 25),))
    assert around(data, start, start + 5, hole) == ("kept MATCH", False)
    assert around(data, 10, 12, hole) == ("", True)


@pytest.mark.requirement("1.8", "3.5")
@settings(max_examples=300, deadline=None)
@given(BYTES, st.data())
def test_read_once_it_is_the_same(data: bytes, draw: st.DataObject) -> None:
    """`around` reads once; what is asked for outside of that is read as ever, and what is gone is not touched."""
    start = draw.draw(st.integers(0, max(0, len(data) - 1)))
    end = draw.draw(st.integers(start + 1, max(start + 1, len(data))))
    hole = draw.draw(st.sampled_from([(), ((0, start),)])) if start else ()
    reads: list[tuple[int, int]] = []

    def read(_name: str, low: int, high: int) -> bytes:
        assert all(low >= gone[1] for gone in hole)
        reads.append((low, high))
        return data[low:high]

    if not data:
        return
    run = Run(run_id="r", streams={"stdout": Stream(bytes=len(data), holes=hole)})
    near = shown.around(run, "stdout", start, end, read)
    line = line_around(run, "stdout", start, end, near)
    assert near("stdout", start, end) == data[start:end]
    assert len(reads) == 1 or hole
    assert line == line_around(run, "stdout", start, end, read)
