"""Statement 3.5 by brute force: where a pattern matches in a stream of bytes, and where in its lines."""

import functools
import re

Span = tuple[int, int]


@functools.lru_cache(2048)
def _ending(pattern: bytes, behind: int) -> re.Pattern[bytes]:
    """The pattern, where exactly so many bytes stand behind its match: all its neighbours are the real ones."""
    return re.compile(b"(?:" + pattern + rb")(?=(?s:.){%d}\Z)" % behind, re.MULTILINE)


def in_stream(pattern: str, data: bytes, since: int = 0) -> list[Span]:
    """For each end behind `since`, the leftmost start at or behind the end of the hit before."""
    found: list[Span] = []
    last = since
    for end in range(since + 1, len(data) + 1):
        ending = _ending(pattern.encode(), len(data) - end)
        for start in range(last, end):
            if ending.match(data, start):
                found.append((start, end))
                last = end
                break
    return found


def in_lines(pattern: str, data: bytes, since: int = 0) -> list[Span]:
    """In each line, the last unfinished one too: the hits as a search finds them, each in what the one before left."""
    found: list[Span] = []
    start = 0
    for text in data.split(b"\n"):
        # Where it begins in mid-line, a search knows what stands before: that is no start of a line.
        matches = (
            re.compile(pattern.encode()).finditer(text, max(0, since - start)) if since <= start + len(text) else ()
        )
        found += [(start + match.start(), start + match.end()) for match in matches]
        start += len(text) + 1
    return found
