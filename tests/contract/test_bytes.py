"""Bytes and text: cursors count bytes, no character is split, base64 is exact, reading consumes nothing (0.5, 0.7)."""

import base64
from pathlib import Path

import pytest

from .fifos import Gate
from .home import Answer
from .surface import Http, Surface

TEXT = "héllo wörld — ≤中文≥ 🐚\U0001d518 ñ\u0301 end\n" * 3
MIXED = b"ok \xff\xfe half \xe2\x82 then \xf0\x9f\x90 \xc0\xaf \xed\xa0\x80 fine \xe2\x82\xac\n" * 3 + b"cut \xe2\x82"


def run_of(http: Surface, folder: Path, content: bytes) -> str:
    """A finished run whose stdout is exactly this."""
    file = folder / "content"
    file.write_bytes(content)
    ran = http.ok("shell", {"command": f"cat '{file}'"})
    assert ran["exit_code"] == 0
    return str(ran["run_id"])


def pages(http: Http, run_id: str, max_bytes: int) -> list[Answer]:
    found: list[Answer] = []
    offset = 0
    while True:
        page = http.read(run_id, offset=offset, max_bytes=max_bytes)
        assert page["offset_bytes"] == offset, page
        found.append(page)
        offset = page["next_offset"]
        if offset >= page["total_bytes"]:
            return found
        assert offset > page["offset_bytes"], page


@pytest.mark.requirement("0.5")
@pytest.mark.parametrize("max_bytes", [4, 5, 6, 7, 11, 64, 1 << 20])
def test_pages_of_text_split_no_character(http: Http, tmp_path: Path, max_bytes: int) -> None:
    run_id = run_of(http, tmp_path, TEXT.encode())
    found = pages(http, run_id, max_bytes)
    assert "".join(page["data"] for page in found) == TEXT
    for page in found:
        assert page["encoding"] == "utf-8", page
        assert page["total_bytes"] == len(TEXT.encode()), page
        assert len(page["data"].encode()) == page["next_offset"] - page["offset_bytes"] <= max_bytes, page
    assert [page["eof"] for page in found] == [False] * (len(found) - 1) + [True]


@pytest.mark.requirement("0.5")
@pytest.mark.parametrize("max_bytes", [1, 2, 3])
def test_a_page_smaller_than_a_character(http: Http, tmp_path: Path, max_bytes: int) -> None:
    """It goes on or it is refused; what it never does is cut the character or stand still."""
    run_id = run_of(http, tmp_path, "🐚a".encode())
    params: Answer = {"run_id": run_id, "stream": "stdout", "offset": 0, "max_bytes": max_bytes}
    answer = http.call("runs.read", params)
    if answer["ok"]:
        assert answer["data"] in ("🐚", "🐚a"), answer
        assert answer["next_offset"] == len(answer["data"].encode()), answer
    else:
        assert answer["error"] == "invalid_argument", answer


@pytest.mark.requirement("0.5")
@pytest.mark.parametrize("max_bytes", [4, 5, 7, 1 << 20])
def test_what_is_not_utf8_is_replaced_alike_in_any_pages(http: Http, tmp_path: Path, max_bytes: int) -> None:
    run_id = run_of(http, tmp_path, MIXED)
    assert "".join(page["data"] for page in pages(http, run_id, max_bytes)) == MIXED.decode(errors="replace")


@pytest.mark.requirement("0.5")
def test_base64_is_exact(surface: Surface, tmp_path: Path) -> None:
    content = bytes(range(256)) * 250 + b"\r\n\r\x1b[0m\0"
    run_id = run_of(surface, tmp_path, content)
    page = surface.read(run_id, encoding="base64")
    assert page["encoding"] == "base64"
    assert base64.b64decode(page["data"], validate=True) == content
    assert (page["offset_bytes"], page["next_offset"], page["total_bytes"]) == (0, len(content), len(content))
    assert page["eof"] is True
    for offset, max_bytes in ((0, 1), (255, 3), (50_000, 4097), (len(content) - 1, 10), (len(content), 10)):
        page = surface.read(run_id, offset=offset, max_bytes=max_bytes, encoding="base64")
        part = content[offset : offset + max_bytes]
        assert base64.b64decode(page["data"]) == part
        assert page["next_offset"] == offset + len(part)
        assert page["eof"] is (offset + len(part) == len(content))


@pytest.mark.requirement("0.5")
def test_reading_never_consumes(http: Http, tmp_path: Path) -> None:
    run_id = run_of(http, tmp_path, MIXED)
    first = http.read(run_id)
    http.read(run_id, offset=5, max_bytes=9)
    http.read(run_id, encoding="base64")
    assert http.read(run_id) == first


@pytest.mark.requirement("0.5", "0.7")
def test_a_cursor_beyond_the_end_is_refused(surface: Surface, tmp_path: Path) -> None:
    run_id = run_of(surface, tmp_path, b"twelve bytes")
    at_end = surface.read(run_id, offset=12)
    assert (at_end["data"], at_end["next_offset"], at_end["eof"]) == ("", 12, True)
    params: Answer = {"run_id": run_id, "stream": "stdout", "offset": 13, "max_bytes": 10}
    surface.refused("runs.read", params, "invalid_argument")
    surface.refused("runs.read", {**params, "offset": 2**62}, "invalid_argument")


@pytest.mark.requirement("0.5")
def test_text_of_a_living_run_splits_no_character(http: Http, tmp_path: Path, gate: Gate) -> None:
    """Half a character is written, later the other half: no page shows a half."""
    second = Gate(tmp_path, "second")
    with second:
        run_id = http.spawn("printf 'a\\360\\237'; " + gate.wait + "printf '\\220\\232b'; " + second.wait)
        page = http.read(run_id, wait_ms=60_000)
        assert (page["data"], page["next_offset"], page["eof"]) == ("a", 1, False)
        gate.open()
        text = ""
        offset = 1
        while "b" not in text:
            page = http.read(run_id, offset=offset, wait_ms=60_000)
            text, offset = text + page["data"], page["next_offset"]
        assert text == "🐚b"
        second.open()
        http.finish(run_id)


@pytest.mark.requirement("0.5")
def test_wait_ms_answers_when_bytes_come_and_when_the_stream_is_over(surface: Surface, gate: Gate) -> None:
    run_id = surface.spawn("printf one; " + gate.wait + "printf two")
    page = surface.read(run_id, wait_ms=60_000)
    assert (page["data"], page["eof"]) == ("one", False)
    gate.open()
    page = surface.read(run_id, offset=3, wait_ms=60_000)
    assert page["data"] == "two"
    last = surface.read(run_id, offset=6, wait_ms=60_000)
    assert (last["data"], last["next_offset"], last["total_bytes"], last["eof"]) == ("", 6, 6, True)


@pytest.mark.requirement("0.5")
def test_a_stream_that_is_not_over_is_not_at_its_end(http: Http, gate: Gate) -> None:
    run_id = http.spawn("printf one; " + gate.wait)
    http.read(run_id, wait_ms=60_000)
    page = http.read(run_id, offset=0)
    assert (page["data"], page["total_bytes"], page["eof"]) == ("one", 3, False)
    gate.open()
    http.finish(run_id)
    assert http.read(run_id, offset=3)["eof"] is True


@pytest.mark.requirement("0.5")
def test_plain_view(http: Http, tmp_path: Path) -> None:
    raw = "a\x1b[31mred\x1b[0m b\x1b]0;title\x07\n10%\r 50%\r100%\nnext\r\n"
    run_id = run_of(http, tmp_path, raw.encode())
    assert http.read(run_id)["data"] == raw
    assert http.read(run_id, view="raw")["data"] == raw
    assert http.read(run_id, view="plain")["data"].replace("\r\n", "\n") == "ared b\n100%\nnext\n"


@pytest.mark.requirement("0.5")
def test_streams_are_apart_and_pipes_are_untouched(http: Http) -> None:
    ran = http.ok("shell", {"command": "printf 'o\\r\\n\\r'; printf 'e\\r\\n' >&2"})
    assert http.bytes_of(ran["run_id"]) == b"o\r\n\r"
    assert http.bytes_of(ran["run_id"], "stderr") == b"e\r\n"


@pytest.mark.requirement("0.1", "0.5")
def test_what_was_said_stays_as_it_was(http: Http, gate: Gate) -> None:
    """A spool is only appended to: what comes later moves and changes nothing of what came before."""
    run_id = http.spawn("printf first; " + gate.wait + "printf second")
    assert http.read(run_id, wait_ms=60_000)["data"] == "first"
    gate.open()
    http.finish(run_id)
    assert http.bytes_of(run_id) == b"firstsecond"
