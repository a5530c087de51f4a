"""The text of what is shown: of one item, of what was said last, and of the line around a match."""

from collections.abc import Callable
from typing import Final

import msgspec

from limpet.model.characters import boundary, whole_characters
from limpet.model.items import Item
from limpet.model.run import Run
from limpet.model.stream import Stream, Tail
from limpet.model.watch import MATCH_MAX_BYTES

SNIPPET_MAX_CHARS: Final = 2000
LINE_MAX_BYTES: Final = 4096
# What can only go on in a character, never begin one.
_CONTINUATION: Final = bytes(range(0x80, 0xC0))

# Reads from a stream's bytes: its name, from where, to where.
Read = Callable[[str, int, int], bytes]


def item_text(run: Run, item: Item, read: Read) -> str:
    """What an output item says. The texts of a stream's items together are the text of its bytes that are kept."""
    assert item.stream is not None
    assert item.start is not None
    assert item.end is not None
    stream = run.streams[item.stream]
    low, high = _part_of(stream, item.start)
    if stream.hole_at(item.start) is not None:
        return ""
    is_cut = item.end == stream.head_end < (stream.bytes if stream.ended_at is None else stream.ended_at)
    # Behind the head nothing is sure to stay: what has only begun there is left off.
    before = max(low, item.start - 4)
    # What a power cut took says nothing any more.
    data = read(item.stream, before, stream.kept_up_to(before, item.end if is_cut else min(high, item.end + 3)))
    begin = boundary(data, item.start - before)
    text = data[begin : boundary(data, item.end - before)]
    return (whole_characters(text) if is_cut else text).decode("utf-8", errors="replace")


def said(
    run: Run, name: str, room_bytes: int | None, read: Callable[[int, int], bytes]
) -> tuple[str, tuple[int, int] | None]:
    """What came first of a stream, up to the run's `max_output_bytes` over all of them.

    Where there is no room for it: the beginning and the end, a line between them that says what is left out, and where
    that stands.
    """
    stream = run.streams.get(name)
    if stream is None:
        return "", None
    end = stream.bytes if stream.ended_at is None else stream.ended_at
    kept = stream.kept_up_to(0, stream.head_end)
    if room_bytes is None or kept <= room_bytes:
        data = read(0, kept)
        is_cut = stream.head_end < end or not run.is_over
        return (whole_characters(data) if is_cut else data).decode("utf-8", errors="replace"), None
    # A person would look at both ends too; how it ended mostly says more.
    head = whole_characters(read(0, room_bytes // 4))
    begin = min(end, max(stream.kept_from, end - (room_bytes - room_bytes // 4)))
    tail = read(begin, end)
    begin += len(tail) - len(tail := tail.lstrip(_CONTINUATION))
    tail = tail if run.is_over else whole_characters(tail)
    line = f"\n[... {begin - len(head)} bytes left out: {name} from {len(head)} to {begin} ...]\n"
    return head.decode("utf-8", errors="replace") + line + tail.decode("utf-8", errors="replace"), (len(head), begin)


def snippet(run: Run, read: Read) -> str:
    """What was said last on all streams, in the order in which it came."""
    pieces: list[str] = []
    left = SNIPPET_MAX_CHARS
    for name, start, end in reversed(run.tail):
        if left <= 0:
            break
        stream = run.streams[name]
        first, last = stream.last_kept
        start, end = max(start, first), min(end, last)
        low, high = _part_of(stream, start)
        high = min(high, last)
        begin = max(start, end - 4 * left)
        before, after = max(low, begin - 4), min(high, end + 3)
        if end <= begin:
            continue
        data = read(name, before, after)
        text = data[boundary(data, begin - before) : boundary(data, end - before)]
        text = whole_characters(text) if end == stream.bytes and stream.open else text
        pieces.append(text.decode("utf-8", errors="replace")[-left:])
        left -= len(pieces[-1])
    return "".join(reversed(pieces))


def snippet_at(run: Run, tail: Tail, read: Read) -> str:
    """What had been said last when `tail` was the run's: of bytes that were there then, and are still kept.

    It is the same whenever it is asked for, until bytes are given up.
    """
    pieces: list[str] = []
    left = SNIPPET_MAX_CHARS
    ends = {name: end for name, _, end in tail}
    for name, start, end in reversed(tail):
        stream = run.streams.get(name, Stream())
        for hole in stream.holes:
            if hole[0] < end and start < hole[1]:
                start, end = (hole[1], end) if hole[1] < end else (start, hole[0])
        begin = max(start, end - 4 * left)
        if left <= 0 or end <= begin:
            continue
        low, high = _part_of(stream, start)
        before, after = max(low, begin - 4), min(high, end + 3, ends[name])
        low_kept = max([before, *(stop for _, stop in stream.holes if stop <= begin)])
        data = read(name, low_kept, min(after, stream.kept_end(begin)))
        text = data[boundary(data, begin - low_kept) : boundary(data, end - low_kept)]
        text = whole_characters(text) if end == ends[name] else text
        pieces.append(text.decode("utf-8", errors="replace")[-left:])
        left -= len(pieces[-1])
    return "".join(reversed(pieces))


def _part_of(stream: Stream, offset: int) -> tuple[int, int]:
    """The attempt's bytes among which that one is; what survivors say behind the run's end says nothing of them."""
    low = max(part for part in stream.parts if part <= offset)
    end = stream.bytes if stream.ended_at is None else stream.ended_at
    return low, min((part for part in stream.parts if part > offset), default=end)


def match_text(data: bytes, match_bytes: int) -> tuple[str, bool]:
    """The text of a match of that many bytes, of which `data` are the first; whether it was cut."""
    is_cut = match_bytes > MATCH_MAX_BYTES
    data = whole_characters(data[:MATCH_MAX_BYTES]) if is_cut else data
    return data.decode("utf-8", errors="replace"), is_cut


class Line(msgspec.Struct, frozen=True):
    """The line that a match stands on, as far as it is written and kept; `is_cut` when it is longer than that."""

    text: str
    is_cut: bool


def around(run: Run, name: str, start: int, end: int, read: Read) -> Read:
    """Reads what stands around these bytes with one read, where they are few and nothing near them is gone."""
    stream = run.streams[name]
    if stream.holes or end - start > MATCH_MAX_BYTES:
        return read
    low, high = max(0, start - LINE_MAX_BYTES), min(stream.bytes, end + LINE_MAX_BYTES)
    data = read(name, low, high)

    def read_near(other: str, begin: int, stop: int) -> bytes:
        if other == name and low <= begin and stop <= high:
            return data[begin - low : stop - low]
        return read(other, begin, stop)

    return read_near


def line_around(run: Run, name: str, start: int, end: int, read: Read) -> Line:
    """The line around these bytes: of a match over several lines, all of them. No more than LINE_MAX_BYTES of it."""
    stream = run.streams[name]
    low, high = _part_of(stream, start)
    hole = stream.hole_at(start)
    if hole is not None:
        return Line("", is_cut=True)
    low = max([low, *(hole[1] for hole in stream.holes if hole[1] <= start)])
    high = min(high, stream.kept_end(start), stream.bytes if stream.ended_at is None else max(stream.ended_at, end))
    before = read(name, back := max(low, start - LINE_MAX_BYTES), start)
    begin = back + before.rfind(b"\n") + 1
    last = max(start, end - 1)
    ahead = min(high, max(end, last + LINE_MAX_BYTES))
    behind = read(name, last, ahead).find(b"\n")
    stop = last + behind if behind >= 0 else ahead
    is_cut = (begin == back > low) or (behind < 0 and ahead < high)
    if stop - begin > LINE_MAX_BYTES:
        is_cut = True
        begin = max(begin, min(start, stop - LINE_MAX_BYTES))
        stop = begin + LINE_MAX_BYTES
    data = read(name, begin, stop)
    if is_cut:
        data = whole_characters(data).lstrip(_CONTINUATION)
    return Line(data.decode("utf-8", errors="replace"), is_cut)
