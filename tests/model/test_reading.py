"""Reading a spool: pages add up to the whole, whatever their sizes and bytes; no character is cut; a hole is told."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from limpet.engine.reading import Range, last_bytes_offset, last_lines_offset, read_range
from limpet.model.errors import Refusal
from limpet.model.run import Run
from limpet.model.stream import Stream
from limpet.store.blobs import spool_name
from limpet.store.memory_blobs import MemoryBlobs

WHOLE = st.sampled_from(["a", "\n", "é", "€", "😀", "\U0010ffff", "\0", "\ufffd"]).map(str.encode)
BROKEN = st.sampled_from(
    [b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xff", b"\xf8", b"\xc0\xaf"]
)
BYTES = st.lists(WHOLE | BROKEN | st.binary(max_size=4), max_size=20).map(b"".join)
LINES = st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r\n"]), max_size=20).map(b"".join)
thorough = settings(
    max_examples=100,
    deadline=None,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


class Spool:
    """A run with one stream whose spool holds these bytes."""

    def __init__(self, data: bytes, hole: tuple[int, int] | None = None, *, is_open: bool = False) -> None:
        self.blobs = MemoryBlobs()
        self.blobs.write(spool_name("r1", 1, "stdout"), 0, data)
        self.run = Run(
            run_id="r1", streams={"stdout": Stream(bytes=len(data), holes=(hole,) if hole else (), open=is_open)}
        )

    def read(self, offset: int, max_bytes: int, encoding: str) -> Range:
        return read_range(self.run, self.blobs, "stdout", offset, max_bytes, encoding)

    def pages(self, sizes: list[int], encoding: str) -> Iterator[Range]:
        """Follows the cursors to the end, with these sizes in turn."""
        offset = turn = 0
        while True:
            page = self.read(offset, sizes[turn % len(sizes)], encoding)
            assert page.offset_bytes == offset
            assert page.next_offset > offset or page.next_offset == page.total_bytes, "it gets no further"
            yield page
            offset = page.next_offset
            turn += 1
            if offset == page.total_bytes:
                return


@pytest.mark.requirement("0.5")
@thorough
@given(data=BYTES, sizes=st.lists(st.integers(1, 9), min_size=1, max_size=4))
def test_pages_of_bytes_add_up_to_the_whole(data: bytes, sizes: list[int]) -> None:
    pages = list(Spool(data).pages(sizes, "base64"))
    assert b"".join(base64.b64decode(page.data) for page in pages) == data
    assert [page.eof for page in pages] == [False] * (len(pages) - 1) + [True]
    for turn, page in enumerate(pages):
        assert page.next_offset - page.offset_bytes <= sizes[turn % len(sizes)]


@pytest.mark.requirement("0.5", "F64")
@thorough
@given(data=BYTES, sizes=st.lists(st.integers(4, 12), min_size=1, max_size=4))
def test_pages_of_text_add_up_to_the_whole(data: bytes, sizes: list[int]) -> None:
    """From four bytes on, the longest character, each page can end on a whole one and still hold something."""
    pages = list(Spool(data).pages(sizes, "utf-8"))
    assert "".join(page.data for page in pages) == data.decode("utf-8", "replace")
    for turn, page in enumerate(pages):
        assert page.next_offset - page.offset_bytes <= sizes[turn % len(sizes)]


@pytest.mark.requirement("0.5")
@thorough
@given(data=BYTES, sizes=st.lists(st.integers(1, 3), min_size=1, max_size=4))
def test_no_page_is_so_small_that_it_cuts_a_character(data: bytes, sizes: list[int]) -> None:
    """A page smaller than its first character holds that character whole."""
    pages = list(Spool(data).pages(sizes, "utf-8"))
    assert "".join(page.data for page in pages) == data.decode("utf-8", "replace")


@pytest.mark.requirement("0.5", "F55")
@thorough
@given(pieces=st.lists(BYTES, min_size=1, max_size=6), size=st.integers(4, 64))
def test_text_that_is_read_as_it_comes_is_the_same_text(pieces: list[bytes], size: int) -> None:
    """As long as more can come, a character that has only begun waits for its rest."""
    text, offset, data = "", 0, b""
    for place, piece in enumerate([*pieces, b""]):
        data += piece
        spool = Spool(data, is_open=place < len(pieces))
        while True:
            page = spool.read(offset, size, "utf-8")
            text += page.data
            if page.next_offset == offset:
                break
            offset = page.next_offset
    assert offset == len(data)
    assert text == data.decode("utf-8", "replace")


@pytest.mark.requirement("0.7", "1.5", "F64")
@thorough
@given(data=st.data(), content=BYTES.filter(bool), size=st.integers(4, 12))
def test_a_hole_is_told_and_what_is_kept_is_read(data: st.DataObject, content: bytes, size: int) -> None:
    """Any offset gives its exact bytes, up to the hole, or a refusal that names the next kept byte."""
    start = data.draw(st.integers(0, len(content) - 1))
    end = data.draw(st.integers(start + 1, len(content)))
    spool = Spool(content[:start] + bytes(end - start) + content[end:], (start, end))
    for offset in range(len(content) + 3):
        if offset > len(content):
            code, reason, named = "invalid_argument", "cursor_ahead", {"total_bytes": len(content)}
        elif start <= offset < end:
            code, reason, named = "gone", "cursor_expired", {"base": end}
        else:
            page = spool.read(offset, size, "base64")
            stop = min(offset + size, start if offset < start else len(content))
            assert base64.b64decode(page.data) == content[offset:stop]
            assert page.base == end
            continue
        with pytest.raises(Refusal) as refusal:
            spool.read(offset, size, "base64")
        assert (refusal.value.code, refusal.value.reason) == (code, reason)
        assert named.items() <= refusal.value.fields.items()


@pytest.mark.requirement("0.5", "0.7")
@thorough
@given(data=st.data(), content=BYTES.filter(bool), size=st.integers(4, 12))
def test_text_before_a_hole_ends_there(data: st.DataObject, content: bytes, size: int) -> None:
    start = data.draw(st.integers(1, len(content)))
    spool = Spool(content[:start] + bytes(7), (start, start + 7))
    text, offset = "", 0
    while offset < start:
        page = spool.read(offset, size, "utf-8")
        assert offset < page.next_offset <= start
        text, offset = text + page.data, page.next_offset
    assert text == content[:start].decode("utf-8", "replace")


@pytest.mark.requirement("0.11")
@thorough
@given(data=st.data(), content=LINES, lines=st.integers(0, 12), count=st.integers(0, 30))
def test_the_last_lines_and_bytes(data: st.DataObject, content: bytes, lines: int, count: int) -> None:
    """As many as asked for, as far back as bytes are kept without a gap."""
    kept = data.draw(st.integers(0, len(content)))
    spool = Spool(content, (0, kept) if kept else None)
    ends = [place + 1 for place in range(kept, len(content)) if content[place : place + 1] == b"\n"]
    starts = [kept, *(end for end in ends if end < len(content))] if kept < len(content) else []
    expected = [len(content), *reversed(starts)]
    assert last_lines_offset(spool.run, spool.blobs, "stdout", lines) == expected[min(lines, len(expected) - 1)]
    for encoding in ("base64", "utf-8"):
        offset = last_bytes_offset(spool.run, spool.blobs, "stdout", count, encoding)
        assert offset == max(len(content) - count, kept)


@pytest.mark.requirement("0.5", "0.11")
@thorough
@given(content=st.text().map(str.encode), count=st.integers(0, 30))
def test_the_last_bytes_of_text_begin_at_a_character(content: bytes, count: int) -> None:
    spool = Spool(content)
    offset = last_bytes_offset(spool.run, spool.blobs, "stdout", count, "utf-8")
    assert max(0, len(content) - count) <= offset < max(0, len(content) - count) + 4
    assert content[offset:].decode() == content[max(0, len(content) - count) :].decode("utf-8", "ignore")
