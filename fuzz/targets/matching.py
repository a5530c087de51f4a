"""Patterns over streams: however the bytes are cut, and wherever a scanner starts again, the hits are the same."""

from __future__ import annotations

from itertools import pairwise

from fuzz.feed import Feed, pieces
from limpet.engine.matching import Hit, MatchType, Pattern, WatchSet, compile_pattern
from limpet.model.errors import Refusal

TOKENS = (
    *("a", "b", "ab", ".", "[ab]", "[^a]", "\\n", "\\w", "\\W", "\\s", "\\d", "é", "[é✓]", "[^é]", "\\xa9", "(?s:.)"),
    *(
        "(?i)",
        "(?U)",
        "^",
        "$",
        "\\b",
        "\\B",
        "(",
        "(?:",
        "(?P<n>",
        ")",
        ")",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{1,2}",
        "{2,}",
    ),
    *("*?", "+?", "[", "]", "\\Q", "\\E", "{0,3}", "\\z", "\\A", "(?-m)", "\\x", "\\1", "(?="),
)
TEXT = (
    b"a",
    b"b",
    b"\n",
    b" ",
    b"ab",
    b"\xc3\xa9",
    b"\xe2\x9c\x93",
    b"\xc3",
    b"\xa9",
    b"\xf0\x9f\xa6\x80",
    b"\0",
    b"1",
    b"\r",
    b"_",
)
KINDS: tuple[MatchType, ...] = ("regex", "line", "substring")


BEGINNINGS = (
    ("a", ".", "b"),
    ("[^a]",),
    ("a", "[^a]", "{2}"),
    ("^", "a"),
    ("\\W", "\\b", "a"),
    ("[é✓]", "+"),
    ("a", "$"),
)


def seeds() -> list[bytes]:
    """Each of some patterns, in each way, with bytes cut at a few places."""
    made: list[bytes] = []
    for number, tokens in enumerate(BEGINNINGS):
        for middle in (1, 4, 5, 6, 9, 11):
            head = [number + middle & 1, middle, 2, 1, 3, 2, 4, len(tokens) - 1, *map(TOKENS.index, tokens), number & 1]
            made.append(bytes(head) + bytes((step * 5 + middle) % 14 for step in range(40)))
    return made


def check(data: bytes) -> None:
    feed = Feed(data)
    kind = KINDS[feed.number(len(KINDS))]
    choice = Feed(feed.take(6))
    text = "".join(TOKENS[byte % len(TOKENS)] for byte in feed.take(1 + feed.number(10)))
    begin = feed.number(4)
    raw = b"".join(TEXT[byte % len(TEXT)] for byte in feed.rest()[:400])
    begin = min(begin, len(raw))
    try:
        pattern = compile_pattern(text, kind)
    except Refusal as refused:
        if refused.code != "invalid_argument":
            raise
        return
    at_once = found(pattern, [raw[begin:]], begin, raw)
    for before, after in pairwise(at_once):
        assert before.start < before.end <= after.start, "hits that lie over each other"
    middle = begin + choice.number(len(raw) - begin + 1)
    cuts = choice.cuts(middle - begin, 3)
    in_pieces(pattern, pieces(raw[begin:middle], cuts), begin, raw, at_once)
    watch = WatchSet([pattern, pattern], [begin, begin], line_before(raw, begin))
    shared = watch.feed(raw[begin:middle]) + watch.feed(raw[middle:]) + watch.finish()
    watch.close()
    assert [hit for index, hit in shared if index == 1] == at_once, "in a set other hits than alone"


def line_before(raw: bytes, place: int) -> bytes:
    return raw[:place].rpartition(b"\n")[2]


def found(pattern: Pattern, parts: list[bytes], begin: int, raw: bytes) -> list[Hit]:
    scanner = pattern.scanner(begin, line_before(raw, begin))
    hits = [hit for part in parts for hit in scanner.feed(part)] + scanner.finish()
    scanner.close()
    return hits


def in_pieces(pattern: Pattern, parts: list[bytes], begin: int, raw: bytes, at_once: list[Hit]) -> None:
    """The pieces, then the rest: from the same scanner, and from one that starts where it may."""
    scanner = pattern.scanner(begin, line_before(raw, begin))
    hits = [hit for part in parts for hit in scanner.feed(part)]
    at = scanner.restart_at
    rest = scanner.feed(raw[scanner.position :]) + scanner.finish()
    scanner.close()
    assert hits + rest == at_once, "the hits depend on how the bytes are cut"
    assert found(pattern, [raw[at:]], at, raw) == rest, "started again, it finds something else"
