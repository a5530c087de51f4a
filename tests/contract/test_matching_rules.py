"""The rules of statement 3.5 one by one, on watchers: ends, lines, neighbours, characters, cuts (1.8)."""

import pytest

from .hits import GROUPS, TEXT_MAX_BYTES, WAIT_HIT, Hit, feed, groups_of, hit_of, hits, said_cut, wait, waited, watch
from .home import Answer
from .items import all_items, events
from .surface import Http


def found(http: Http, content: bytes, regex: str, match_type: str = "regex") -> list[Answer]:
    """The data of every hit in what a command has said all at once."""
    run_id = http.spawn("exec cat", stdin="open", watch=[watch(regex, match_type=match_type)])
    feed(http, run_id, [content])
    http.finish(run_id)
    return events(all_items(http, run_id), "hit")


@pytest.mark.requirement("3.5", "1.8")
@pytest.mark.parametrize(
    ("regex", "content", "expected"),
    [
        pytest.param("[0-9]+", "12345", [(n, n + 1) for n in range(5)], id="earliest-end"),
        pytest.param("a[0-9]+;", "xaa12;", [(2, 6)], id="what-ends-it"),
        pytest.param("a.*c", "aabcc", [(0, 4)], id="leftmost-start"),
        pytest.param("aba", "ababa", [(0, 3)], id="no-overlap"),
        pytest.param("^ab", "ab\nxab\nab", [(0, 2), (7, 9)], id="line-starts"),
        pytest.param("ab$", "ab\nabx\nab", [(0, 2), (7, 9)], id="line-ends"),
        pytest.param(r"\bcat\b", "cat concat cats\ncat", [(0, 3), (16, 19)], id="words"),
        pytest.param("a.b", "a\nb a-b", [(4, 7)], id="dot-is-no-newline"),
        pytest.param("a\nb", "a\nb", [(0, 3)], id="over-lines"),
        pytest.param("(?i)error", "ERROR Error", [(0, 5), (6, 11)], id="flags"),
        pytest.param("[é]", "aéb", [(1, 3)], id="class-of-a-character"),
        pytest.param("🐚+!", "é🐚!", [(2, 7)], id="four-bytes"),
        pytest.param("x.", "éxé", [(2, 5)], id="widened"),
    ],
)
def test_in_the_stream(http: Http, regex: str, content: str, expected: list[tuple[int, int]]) -> None:
    text = content.encode()
    wanted = [Hit(start, end, text[start:end].decode()) for start, end in expected]
    assert [hit_of(data) for data in found(http, text, regex)] == wanted


@pytest.mark.requirement("3.5", "1.8")
@pytest.mark.parametrize(
    ("regex", "content", "expected"),
    [
        pytest.param("[0-9]+", "12345", [(0, 5)], id="greedy"),
        pytest.param("[0-9]+", "12 34\n5", [(0, 2), (3, 5), (6, 7)], id="what-is-left"),
        pytest.param("^[0-9]", "12\n3", [(0, 1), (3, 4)], id="true-start"),
        pytest.param("[0-9]$", "12\n34", [(1, 2), (4, 5)], id="true-end"),
        pytest.param("a\\s*b", "a\nb a b", [(4, 7)], id="never-over-lines"),
        pytest.param("é.*🐚", "xé-🐚🐚", [(1, 12)], id="bytes"),
        pytest.param(".+", "\n\nab\n\n", [(2, 4)], id="empty-lines"),
    ],
)
def test_in_lines(http: Http, regex: str, content: str, expected: list[tuple[int, int]]) -> None:
    text = content.encode()
    told = found(http, text, regex, "line")
    assert [hit_of(data) for data in told] == [Hit(start, end, text[start:end].decode()) for start, end in expected]
    assert all(data["match"] in data["line"] for data in told)


@pytest.mark.requirement("3.5", "1.8")
def test_a_line_is_judged_once_it_is_finished(http: Http) -> None:
    """What matches in its first half is no hit, but what matches in all of it."""
    run_id = http.spawn("exec cat", stdin="open", watch=[watch("[0-9]+", match_type="line")])
    feed(http, run_id, [b"12"], close=False)
    assert hits(http, run_id) == []
    feed(http, run_id, [b"34\n56"])
    http.finish(run_id)
    assert hits(http, run_id) == [Hit(0, 4, "1234"), Hit(5, 7, "56")]


@pytest.mark.requirement("3.5", "1.8", "0.11")
def test_groups_of_a_line(http: Http) -> None:
    """Under their numbers and their names, to a watcher and to one who waits; the stream's matches have none."""
    regex = r"port=([0-9]+)(x)? (?P<host>\S+)"
    watchers = [watch(regex, match_type="line"), watch("port=([0-9]+) ", "stream")]
    run_id = http.spawn("echo 'port=8080 é on lo'", watch=watchers)
    http.finish(run_id)
    items = all_items(http, run_id)
    (watched,), (in_stream,) = events(items, "hit"), events(items, "stream")
    answer = wait(http, [run_id], {"regex": regex, "match_type": "line"})
    assert waited(answer) == hit_of(watched) == Hit(0, 12, "port=8080 é")
    expected = {"1": "8080", "2": None, "3": "é", "host": "é"}
    assert groups_of(answer[WAIT_HIT]) == groups_of(watched) == expected
    assert not in_stream.get(GROUPS)


@pytest.mark.requirement("3.5", "0.5")
def test_a_match_of_bytes_that_are_no_text(http: Http) -> None:
    (data,) = found(http, b"ab\xff\xfe!\n", "b[^!]+!")
    assert (data["span"], data["match"]) == ({"start": 1, "end": 5}, "b\ufffd\ufffd!")


@pytest.mark.requirement("3.5", "0.7")
@pytest.mark.parametrize("match_type", ["regex", "line"])
def test_a_long_line_is_cut_and_says_so_with_the_true_span(http: Http, match_type: str) -> None:
    before = "é" * 5000
    (data,) = found(http, f"short\n{before}NEEDLE{before}\n".encode(), "NEEDLE", match_type)
    start = 6 + len(before.encode())
    assert hit_of(data) == Hit(start, start + 6, "NEEDLE")
    line = data["line"].encode()
    assert len(line) <= TEXT_MAX_BYTES
    assert line.decode() in f"{before}NEEDLE{before}", "cut at whole characters"
    assert said_cut(data), data


@pytest.mark.requirement("3.5", "0.7")
@pytest.mark.parametrize("match_type", ["regex", "line"])
def test_a_long_match_is_cut_and_says_so_with_the_true_span(http: Http, match_type: str) -> None:
    (data,) = found(http, f"short\n<{'x' * 6000}>\n".encode(), "<x*>", match_type)
    assert data["span"] == {"start": 6, "end": 6 + 6002}
    assert len(data["match"].encode()) <= TEXT_MAX_BYTES
    assert ("<" + "x" * 6000).startswith(data["match"])
    assert data["match"]
    assert said_cut(data), data


@pytest.mark.requirement("3.5", "0.7")
def test_a_line_that_is_not_cut_does_not_say_so(http: Http) -> None:
    whole = "x" * (TEXT_MAX_BYTES - 6) + "NEEDLE"
    (data,) = found(http, f"{whole}\nmore\n".encode(), "NEEDLE")
    assert data["line"] == whole
    assert not said_cut(data), data
