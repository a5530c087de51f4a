"""Random patterns that Python's `re` and RE2 read alike over bytes, and random bytes for them."""

from __future__ import annotations

import re

from hypothesis import strategies as st

ATOMS = (
    "a", "b", "c", "ab", ".", "[ab]", "[^a]", "[^\\n]", "\\n", "\\x00", " ", "\\w", "\\W", "\\s", "\\d", "[a-c]", "é",
    "✓", "(?s:.)",
    "\\xa9", "[\\x80-\\xbf]", "[^\\n ]", "\\S", "\\D", "(?i:B)",
)  # fmt: skip
MARKS = ("^", "$", "\\b", "\\B")
TIMES = ("*", "+", "?", "{2}", "{1,2}", "{2,}", "{0,2}", "*?", "+?", "??")


def _combined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.lists(inner, min_size=2, max_size=4).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda ways: "(?:" + "|".join(ways) + ")"),
        st.tuples(inner, st.sampled_from(TIMES)).map(lambda both: f"(?:{both[0]}){both[1]}"),
    )


def patterns() -> st.SearchStrategy[str]:
    """Small ones: what is refused is left to the caller."""
    leaf = st.one_of(st.sampled_from(ATOMS), st.sampled_from(ATOMS), st.sampled_from(ATOMS), st.sampled_from(MARKS))
    return st.recursive(leaf, _combined, max_leaves=7)


def for_re(pattern: str) -> bytes:
    """The same as Python's `re` reads it over bytes: a character's bytes held together."""
    return re.sub("[^\x00-\x7f]", lambda found: f"(?:{found[0]})", pattern).encode()


def texts() -> st.SearchStrategy[bytes]:
    pieces = (
        b"a",
        b"b",
        b"c",
        b"ab",
        b"\n",
        b" ",
        b"\0",
        "é".encode(),
        "✓".encode(),
        b"\xc3",
        b"\xa9",
        b"1",
        b"\r",
        b"_",
        "\U0001f980".encode(),
    )
    return st.lists(st.sampled_from(pieces), max_size=14).map(b"".join)
