"""Statement 3.5 by brute force: where a pattern matches in a stream of bytes, and where in its lines."""

import functools
import re

Span = tuple[int, int]


@functools.lru_cache(2048)
def _ending(pattern: bytes, behind: int) -> re.Pattern[bytes]:
    """The pattern, where exactly so many bytes stand behind its match: all its neighbours are the real ones."""
    return re.compile(b"(?:" + pattern + rb")(?=(?s:.){%d}\Z)" % behind, re.MULTILINE)


def in_stream(pattern: str, data: bytes) -> list[Span]:
    """For each end from the first on, the leftmost start at or behind the end of the hit before."""
    found: list[Span] = []
    last = 0
    for end in range(1, len(data) + 1):
        ending = _ending(pattern.encode(), len(data) - end)
        for start in range(last, end):
            if ending.match(data, start):
                found.append((start, end))
                last = end
                break
    return found


def in_lines(pattern: str, data: bytes) -> list[Span]:
    """In each line, the last unfinished one too: the hits as a search finds them, each in what the one before left."""
    found: list[Span] = []
    start = 0
    for text in data.split(b"\n"):
        found += [(start + match.start(), start + match.end()) for match in re.finditer(pattern.encode(), text)]
        start += len(text) + 1
    return found
