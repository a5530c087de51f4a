"""Watchers and waits find what 3.5 says, by brute force, however the bytes were cut on arrival (1.8, 0.11)."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .hits import Hit, chain, feed, hits, watch
from .items import all_items
from .oracle import in_lines, in_stream
from .surface import Http

# A group counts as one atom, so that a repeat is of the whole character.
ATOMS = st.sampled_from(["a", "b", "[ab]", "1", "[0-9]", " ", "(?:é)", "(?:ab|b1)", "(?:a|ab)"])
REPEATS = st.sampled_from(["", "", "?", "*", "+", "{2}", "{1,2}"])
LOOSE = st.lists(st.builds(str.__add__, ATOMS, REPEATS), max_size=2).map("".join)
# One atom at least is always there: a pattern that can match nothing is refused.
PATTERNS = st.builds(
    lambda *parts: "".join(parts),
    st.sampled_from(["", "", "^", r"\b"]),
    LOOSE,
    ATOMS,
    LOOSE,
    st.sampled_from(["", "", "$", r"\b"]),
)
LETTERS = st.sampled_from([b"a", b"b", b"a", b"b", b"1", b" ", b"\n", b"\r", "é".encode(), b"\xc3", b"\xa9", b"\0"])
CONTENTS = st.lists(LETTERS, max_size=40).map(b"".join)


def pieces_of(content: bytes, cuts: Sequence[int]) -> list[bytes]:
    places = sorted({0, len(content), *(cut % (len(content) + 1) for cut in cuts)})
    return [content[start:end] for start, end in itertools.pairwise(places)]


def expected(content: bytes, pattern: str, match_type: str, since: int = 0) -> list[Hit]:
    spans = in_stream(pattern, content, since) if match_type == "regex" else in_lines(pattern, content, since)
    return [Hit(start, end, content[start:end].decode(errors="replace")) for start, end in spans]


@pytest.mark.parametrize(
    ("pattern", "content", "stream", "lines"),
    [
        ("[0-9]+", b"12345", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)], [(0, 5)]),
        ("a+b", b"aab ab", [(0, 3), (4, 6)], [(0, 3), (4, 6)]),
        ("^a|b$", b"a\nab", [(0, 1), (2, 3), (3, 4)], [(0, 1), (2, 3), (3, 4)]),
        (r"\bb", b"ab b", [(3, 4)], [(3, 4)]),
        ("ab|b1", b"ab1b1", [(0, 2), (3, 5)], [(0, 2), (3, 5)]),
        ("a.*b", b"a1b2b\nab", [(0, 3), (6, 8)], [(0, 5), (6, 8)]),
    ],
)
def test_the_brute_force_itself(pattern: str, content: bytes, stream: list[object], lines: list[object]) -> None:
    """Its answers, worked out by hand from the words of the statement."""
    assert in_stream(pattern, content) == stream
    assert in_lines(pattern, content) == lines


@pytest.mark.requirement("1.8", "3.5")
@settings(max_examples=25, deadline=None)
@given(
    content=CONTENTS,
    cuts=st.lists(st.integers(0, 1000), max_size=5),
    patterns=st.lists(PATTERNS, min_size=1, max_size=5),
)
def test_watchers_find_every_match_once(http: Http, content: bytes, cuts: list[int], patterns: list[str]) -> None:
    kinds = [
        (f"{match_type}-{n}", pattern, match_type)
        for n, pattern in enumerate(patterns)
        for match_type in ("regex", "line")
    ]
    watchers = [watch(pattern, event, match_type=match_type) for event, pattern, match_type in kinds]
    run_id = http.spawn("exec cat", stdin="open", watch=watchers)
    feed(http, run_id, pieces_of(content, cuts))
    http.finish(run_id)
    for event, pattern, match_type in kinds:
        assert hits(http, run_id, event) == expected(content, pattern, match_type), (pattern, match_type, content)


@pytest.mark.requirement("0.11", "3.5")
@settings(max_examples=15, deadline=None)
@given(content=CONTENTS, cuts=st.lists(st.integers(0, 1000), max_size=3), pattern=PATTERNS, offset=st.integers(0, 1000))
def test_waits_that_follow_their_cursor_find_every_match_once(
    http: Http, content: bytes, cuts: list[int], pattern: str, offset: int
) -> None:
    """From the first byte, and from any other: what stands before that one is known, and is no part of a match."""
    run_id = http.spawn("exec cat", stdin="open")
    feed(http, run_id, pieces_of(content, cuts))
    http.finish(run_id)
    for match_type in ("regex", "line"):
        condition = {"regex": pattern, "match_type": match_type}
        found = [hit for _, hit in chain(http, run_id, condition)]
        assert found == expected(content, pattern, match_type), (pattern, match_type, content)
        since = offset % (len(content) + 1)
        found = [hit for _, hit in chain(http, run_id, condition, {run_id: {"stdout": since}})]
        assert found == expected(content, pattern, match_type, since), (pattern, match_type, content, since)


# Where dialects of patterns differ: white space, escapes, classes, repeats, flags, bytes that are no text.
SYNTAX = [
    r"a\sb", r"a[^\s]b", r"a\Sb", r"a\vb", r"a\fb", r"a[[:space:]]b", r"a[[:blank:]]b", r"a[[:punct:]]b", r"a\x0bb",
    r"a\013b", r"a\wb", r"a[\W]b", r"a\Db", r"a\Bb", r"a\xe9b", r"aéb", r"a[^x]b", r"a.b", r"a..b", r"a(?i)B",
    r"a{,2}b", r"a{2", r"a\Q.\Eb", r"a\C\Cb", r"a[]x]b", r"(?U)a.+b", r"^a.b$", r"\Ba\B", r"a($|x)", r"(^|x)a", r"a\b.",
]  # fmt: skip
TEXTS = [
    b"a\x0bb", b"a b", b"a\tb", b"a\rb", b"a\xa0b", b"a\xe9b", "aéb".encode(), b"a\x00b", b"a_b", b"a.b", b"ab", b"aab",
    b"a{,2}b", b"a{2", b"A B aB", b"xax", b"a]b", b"a5b", b"a\xff\xfeb", b"aaa",
]  # fmt: skip


@pytest.mark.requirement("3.5", "1.8")
@pytest.mark.parametrize("text", TEXTS, ids=repr)
def test_the_syntax_is_one_in_the_stream_and_in_lines(http: Http, text: bytes) -> None:
    """RE2's, on bytes: on a line that is alone, a pattern matches in both ways or in neither."""
    watchers = [watch(pattern, f"s{n}") for n, pattern in enumerate(SYNTAX)]
    watchers += [watch(pattern, f"l{n}", match_type="line") for n, pattern in enumerate(SYNTAX)]
    run_id = http.spawn("exec cat", stdin="open", watch=watchers)
    feed(http, run_id, [text])
    http.finish(run_id)
    told = {item["event"] for item in all_items(http, run_id) if item["kind"] == "event"}
    matched = [[pattern for n, pattern in enumerate(SYNTAX) if f"{way}{n}" in told] for way in "sl"]
    assert matched[0] == matched[1]
    assert (r"a\sb" in matched[0]) == (text in (b"a b", b"a\tb", b"a\rb"))
    assert (r"a.b" in matched[0]) == (len(text) == 3 and text[:1] == b"a" and text[2:] == b"b")
