"""Ranges of characters as sequences of bytes, and where the character lies that a byte belongs to."""

from __future__ import annotations

import codecs
from collections.abc import Iterator

from limpet.engine.matching.tree import Any, Node, One, Row, bits

LAST = 0x10FFFF
SURROGATES = (0xD800, 0xDFFF)
_EDGES = (0x7F, 0x7FF, 0xFFFF)


def characters(ranges: list[tuple[int, int]]) -> Node:
    """One character of these ranges, as its bytes in UTF-8."""
    ways = tuple(
        Row(tuple(One(bits(range(low, high + 1))) for low, high in row))
        for first, last in ranges
        for row in _rows(first, last)
    )
    return ways[0] if len(ways) == 1 else Any(ways)


def without(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """All characters beyond ASCII that are in none of the ranges."""
    left: list[tuple[int, int]] = []
    at = 0x80
    for first, last in sorted([*ranges, SURROGATES]):
        if first > at:
            left.append((at, first - 1))
        at = max(at, last + 1)
    return [*left, (at, LAST)] if at <= LAST else left


def _rows(first: int, last: int) -> Iterator[list[tuple[int, int]]]:
    """Splits until each part is a row of ranges of bytes that are free of each other."""
    if first > last:
        return
    if first <= SURROGATES[1] and last >= SURROGATES[0]:
        yield from _rows(first, SURROGATES[0] - 1)
        yield from _rows(SURROGATES[1] + 1, last)
        return
    for edge in _EDGES:
        if first <= edge < last:
            yield from _rows(first, edge)
            yield from _rows(edge + 1, last)
            return
    for shift in (6, 12, 18):
        mask = (1 << shift) - 1
        if first & ~mask != last & ~mask:
            if first & mask:
                yield from _rows(first, first | mask)
                yield from _rows((first | mask) + 1, last)
                return
            if last & mask != mask:
                yield from _rows(first, (last & ~mask) - 1)
                yield from _rows(last & ~mask, last)
                return
    yield list(zip(chr(first).encode(), chr(last).encode(), strict=True))


def begin_of(data: bytes, place: int, floor: int = 0) -> int:
    """Where the character begins that the byte at `place` belongs to; bytes that are no character are one each.

    Nothing before `floor` is looked at.
    """
    if place >= len(data) or data[place] & 0xC0 != 0x80:
        return place
    for begin in range(place - 1, max(place - 4, floor - 1), -1):
        if data[begin] & 0xC0 != 0x80:
            end = _end(data, begin)
            return begin if end is not None and end > place else place
    return place


def end_of(data: bytes, place: int, floor: int = 0, *, over: bool) -> int | None:
    """Where the character ends that `place` is inside of; None: more bytes must tell, and the data is not `over`."""
    if place < len(data) and data[place] & 0xC0 != 0x80:
        return place
    for begin in range(place - 1, max(place - 4, floor - 1), -1):
        if data[begin] & 0xC0 != 0x80:
            end = _end(data, begin)
            if end is None:
                return place if over else None
            return max(place, end)
    return place


def _end(data: bytes, begin: int) -> int | None:
    """Where the character that begins there ends: at `begin` if there is none, None if it has only begun."""
    lead = data[begin]
    if lead < 0xC2 or lead > 0xF4:
        return begin
    size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    piece = data[begin : begin + size]
    try:
        codecs.utf_8_decode(piece, "strict", False)
    except UnicodeDecodeError:
        return begin
    return begin + size if len(piece) == size else None
