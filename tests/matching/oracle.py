"""What a match is, by brute force with Python's `re`: every start is tried against every end."""

from __future__ import annotations

import re
from functools import cache

Span = tuple[int, int]


@cache
def compiled(pattern: bytes) -> re.Pattern[bytes]:
    return re.compile(pattern, re.MULTILINE)


def matches(pattern: bytes, data: bytes, start: int, end: int) -> bool:
    """Whether exactly `data[start:end]` matches where it stands; the look-ahead leaves it its neighbours."""
    found = re.compile(b"(?:" + pattern + rb")(?=[\x00-\xff]{%d}(?![\x00-\xff]))" % (len(data) - end), re.MULTILINE)
    return found.match(data, start) is not None


def character(data: bytes, place: int) -> Span:
    """The character that the byte at `place` belongs to, or the byte itself."""
    for begin in range(max(0, place - 3), place + 1):
        for size in (2, 3, 4):
            if begin + size > place:
                try:
                    if len(data[begin : begin + size].decode()) == 1 and begin + size <= len(data):
                        return begin, begin + size
                except UnicodeDecodeError:
                    continue
    return place, place + 1


def on_stream(pattern: bytes, data: bytes, begin: int) -> list[Span]:
    """The earliest end, then the leftmost start, then on from there; `data` before `begin` is only looked back at."""
    hits: list[Span] = []
    floor = begin
    end = floor + 1
    while end <= len(data):
        start = next((at for at in range(floor, end) if matches(pattern, data, at, end)), None)
        if start is None:
            end += 1
            continue
        # a character that began before the scan is not whole to it
        first = max(floor, begin + character(data[begin:], start - begin)[0])
        last = begin + character(data[begin:], end - begin - 1)[1]
        hits.append((first, last))
        floor = last
        end = floor + 1
    return hits


def in_lines(pattern: bytes, data: bytes, begin: int) -> list[Span]:
    """Greedy in what is left of each line, as `re` does it."""
    hits: list[Span] = []
    at = begin
    for line in data[begin:].split(b"\n"):
        # one byte stands for the line before the scan's start
        before = data[at - 1 : at] if at == begin and data[at - 1 : at] != b"\n" and at else b""
        place = len(before)
        whole = before + line
        while found := compiled(pattern).search(whole, place):
            first, last = found.span()
            first = max(place, len(before) + character(line, first - len(before))[0])
            last = len(before) + character(line, last - len(before) - 1)[1]
            hits.append((at + first - len(before), at + last - len(before)))
            place = last
        at += len(line) + 1
    return hits
