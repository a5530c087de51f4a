"""Many patterns over one stream: each finds what it would alone, shared or not."""

from __future__ import annotations

import pytest

from limpet.engine.matching import Hit, MatchType, WatchSet, compile_pattern
from limpet.engine.matching.shared import KEPT_BYTES

pytestmark = pytest.mark.requirement("1.8")


def opened(*texts: tuple[str, MatchType], positions: list[int] | None = None, most_hits: int | None = None) -> WatchSet:
    patterns = [compile_pattern(text, match_type) for text, match_type in texts]
    return WatchSet(patterns, positions or [0] * len(texts), most_hits=most_hits)


def places(hits: list[tuple[int, Hit]]) -> list[tuple[int, int, int]]:
    return [(index, hit.start, hit.end) for index, hit in hits]


def test_hits_come_by_ends_then_by_index() -> None:
    watch = opened(("b", "regex"), ("ab", "regex"), ("a", "regex"), ("a.*", "line"))
    assert places(watch.feed(b"xab\n")) == [(2, 1, 2), (0, 2, 3), (1, 1, 3), (3, 1, 3)]
    watch.close()


def test_the_byte_before_is_not_found_by_who_does_not_look_back() -> None:
    watch = WatchSet([compile_pattern("a"), compile_pattern("\\ba")], [1, 1], b"a")
    assert places(watch.feed(b"a")) == [(0, 1, 2)]
    assert watch.finish() == []
    watch.close()


def test_a_match_across_pieces_is_found_from_its_start() -> None:
    watch = opened(("error: .* done", "regex"), ("e.{3}r", "regex"), ("^x", "regex"))
    hits = [hit for byte in b"no\nerror: all done\n" for hit in watch.feed(bytes([byte]))]
    assert places(hits) == [(1, 3, 8), (0, 3, 18)]
    assert watch.restart_at(2) == 19
    watch.close()


@pytest.mark.parametrize("ending", [b"c\n", b"d\n"])
def test_a_long_line_is_looked_at_by_each_alone(ending: bytes) -> None:
    watch = opened(("b.*c$", "regex"), ("b.*c$", "line"), ("^a+b", "line"), ("zz", "regex"))
    size = 0
    for _ in range(3 * KEPT_BYTES // 1000):
        assert watch.feed(b"ab" * 500) == []
        size += 1000
    hits = watch.feed(ending + b"ab c\n")
    size += len(ending)
    expected = [(2, 0, 2), (0, size + 1, size + 4), (1, size + 1, size + 4), (2, size, size + 2)]
    if ending == b"c\n":
        expected.append((0, 1, size - 1))
    assert sorted(places(hits)) == sorted(expected)
    assert places(watch.feed(b"zz")) == [(3, size + 5, size + 7)]
    watch.close()


def test_what_is_dropped_is_found_no_more() -> None:
    watch = opened(("a", "regex"), ("b", "regex"), ("c", "line"))
    watch.drop(0)
    assert places(watch.feed(b"ab")) == [(1, 1, 2)]
    watch.drop(1)
    watch.drop(2)
    assert watch.feed(b"abc\n") == []
    assert watch.restart_at(1) == watch.position == 6
    watch.close()


def test_each_begins_at_its_own_place() -> None:
    watch = opened(("a", "regex"), ("^a", "regex"), ("a", "line"), positions=[2, 4, 1])
    # from 1 on, since that is the first of the places
    assert places(watch.feed(b"aa\naa\n")) == [
        (2, 1, 2),
        (0, 2, 3),
        (2, 2, 3),
        (0, 4, 5),
        (1, 4, 5),
        (2, 4, 5),
        (0, 5, 6),
        (2, 5, 6),
    ]
    watch.close()


def test_each_stops_after_so_many_hits() -> None:
    watch = opened(("a", "regex"), ("a", "line"), most_hits=3)
    assert len(watch.feed(b"aaaaa\naaaaa\n")) == 6
    watch.close()


def test_what_the_engine_does_not_take_together_is_looked_for_alone() -> None:
    texts = [f"k{number}.{{250}}[a-m].*z{number}$" for number in range(6)]
    watch = WatchSet([compile_pattern(text, "line") for text in texts], [0] * 6)
    line = b"k3" + b"a" * 260 + b"z3\n"
    assert [index for index, _ in watch.feed(line)] == [3]
    watch.close()
