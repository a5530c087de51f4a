"""Feeds a scanner, and tells what it found."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.engine.matching import Hit, MatchType, Scanner, compile_pattern


def fed(scanner: Scanner, parts: Sequence[bytes]) -> list[Hit]:
    """All hits, to the end of output."""
    hits = [hit for part in parts for hit in scanner.feed(part)]
    hits += scanner.finish()
    scanner.close()
    return hits


def spans(hits: Sequence[Hit]) -> list[tuple[int, int]]:
    return [(hit.start, hit.end) for hit in hits]


def found(
    text: str, data: bytes, match_type: MatchType = "regex", offset: int = 0, line_before: bytes = b""
) -> list[tuple[int, int]]:
    """The spans, found byte by byte as well as at once."""
    pattern = compile_pattern(text, match_type)
    at_once = fed(pattern.scanner(offset, line_before), [data])
    singly = [data[place : place + 1] for place in range(len(data))]
    assert fed(pattern.scanner(offset, line_before), singly) == at_once
    return spans(at_once)
