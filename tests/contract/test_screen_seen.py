"""What stands on a terminal's screen, and programs that ask it, by what a person would see (3.8, F50, F51, 6.7)."""

import html
import itertools
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from .home import Answer, Home
from .surface import Http, Surface
from .talk import Talk, talking

CSI = "\x1b["


def screen(talk: Talk, **params: str) -> Answer:
    return talk.ok("snapshot", **params)


@pytest.fixture
def drawn(tmp_path: Path) -> Callable[[Talk, str], None]:
    """Draws a text on a talk's screen, from an empty one, and leaves a program in front."""
    numbers = itertools.count(1)

    def draw(talk: Talk, text: str) -> None:
        # One for each: a cat that looks for more when the file is written anew would find the rest of the next text.
        file = tmp_path / f"drawing-{next(numbers)}"
        file.write_bytes(text.encode())
        begun = talk.ok("exec_interactive", cmd=f"stty raw -echo; printf '\\033c'; cat '{file}' - ; stty sane")
        talk.wait_for(text[-8:], begun["resume_cursor"])

    return draw


Draw = Callable[[Talk, str], None]


@pytest.mark.requirement("3.8")
def test_what_is_drawn_stands_where_it_was_drawn(surface: Surface, tmp_path: Path) -> None:
    with talking(surface, rows=10, cols=40) as talk:
        file = tmp_path / "drawing"
        file.write_text(f"\x1bc{CSI}2;3Hupper{CSI}5;1Hlower{CSI}5;3H{CSI}K{CSI}1;1Hfirst{CSI}4;7Hlast one")
        begun = talk.ok("exec_interactive", cmd=f"stty raw -echo; cat '{file}' -; stty sane")
        talk.wait_for("last one", begun["resume_cursor"])
        seen = screen(talk)
        rows = [row.rstrip() for row in seen["rows"]]
        assert rows[:5] == ["first", "  upper", "", "      last one", "lo"]
        assert not any(rows[5:]), rows
        assert (seen["cursor"]["row"], seen["cursor"]["col"], seen["cursor"]["visible"]) == (3, 14, True)
        assert seen["size"] == {"rows": 10, "cols": 40}
        assert (seen["alternate_screen"], seen["complete"]) == (False, True)


@pytest.mark.requirement("3.8")
def test_titles_cursors_and_the_other_screen(http: Http, drawn: Draw) -> None:
    with talking(http, rows=10, cols=40) as talk:
        drawn(talk, f"main\x1b]2;a title\x07{CSI}?25l{CSI}?1049h{CSI}2J{CSI}1;1Hother screen")
        seen = screen(talk)
        assert seen["rows"][0].rstrip() == "other screen"
        assert "main" not in str(seen["rows"])
        assert (seen["title"], seen["alternate_screen"]) == ("a title", True)
        assert seen["cursor"]["visible"] is False
    with talking(http, rows=10, cols=40) as talk:
        drawn(talk, f"main{CSI}?1049hother{CSI}?1049l is back again")
        seen = screen(talk)
        assert seen["rows"][0].rstrip() == "main is back again"
        assert seen["alternate_screen"] is False


@pytest.mark.requirement("3.8", "0.5")
def test_wide_and_combining_characters_and_wraps(http: Http, drawn: Draw) -> None:
    with talking(http, rows=6, cols=10) as talk:
        drawn(talk, "日本é\r\ne\u0301x\r\n0123456789ABC\r\n  the end")
        rows = [row.rstrip() for row in screen(talk)["rows"]]
        assert rows == ["日本é", "e\u0301x", "0123456789", "ABC", "  the end", ""]


@pytest.mark.requirement("3.8", "6.7", "F50")
def test_hostile_output_is_only_text_in_text_and_html(http: Http, drawn: Draw) -> None:
    evil = (
        '<script>alert(1)</script>\r\n"><img src=x onerror=alert(2)>\r\n'
        "\x1b]8;;javascript:alert(3)\x07link\x1b]8;;\x07\r\n\x1b]52;c;ZXZpbA==\x07"
        "\x1b]2;<b>title</b>\x07\x1bPq#0;2;0;0;0\x1b\\\r\n\u202eevil\u202c\x9b31m ends here"
    )
    with talking(http, rows=12, cols=60) as talk:
        drawn(talk, evil)
        text = screen(talk)
        assert text["rows"][0].rstrip() == "<script>alert(1)</script>"
        for row in [*text["rows"], text["title"], text.get("screen", "")]:
            assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", row), repr(row)
        page = screen(talk, format="html")["screen"]
        assert "<script" not in page
        assert "<img" not in page
        assert "javascript:" not in page
        assert html.escape("<script>alert(1)</script>", quote=False) in page.replace("&quot;", '"')
        ansi = screen(talk, format="ansi")["screen"]
        assert "\x1b]52" not in ansi
        assert not re.search(r"\x1b(?!\[)", ansi.replace("\x1b]8;", "")), repr(ansi)


@pytest.mark.requirement("3.8")
def test_the_ansi_form_draws_the_same_screen_again(http: Http, drawn: Draw) -> None:
    with talking(http, rows=8, cols=30) as talk, talking(http, rows=8, cols=30) as again:
        drawn(talk, f"{CSI}1;31mred{CSI}0m plain{CSI}4;5H{CSI}7minverse{CSI}0m{CSI}38;2;1;2;3m{CSI}7;2Hcoloured")
        first = screen(talk, format="ansi")["screen"]
        drawn(again, first.replace("\r\n", "\n").replace("\n", "\r\n") + f"{CSI}8;1H     end")
        rows = [row.rstrip() for row in screen(again)["rows"]]
        assert rows[:7] == [row.rstrip() for row in screen(talk)["rows"]][:7]
        assert re.search(r"[;\[](31|38;5;1)[;m]", first), first


@pytest.mark.requirement("3.8", "3.9")
def test_a_screen_outlives_the_daemon(new_home: Callable[..., Home], tmp_path: Path) -> None:
    """Injector: SIGKILL to the daemon."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    talk.ok("open", rows=7, cols=33)
    talk.ok("resize", rows=9, cols=44)
    file = tmp_path / "drawing"
    file.write_text(f"\x1bc{CSI}3;4Hkept\x1b]2;the title\x07{CSI}?1049hfull screen")
    begun = talk.ok("exec_interactive", cmd=f"stty raw -echo; cat '{file}' -; stty sane")
    talk.wait_for("full screen", begun["resume_cursor"])
    before = screen(talk)
    home.kill_daemon()
    home.start()
    assert screen(talk) == before
    assert before["size"] == {"rows": 9, "cols": 44}
    talk.ok("close")
    assert screen(talk)["rows"] == before["rows"]


ASK = """
import os, sys, termios, tty
fd = os.open('/dev/tty', os.O_RDWR)
old = termios.tcgetattr(fd)
if sys.argv[1] == 'raw':
    tty.setraw(fd)
os.write(fd, sys.argv[2].encode().decode('unicode_escape').encode('latin-1') + b'ASKED')
got = b''
while not got.endswith((b'Z', b'\\n')):
    got += os.read(fd, 100)
termios.tcsetattr(fd, termios.TCSANOW, old)
print('GOT', got.hex(), 'END', flush=True)
"""


def answered(talk: Talk, tmp_path: Path, mode: str, query: str, then: str = "Z") -> bytes:
    """All that a program gets that asks its terminal and then reads until a person has typed something."""
    program = tmp_path / "ask.py"
    program.write_text(ASK)
    begun = talk.ok("exec_interactive", cmd=f"{sys.executable} '{program}' {mode} '{query}'")
    at = talk.wait_for("ASKED", begun["resume_cursor"])["resume_cursor"]
    if mode == "raw":
        # What answers does so at once, or once something looks at the screen; a person is slower.
        talk.ok("snapshot")
        talk.ok("wait_for", match="2000", match_type="quiet", from_cursor=at, timeout_ms=60_000)
    talk.ok("send", data=then)
    line = talk.wait_for(r"GOT [0-9a-f]* END", at, "regex")["match_text"]
    talk.wait_for("", 0, "exit")
    return bytes.fromhex(line.split()[1])


@pytest.mark.requirement("3.8", "F51")
def test_a_program_that_asks_is_answered_once(http: Http, tmp_path: Path) -> None:
    with talking(http) as talk:
        where = answered(talk, tmp_path, "raw", "\\x1b[2J\\x1b[4;9H\\x1b[6n")
        assert re.fullmatch(rb"\x1b\[4;9RZ", where), where
        what = answered(talk, tmp_path, "raw", "\\x1b[c")
        assert re.fullmatch(rb"\x1b\[\?[0-9;]+cZ", what), what


@pytest.mark.requirement("3.8", "F51")
def test_one_in_line_mode_is_not_answered(http: Http, tmp_path: Path) -> None:
    with talking(http) as talk:
        assert answered(talk, tmp_path, "cooked", "\\x1b[6n\\x1b[c\\x1b[5n", "mine\r") == b"mine\n"


@pytest.mark.requirement("3.8", "F51")
def test_the_shell_itself_is_not_answered(http: Http) -> None:
    """What a program that is over has asked, and what the shell prints itself, must not be typed at the prompt."""
    with talking(http) as talk:
        query = "printf '\\033[6n\\033[c\\033[5n'"
        for cmd in (query, f"/bin/{query}"):
            talk.run(cmd)
        talk.ok("snapshot")
        done = talk.run("echo clean")
        assert (done["exit_code"], done["output"]) == (0, "clean\n")
        assert not re.search(r"\d+;\d+R|\?6[0-9;]*c", talk.spool().replace("\x1b[6n", "")), talk.spool()


@pytest.mark.requirement("3.8", "F51")
def test_history_that_is_looked_at_again_asks_nothing_again(new_home: Callable[..., Home], tmp_path: Path) -> None:
    """Injector: SIGKILL to the daemon, so that the whole stream is replayed, queries and all."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    assert answered(talk, tmp_path, "raw", "\\x1b[3;3H\\x1b[6n") == b"\x1b[3;3RZ"
    home.kill_daemon()
    home.start()
    begun = talk.ok("exec_interactive", cmd="stty raw -echo; printf UP; head -c 1 | od -An -tx1; stty sane")
    talk.wait_for("UP", begun["resume_cursor"])
    for _ in range(3):
        screen(talk)
    talk.ok("send", data="k")
    assert talk.wait_for(" 6b", begun["resume_cursor"])["matched"] is True
    talk.ok("close")
