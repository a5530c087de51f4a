"""What is accepted means what RE2 reads, and what cannot is refused in plain words."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from limpet.engine.matching import MatchType, compile_pattern, tree
from limpet.engine.matching.syntax import NotOurs, read
from limpet.model.errors import Refusal

re2: Any = importlib.import_module("re2")

pytestmark = pytest.mark.requirement("3.5")

MORE = int(os.environ.get("LIMPET_MATCHING_EXAMPLES", "1"))

TOKENS = (
    *"aAbkKzZ01 _-^$.|()[]{},:?*+\\<>=!&#~\"'@/%;`",
    "(?:", "(?P<n>", "(?<m>", "(?i)", "(?i:", "(?s)", "(?-s:", "(?m-s)", "(?U)", "(?Ui-s:", "(?-m)", "(?-m:", "(?",
    "(?=", "(?!",
    "(?<=", "(?#c)", "(?|", "(?>", "(?x)", "(*ACCEPT)", "{2}", "{1,2}", "{,2}", "{2,}", "{0}", "{1,2", "*?", "+?",
    "??", "++", "}?",
    "\\d", "\\D", "\\s", "\\S", "\\w", "\\W", "\\b", "\\B", "\\A", "\\z", "\\Z", "\\G", "\\C", "\\K", "\\R", "\\h",
    "\\v", "\\N", "\\X",
    "\\Q", "\\E", "\\Qa+\\E", "\\x41", "\\x{41}", "\\x{0}", "\\x", "\\101", "\\07", "\\0", "\\1", "\\18", "\\12",
    "\\cA", "\\e", "\\n", "\\t",
    "\\.", "\\[", "\\]", "\\-", "\\_", "\\^", "\\/", "\\ ", "[[:alpha:]]", "[[:^digit:]]", "[[:word:]]", "[:alpha:]",
    "[[:<:]]", "[[.a.]]",
    "[^a]", "[]a]", "[^]a]", "[a-k]", "[k-a]", "[\\d-z]", "[\\w.]", "[^\\D1]", "[a-\\x6b]", "[-a]", "[a-]",
    "[[:space:]\\n]", "[\\b]", "[^\\n]",
    "\\pN", "\\p{Greek}", "\\PL", "[[:ascii:]]", "[\\Qa\\E]", "\n", "\t", "\0",
)  # fmt: skip

TEXT_TOKENS = (
    "a",
    "A",
    "b",
    "k",
    "K",
    "z",
    "Z",
    "0",
    "1",
    " ",
    "_",
    "-",
    "\n",
    "\t",
    "\v",
    "\0",
    "+",
    "\\",
    "E",
    "Q",
    "^",
    "]",
    ".",
    "n",
    "\x07",
)


def engine(pattern: bytes) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.encoding = re2.Options.Encoding.LATIN1
    return re2.compile(b"(?m)" + pattern, options)


def found(compiled: Any, data: bytes) -> list[list[tuple[int, int]]]:
    return [[each.span(number) for number in range(compiled.groups + 1)] for each in compiled.finditer(data)]


@given(
    tokens=st.lists(st.sampled_from(TOKENS), min_size=1, max_size=8),
    data=st.lists(st.sampled_from(TEXT_TOKENS), max_size=12).map("".join),
)
@example(["a", "\\Q", "\\E", "+"], "aa")
@example(["(?i)", "+"], "a+")
@example(["[a-", "\\x6b", "]"], "ak")
@settings(max_examples=MORE * 2000, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_a_pattern_means_what_re2_reads(tokens: list[str], data: str) -> None:
    """Spans of all groups are the same for the caller's text and for what is made of it."""
    text = "".join(tokens)
    ends = ("\\A", "\\z", "-m")
    if any(each in text for each in ends):
        data = data.replace("\n", "")
    try:
        theirs = engine(text.encode())
    except re2.error:
        with pytest.raises(Refusal) as refused:
            compile_pattern(text, "line")
        assert refused.value.code == "invalid_argument"
        return
    try:
        ours = engine(tree.written(read(text, of_line=True), groups=True))
    except NotOurs:
        return
    assert found(ours, data.encode()) == found(theirs, data.encode())


def refusal(text: str, match_type: MatchType = "regex", field: str = "regex") -> Refusal:
    with pytest.raises(Refusal) as refused:
        compile_pattern(text, match_type, field=field)
    return refused.value


@pytest.mark.requirement("1.8")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("(", "missing )"),
        ("[a", "missing ]"),
        ("*a", "repetition"),
        ("a{1001}", "repetition"),
        ("(a)\\1", "back references"),
        ("a(?=b)", "look-around"),
        ("a(?!b)", "look-around"),
        ("(?<=a)b", "look-around"),
        ("(?<!a)b", "look-around"),
        ("a++", "repetition"),
        ("(?>a)", "perl operator"),
        ("(?(1)a|b)", "perl operator"),
        ("(?#c)a", "perl operator"),
        ("a\\Z", "escape"),
        ("\\Ga", "escape"),
        ("\\Ka", "escape"),
        ("\\h", "escape"),
        ("\\R", "escape"),
        ("\\pL", "characters"),
        ("[\\p{Greek}]", "characters"),
        ("\\x{100}", "no byte"),
        ("\\400", "no byte"),
        ("(?i)é", "ASCII"),
        ("(?i)[à-ü]", "ASCII"),
        ("[^\\xffé]", "beyond ASCII"),
        ("[\\x80-é]", "between a byte and a character"),
        ("", "nothing"),
        ("a*", "nothing"),
        ("a|", "nothing"),
        ("^$", "nothing"),
        ("\\b", "nothing"),
        ("(a?){3}", "nothing"),
        ("(?:" * 200 + "a" + ")" * 200, "deep"),
        ("x" * 5000, "bytes long"),
        ("é" * 3000, "bytes long"),
        ("(?:(?:a{30}){30}b){1,1}" * 200, ""),
        ("\ud800", "UTF-8"),
        ("a?b?c?d?" * 250 + "z", "too large"),
        ("(?:a?){300}z", "too large"),
        ("a.{299}b.{399}c", "too large"),
    ],
)
def test_what_cannot_be_is_refused(text: str, words: str) -> None:
    for match_type in ("regex", "line"):
        no = refusal(text, match_type, "watch.regex")
        assert no.code == "invalid_argument"
        assert no.fields == {"field": "watch.regex"}
        assert words in no.message
        assert no.message.startswith("watch.regex cannot be used: ")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("\\Aa", "ends of a text"),
        ("a\\z", "ends of a text"),
        ("(?-m)^a", "ends of a text"),
        ("a^b", "never match"),
        ("a$b", "never match"),
        ("[^\\x00-\\xff]", "never match"),
        ("\\s*^a", "where a match begins"),
        ("a$\\s*", "where it ends"),
        ("(?:.*a.*b){20}", "too large"),
        (".*a.{500}b", "too large"),
    ],
)
def test_what_a_stream_cannot_have_is_refused(text: str, words: str) -> None:
    no = refusal(text)
    assert (no.code, no.fields) == ("invalid_argument", {"field": "regex"})
    assert words in no.message


def test_an_unknown_way_of_matching_is_refused() -> None:
    no = refusal("a", "glob")  # pyright: ignore[reportArgumentType]
    assert no.fields == {"field": "match_type"}


def test_an_empty_text_is_refused() -> None:
    assert "empty" in refusal("", "substring").message
