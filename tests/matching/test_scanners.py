"""What the contract says of matching, case by case; what once broke; and that nothing stalls."""

from __future__ import annotations

import subprocess
import sys
import time
import tracemalloc

import pytest

from limpet.engine.matching import Hit, MatchType, compile_pattern
from limpet.engine.matching.scan_line import HITS_IN_A_LINE, LINE_BYTES
from limpet.engine.matching.scan_stream import WIDENED_BYTES
from tests.matching.feeding import fed, found, spans

pytestmark = pytest.mark.requirement("3.5")


@pytest.mark.parametrize(
    ("text", "data", "expected"),
    [
        ("[0-9]+", b"12345", [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5)]),
        ("a.*b", b"aab ab", [(0, 3), (4, 6)]),
        ("^foo$", b"foo\nfoo\nxfoo\nfoo", [(0, 3), (4, 7), (13, 16)]),
        ("foo$", b"foo", [(0, 3)]),
        (r"\bfoo\b", b"foo foo_ foo", [(0, 3), (9, 12)]),
        (r"\Bo\B", b"foo oo oxo", [(1, 2)]),
        ("a$\\nb", b"a\nb", [(0, 3)]),
        ("a\\n^b", b"a\nb", [(0, 3)]),
        ("(?:^a\\n)+b", b"a\na\nb", [(0, 5)]),
        (r"(^|\s)ab($|\s)", b"ab ab\nab", [(0, 3), (5, 8)]),
        ("a.b", b"a\nb", []),
        ("(?s)a.b", b"a\nb", [(0, 3)]),
        ("x\\x00y", b"x\0y", [(0, 3)]),
        ("\\Qa+\\E+", b"a++", [(0, 2)]),
        (".", "aéb✓".encode(), [(0, 1), (1, 3), (3, 4), (4, 7)]),
        ("é+", "éé".encode(), [(0, 2), (2, 4)]),
        ("[éè]", "éà".encode(), [(0, 2)]),
        ("[^é]", "éaè".encode(), [(2, 3), (3, 5)]),
        ("[à-ü]x", "éx".encode(), [(0, 3)]),
        ("\\xa9", "é".encode(), [(0, 2)]),
        ("\\xa9", b"\xa9a\xc3", [(0, 1)]),
    ],
)
def test_the_stream_is_matched_as_the_contract_says(text: str, data: bytes, expected: list[tuple[int, int]]) -> None:
    assert found(text, data) == expected


@pytest.mark.parametrize(
    ("text", "data", "expected"),
    [
        ("[0-9]+", b"12345\n67", [(0, 5), (6, 8)]),
        ("a.*b", b"ab ab\n", [(0, 5)]),
        ("a.*?b", b"ab ab\n", [(0, 2), (3, 5)]),
        ("^a|b$|c", b"aab\ncb", [(0, 1), (2, 3), (4, 5), (5, 6)]),
        ("\\Aa\\z", b"a\naa\na", [(0, 1), (5, 6)]),
        ("[^x]+", b"a\nb", [(0, 1), (2, 3)]),
        ("a\\s*b", b"a\nb", []),
        ("é+", "ééx".encode(), [(0, 4)]),
    ],
)
def test_lines_are_matched_as_the_contract_says(text: str, data: bytes, expected: list[tuple[int, int]]) -> None:
    assert found(text, data, "line") == expected


def test_plain_text_is_found_one_after_the_other() -> None:
    assert found("aa", b"aaaaa", "substring", 7) == [(7, 9), (9, 11)]
    assert found("a.b", b"axb a.b", "substring") == [(4, 7)]


@pytest.mark.parametrize("match_type", ["regex", "line"])
@pytest.mark.parametrize(
    ("text", "line_before", "expected"),
    [
        ("^foo", b"", [(5, 8)]),
        ("^foo", b"x", []),
        (r"\bfoo", b"x ", [(5, 8)]),
        (r"\bfoo", b"x", []),
        (r"\Bfoo", b"x", [(5, 8)]),
    ],
)
def test_a_scan_that_begins_in_a_line_knows_it(
    match_type: MatchType, text: str, line_before: bytes, expected: list[tuple[int, int]]
) -> None:
    assert found(text, b"foo", match_type, 5, line_before) == expected


def test_what_a_match_looks_at_must_be_known() -> None:
    scanner = compile_pattern(r"foo\b").scanner(0)
    assert scanner.feed(b"foo") == []
    assert spans(scanner.feed(b" foo")) == [(0, 3)]
    assert spans(scanner.finish()) == [(4, 7)]
    scanner.close()


def test_a_line_is_looked_at_when_it_is_finished() -> None:
    scanner = compile_pattern("o+", "line").scanner(0)
    assert scanner.feed(b"foo") == []
    assert spans(scanner.feed(b"o\nfo")) == [(1, 4)]
    assert spans(scanner.finish()) == [(6, 7)]
    scanner.close()


def test_groups_are_told_by_number_and_name() -> None:
    scanner = compile_pattern(r"(?P<name>\w+)=(?:(\d+)|(é))?", "line").scanner(0)
    first, second = scanner.feed("a=12 b=é\n".encode())
    assert first.groups == {"1": "a", "name": "a", "2": "12", "3": None}
    assert second == Hit(5, 9, {"1": "b", "name": "b", "2": None, "3": "é"})
    scanner.close()


# what once broke


def test_a_restart_beside_half_a_character_finds_nothing_twice() -> None:
    pattern = compile_pattern(".")
    first = pattern.scanner(0)
    assert len(first.feed(b"aaaa\xc3")) == 4
    assert first.restart_at == 4
    assert spans(first.feed(b"\xa9")) == [(4, 6)]
    first.close()


def test_a_line_does_not_widen_into_what_lies_before_the_scan() -> None:
    assert found("(?s:.)", b"\x9c\x93", "line", 2, b"a\xe2") == [(2, 3), (3, 4)]


# bounds


def test_a_long_line_is_cut_and_says_so() -> None:
    """`$` and `\\b` look at what really stands behind the cut."""
    line = b"a" * (LINE_BYTES - 1)
    for tail, kept in ((b"b", False), (b"bc", True)):
        data = line + tail + b"\nx b\n"
        for parts in ([data], [data[place : place + 1000] for place in range(0, len(data), 1000)]):
            hits = fed(compile_pattern("b", "line").scanner(0), parts)
            assert hits == [Hit(LINE_BYTES - 1, LINE_BYTES, {}, kept), Hit(len(data) - 2, len(data) - 1, {})]
            for text in ("b$", "b\\b"):
                hits = fed(compile_pattern(text, "line").scanner(0), parts)
                assert len(hits) == (1 if kept else 2)


def test_one_line_gives_so_many_hits() -> None:
    hits = fed(compile_pattern("a", "line").scanner(0), [b"a" * 5000 + b"\na\n"])
    assert len(hits) == HITS_IN_A_LINE + 1


def test_a_line_of_any_length_takes_little_memory() -> None:
    scanner = compile_pattern("b.*c$", "line").scanner(0)
    stream = compile_pattern("b.*c$").scanner(0)
    piece = b"ab" * (32 << 10)
    tracemalloc.start()
    for _ in range(256):
        assert scanner.feed(piece) == []
        assert stream.feed(piece) == []
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20
    size = 256 * len(piece)
    assert scanner.position == size
    assert scanner.restart_at == 0
    assert spans(stream.feed(b"c\n")) == [(1, size + 1)]
    assert scanner.feed(b"c\nbc\n")[-1] == Hit(size + 2, size + 4, {})
    scanner.close()
    stream.close()


def test_a_long_match_is_widened_the_same_however_it_is_cut() -> None:
    """A start inside of a character is widened over so many bytes and no further."""
    for size in (WIDENED_BYTES - 2, WIDENED_BYTES + 2):
        data = b"\xc3\xa9" + b"a" * size + b"b"
        assert len(found("[\\xa9a]+b", data)) == 1
        ((start, _),) = found("[\\xa9a]+b", data)
        assert start == (0 if size < WIDENED_BYTES else 1)


@pytest.mark.parametrize("match_type", ["regex", "line", "substring"])
def test_a_scanner_stops_after_so_many_hits(match_type: MatchType) -> None:
    scanner = compile_pattern("a", match_type).scanner(0, most_hits=1001)
    hits = scanner.feed(b"a\n" * 600)
    hits += scanner.feed(b"a\n" * 600)
    assert len(hits) == 1001
    assert scanner.done
    assert scanner.feed(b"a\n") == scanner.finish() == []
    assert scanner.position == scanner.restart_at == 2402


@pytest.mark.requirement("1.8", "F70")
@pytest.mark.parametrize("text", ["(a+)+$", "(a|aa)+$", "(a*)*b", "(?:a?){20}a{20}b", "(.*a){5}x", "a[ab]*c|b"])
@pytest.mark.parametrize("match_type", ["regex", "line"])
def test_hostile_patterns_are_linear(text: str, match_type: MatchType) -> None:
    """Injector: the pattern itself, over bytes that stop a backtracking engine; it stops `re` within a line of 30."""
    scanner = compile_pattern(text, match_type).scanner(0, most_hits=1001)
    line = b"a" * 4000 + b"!\n"
    begun = time.thread_time()
    for _ in range(50):
        scanner.feed(line)
    assert scanner.position == 50 * len(line)
    assert time.thread_time() - begun < 5
    scanner.close()


@pytest.mark.requirement("1.8", "F70")
def test_a_backtracking_engine_would_have_stopped() -> None:
    """Injector: `(a+)+$` over 24 bytes already takes `re` longer than the line of 4,000 takes the matcher."""
    line = "a" * 24 + "!"
    code = f"import re; re.search('(a+)+$', {line!r})"
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", code], check=True)
    slow = time.monotonic() - begun
    begun = time.thread_time()
    assert found("(a+)+$", line.encode()) == []
    assert time.thread_time() - begun < slow


MISSING = """
import sys
sys.modules["hyperscan"] = None
import limpet.engine.matching as matching
from limpet.model.errors import Refusal
assert [hit.start for hit in matching.compile_pattern("b", "line").scanner(0).feed(b"ab\\n")] == [1]
assert [hit.start for hit in matching.compile_pattern("b", "substring").scanner(0).feed(b"ab")] == [1]
lines = [matching.compile_pattern(text, "line") for text in "ab"]
assert [index for index, _ in matching.WatchSet(lines, [0, 0]).feed(b"ab\\n")] == [0, 1]
try:
    matching.compile_pattern("b")
except Refusal as no:
    assert (no.code, no.reason) == ("unavailable", "no_stream_engine"), no
else:
    raise AssertionError("it matched without an engine")
"""


def test_without_hyperscan_lines_and_texts_are_matched_and_streams_refused() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
