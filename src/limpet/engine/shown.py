"""The text of what is shown: of one item, and of what was said last."""

from collections.abc import Callable
from typing import Final

from limpet.model.characters import boundary, whole_characters
from limpet.model.items import Item
from limpet.model.run import Run
from limpet.model.stream import Stream

SNIPPET_MAX_CHARS: Final = 2000

# Reads from a stream's bytes: its name, from where, to where.
Read = Callable[[str, int, int], bytes]


def item_text(run: Run, item: Item, read: Read) -> str:
    """What an output item says. The texts of a stream's items together are the text of its bytes."""
    assert item.stream is not None
    assert item.start is not None
    assert item.end is not None
    stream = run.streams[item.stream]
    low, high = _part_of(stream, item.start)
    is_cut = item.end == stream.head_end < (stream.bytes if stream.ended_at is None else stream.ended_at)
    # Behind the head nothing is sure to stay: what has only begun there is left off.
    before = max(low, item.start - 4)
    data = read(item.stream, before, item.end if is_cut else min(high, item.end + 3))
    begin = boundary(data, item.start - before)
    text = data[begin : boundary(data, item.end - before)]
    return (whole_characters(text) if is_cut else text).decode("utf-8", errors="replace")


def snippet(run: Run, read: Read) -> str:
    """What was said last on all streams, in the order in which it came."""
    pieces: list[str] = []
    left = SNIPPET_MAX_CHARS
    for name, start, end in reversed(run.tail):
        if left <= 0:
            break
        start = max(start, run.streams[name].kept_from)
        low, high = _part_of(run.streams[name], start)
        begin = max(start, end - 4 * left)
        before, after = max(low, begin - 4), min(high, end + 3)
        if end <= begin:
            continue
        data = read(name, before, after)
        text = data[boundary(data, begin - before) : boundary(data, end - before)]
        text = whole_characters(text) if end == run.streams[name].bytes and run.streams[name].open else text
        pieces.append(text.decode("utf-8", errors="replace")[-left:])
        left -= len(pieces[-1])
    return "".join(reversed(pieces))


def _part_of(stream: Stream, offset: int) -> tuple[int, int]:
    """The attempt's bytes among which that one is."""
    low = max(part for part in stream.parts if part <= offset)
    return low, min((part for part in stream.parts if part > offset), default=stream.bytes)
