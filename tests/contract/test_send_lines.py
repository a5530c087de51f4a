"""A line that a terminal in line mode would cut is refused whole; every one that fits arrives whole (1.7, F52, F53)."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .home import Answer
from .surface import Http, Surface
from .terminals import LINES, RAW, SEND, TOO_LONG, TOO_LONG_CODES, Typewriter

LINE_MAX = 4095


def too_long(surface: Surface, run_id: str, **given: object) -> None:
    answer = surface.call("shell", {"action": SEND, "run_id": run_id, **given})
    assert answer["ok"] is False, answer
    assert answer["error"] in TOO_LONG_CODES, answer
    assert answer["reason"] == TOO_LONG, answer


@pytest.mark.requirement("1.7", "F52", "0.7")
def test_a_line_that_fits_and_one_that_does_not(surface: Surface, tmp_path: Path) -> None:
    """Of the refused line nothing has arrived: what is typed next stands at the start of a line."""
    paper = Typewriter(surface, tmp_path, LINES)
    longest = "x" * LINE_MAX
    paper.type(text=longest, keys=["Enter"])
    assert paper.got(LINE_MAX + 1) == longest.encode() + b"\n"
    too_long(surface, paper.run_id, text="y" * (LINE_MAX + 1) + "\n")
    too_long(surface, paper.run_id, text="y" * (LINE_MAX + 1), keys=["Enter"])
    too_long(surface, paper.run_id, text="short\n" + "é" * (LINE_MAX // 2 + 1) + "\nshort\n")
    too_long(surface, paper.run_id, keys=["y" * LINE_MAX, "y", "Enter"])
    paper.type(text="ok\n")
    assert paper.got(LINE_MAX + 4) == longest.encode() + b"\nok\n"
    paper.end()


@pytest.mark.requirement("1.7", "F52", "0.7")
def test_a_line_in_pieces_is_one_line(http: Http, tmp_path: Path) -> None:
    """Two halves that fit each alone and would be cut together; Enter ends the first one."""
    paper = Typewriter(http, tmp_path, LINES)
    paper.type(text="a" * 3000)
    too_long(http, paper.run_id, text="b" * 3000 + "\n")
    paper.type(text="\n" + "b" * 3000 + "\n")
    assert paper.got(6002) == b"a" * 3000 + b"\n" + b"b" * 3000 + b"\n"
    paper.end()


@pytest.mark.requirement("1.7", "F52")
def test_many_lines_arrive_whole(http: Http, tmp_path: Path) -> None:
    paper = Typewriter(http, tmp_path, LINES)
    text = "".join(f"{n} " + "z" * 1000 + "\n" for n in range(30))
    paper.type(text=text)
    assert paper.got(len(text)) == text.encode()
    paper.end()


@pytest.mark.requirement("1.7", "F52")
def test_without_line_mode_there_is_no_bound(http: Http, tmp_path: Path) -> None:
    paper = Typewriter(http, tmp_path, RAW)
    text = "".join(f"{n}." for n in range(5000))
    assert len(text) > 5 * LINE_MAX
    paper.type(text=text)
    assert paper.got(len(text)) == text.encode()
    paper.end()


@pytest.mark.requirement("1.7", "F53")
def test_a_program_that_does_not_read_holds_up_nobody(http: Http) -> None:
    """A terminal takes some kilobytes unread; then the sender waits, nobody else does, and it hears how far it came."""
    run_id = http.spawn(RAW + "printf ready; exec sleep 1000", pty=True)
    http.read(run_id, "pty", wait_ms=60_000)
    with ThreadPoolExecutor(1) as pool:
        params: Answer = {"action": SEND, "run_id": run_id, "text": "x" * 200_000}
        sending = pool.submit(http.call, "shell", params)
        assert http.facts(run_id)["status"] == "running"
        http.ok("runs.kill", {"run_id": run_id})
        assert http.finish(run_id)["status"] == "killed"
        answer = sending.result(60)
    assert answer["ok"] is False, answer
    assert 0 <= answer["written"] < 200_000, answer
