"""`pty.snapshot`: what a person would see; compared with what tmux shows, given the same bytes."""

import json
import shlex
import socket
import struct
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from . import tmux
from .home import Answer, Home, until
from .surface import Http, Surface
from .talk import Talk, talking

FORM = """
import curses, sys
def draw(screen):
    curses.start_color()
    for pair in range(1, 8):
        curses.init_pair(pair, pair, 0)
    screen.erase()
    rows, cols = screen.getmaxyx()
    screen.border()
    for row in range(1, rows - 1):
        screen.addstr(row, 2, f"CPU{row:<3}[" + "|" * (row * 2) , curses.color_pair(row % 8) | curses.A_BOLD)
        screen.addstr(row, cols - 9, f"{row * 7:5d}%]", curses.A_REVERSE)
    screen.setscrreg(3, rows - 3); screen.scrollok(True); screen.scroll(2)
    screen.addstr(2, 30, "wide 漢字 e\\u0301")
    screen.move(5, 7); screen.refresh()
    screen.getch()
curses.wrapper(draw)
"""
WIDE = "漢字カナ 🎉 e\u0301 ñ 字 " * 9


def raw_bytes(home: Home, run_id: str, end: int | None = None) -> bytes:
    """What the terminal was told, up to a place in its spool, put together from its files as their format has it."""
    kept = home.path / "runs" / run_id / "1"
    spool, bare = (kept / "pty.spool").read_bytes()[:end], set[int]()
    if (kept / "pty.bare_lf").exists():
        data = (kept / "pty.bare_lf").read_bytes()
        bare = set(struct.unpack(f"<{len(data) // 8}Q", data[: len(data) // 8 * 8]))
    lines = [b"\n" if place in bare else b"\r\n" for place, byte in enumerate(spool) if byte == 10]
    words = spool.split(b"\n")
    return b"".join(word + end for word, end in zip(words, [*lines, b""], strict=True))


def sizes(home: Home, run_id: str) -> list[tuple[int, int, int]]:
    """Each size that the terminal took, and how many bytes it had been told before."""
    journal = (home.path / "runs" / run_id / "1" / "keeper.journal").read_text()
    said, found = 0, list[tuple[int, int, int]]()
    for fact in (json.loads(line.split(" ", 2)[2]) for line in journal.splitlines()):
        if fact["fact"] == "wrote":
            said = fact["end"]
        elif fact["fact"] == "resized":
            found.append((fact["rows"], fact["cols"], len(raw_bytes(home, run_id, said))))
    return found


def same(snapshot: Answer, pane: tmux.Pane) -> None:
    assert snapshot["rows"] == pane.rows
    assert (snapshot["cursor"]["row"], snapshot["cursor"]["col"]) == pane.cursor
    assert snapshot["alternate_screen"] == pane.is_alternate


def begin(http: Surface, command: str, **params: object) -> str:
    return http.spawn(command, pty=True, env={"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}, **params)


def drawn(house: Home, http: Surface, run_id: str, text: str) -> tuple[Answer, bytes]:
    """The snapshot once that stands on the screen and nothing more is said, and the bytes that it was made of."""
    quiet = [{"quiet_ms": 100}]
    found: list[tuple[Answer, bytes]] = []

    def is_there() -> bool:
        http.ok("runs.wait", {"run_ids": [run_id], "for": quiet, "timeout_ms": 60_000})
        snapshot = http.ok("runs.snapshot", {"run_id": run_id})
        found.append((snapshot, raw_bytes(house, run_id)))
        return text in snapshot["screen"] and http.read(run_id, "pty")["total_bytes"] == snapshot["total_bytes"]

    until(is_there, f"{text!r} on the screen of {run_id}")
    return found[-1]


def many_lines(folder: Path) -> Path:
    path = folder / "lines.txt"
    path.write_text("".join(f"line {number} {WIDE[: number % 60]}\n" for number in range(500)))
    return path


@pytest.mark.requirement("3.8")
def test_vim_looks_as_in_tmux(house: Home, http: Http, tmp_path: Path) -> None:
    run_id = begin(http, f"vim -u NONE -N -i NONE {shlex.quote(str(many_lines(tmp_path)))}")
    drawn(house, http, run_id, "line 5")
    for keys in (
        ["50G"],
        ["i", "added 漢字 text", "Escape"],
        ["dd"],
        [":vsplit", "Enter"],
        ["C-f"],
        [":set number", "Enter"],
    ):
        http.ok("shell", {"action": "send_keys", "run_id": run_id, "keys": keys})
        snapshot, raw = drawn(house, http, run_id, "line")
    assert snapshot["alternate_screen"] is True
    same(snapshot, tmux.shown(tmp_path, [raw]))
    http.ok("shell", {"action": "send_keys", "run_id": run_id, "keys": ["Escape", ":qa!", "Enter"]})
    http.finish(run_id)
    over = http.ok("runs.snapshot", {"run_id": run_id})
    assert over["alternate_screen"] is False
    same(over, tmux.shown(tmp_path, [raw_bytes(house, run_id)]))


@pytest.mark.requirement("3.8")
def test_less_looks_as_in_tmux(house: Home, http: Http, tmp_path: Path) -> None:
    run_id = begin(http, f"less {shlex.quote(str(many_lines(tmp_path)))}")
    drawn(house, http, run_id, "line 5")
    for keys in ("Space", "Space", "k", "b", "G", "k", "k", "?line 44", "Enter"):
        http.ok("shell", {"action": "send_keys", "run_id": run_id, "keys": [keys]})
    snapshot, raw = drawn(house, http, run_id, "line 44")
    same(snapshot, tmux.shown(tmp_path, [raw]))
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("3.8")
def test_a_drawn_form_looks_as_in_tmux(house: Home, http: Http, tmp_path: Path) -> None:
    form = tmp_path / "form.py"
    form.write_text(FORM)
    run_id = begin(http, shlex.join([sys.executable, str(form)]))
    snapshot, raw = drawn(house, http, run_id, "CPU9")
    assert "漢字" in snapshot["screen"]
    same(snapshot, tmux.shown(tmp_path, [raw]))
    coloured = http.ok("runs.snapshot", {"run_id": run_id, "format": "ansi"})
    again = tmux.shown(tmp_path, [coloured["screen"].encode()])
    assert again.rows == snapshot["rows"]
    http.ok("runs.kill", {"run_id": run_id})


REGIONS = (
    b"\x1b[2J\x1b[1;1Htop\x1b[24;1Hbottom\x1b[5;15r\x1b[5;1H" + b"".join(b"row %d\r\n" % each for each in range(30)),
    b"\x1b[5;15r\x1b[5;1H\x1b[3L\x1b[8;1H\x1b[2M\x1b[15;3H\n\nscrolled\x1b[5;1H\x1bM\x1bMback\x1b[r\x1b[2;5Hhome",
    b"\x1b[?6h\x1b[3;10r\x1b[1;1Horigin\x1b[?6l\x1b[r\x1b[20;70Hwraps at the end of it\x1b[?7l\x1b[22;75Hcut here",
    ("\x1b[2J\x1b[1;79H漢x\x1b[3;1H" + WIDE * 3 + "\x1b[10;1Habcdef\x1b[10;3H漢").encode(),
    b"\x1b[4h\x1b[3;1Habc\x1b[3;1HXY\x1b[4l\x1b[2P\x1b[5;1H0123456789\x1b[5;4H\x1b[3X\x1b[5;8H\x1b[2@\x1b[1K\tq\tr",
    b"\x1b(0lqqqk\x1b(B plain \x0e\x0f\x1b7\x1b[9;9Hthere\x1b8here\b\b\x1b[2C.\x1b[4G,\x1b[6d;",
    b"one\r\ntwo\r\x1b[?1049hALT\x1b[5;5Hscreen\x1b[?1049l three\x1b]0;a title\x07",
)


@pytest.mark.requirement("3.8")
@pytest.mark.parametrize("said", REGIONS, ids=range(len(REGIONS)))
def test_each_movement_ends_where_tmux_has_it(http: Http, tmp_path: Path, said: bytes) -> None:
    path = tmp_path / "said"
    path.write_bytes(said)
    run_id = begin(http, f"stty raw; cat {shlex.quote(str(path))}")
    http.finish(run_id)
    snapshot = http.ok("runs.snapshot", {"run_id": run_id})
    same(snapshot, tmux.shown(tmp_path, [said]))
    assert snapshot["title"] == ("a title" if b"\x1b]0;" in said else "")


@pytest.mark.requirement("3.8", "F57")
def test_sizes_take_effect_where_they_stood_in_the_output(house: Home, http: Http, tmp_path: Path) -> None:
    """Injector: ten thousand sizes, from 1 to 65535, while a program draws."""
    run_id = begin(http, f"vim -u NONE -N -i NONE {shlex.quote(str(many_lines(tmp_path)))}")
    drawn(house, http, run_id, "line 5")
    for rows, cols in ((40, 120), (10, 33), (30, 100)):
        http.ok("runs.resize", {"run_id": run_id, "rows": rows, "cols": cols})
        drawn(house, http, run_id, "line")
    # While a program has not drawn for a size, each terminal shows what it likes.
    keys = ["C-l", ":echo 'drawn'.' anew'", "Enter"]
    http.ok("shell", {"action": "send_keys", "run_id": run_id, "keys": keys})
    snapshot, raw = drawn(house, http, run_id, "drawn anew")
    pieces: list[bytes | tuple[int, int]] = []
    came = 0
    for rows, cols, before in sizes(house, run_id):
        pieces += [raw[came:before], (rows, cols)]
        came = before
    pieces.append(raw[came:])
    same(snapshot, tmux.shown(tmp_path, pieces))
    assert snapshot["size"] == {"rows": 30, "cols": 100}
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("F57")
def test_ten_thousand_sizes_are_taken(house: Home, http: Http) -> None:
    """Injector: ten thousand sizes from 1 to 65535, all at once, at a terminal; sizes that are none are refused."""
    run_id = begin(http, "stty raw -opost -echo; printf begun; cat")
    drawn(house, http, run_id, "begun")
    for rows, cols in ((0, 0), (65536, 1), (1, -1)):
        http.refused("runs.resize", {"run_id": run_id, "rows": rows, "cols": cols}, "invalid_argument")
    kept = house.path / "runs" / run_id / "1"
    sides = (1, 65535, 24, 3, 500)
    frames = [
        {"do": "resize", "id": number, "rows": sides[number % 5], "cols": sides[number % 3]} for number in range(10_000)
    ]
    with socket.socket(socket.AF_UNIX) as keeper:
        keeper.connect(str(kept / "control.sock"))
        asked = "".join(f"{json.dumps(each)}\n" for each in frames).encode()
        sending = threading.Thread(target=keeper.sendall, args=(asked,))
        sending.start()
        with keeper.makefile("rb") as replies:
            assert all(json.loads(next(replies))["ok"] for _ in frames)
        sending.join()
    http.ok("runs.resize", {"run_id": run_id, "rows": 7, "cols": 50})
    http.ok("runs.write", {"run_id": run_id, "text": "\x1b[2J\x1b[Hin the end"})
    snapshot, _ = drawn(house, http, run_id, "in the end")
    assert (snapshot["rows"][0], snapshot["size"]) == ("in the end", {"rows": 7, "cols": 50})
    assert (kept / "keeper.journal").read_text().count('"fact":"resized"') == 10_001
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("3.8", "3.4")
def test_a_conversations_screen_is_without_its_sentinels(surface: Surface) -> None:
    with talking(surface, rows=10, cols=40) as talk:
        talk.run("printf 'one\\ntwo'")
        talk.run("printf '\\033]2;named\\007\\033[31mred\\033[0m <b>&amp;</b>'; echo")
        snapshot = talk.ok("snapshot")
        assert snapshot["rows"] == ["one", "two", "red <b>&amp;</b>", *[""] * 7]
        assert snapshot["cursor"] == {"row": 3, "col": 0, "visible": True}
        assert (snapshot["title"], snapshot["alternate_screen"]) == ("named", False)
        assert snapshot["size"] == {"rows": 10, "cols": 40}
        assert (snapshot["replayed_from"], snapshot["complete"]) == (0, True)
        assert snapshot["resume_cursor"] == talk.status()["resume_cursor"]
        assert snapshot["screen"] == "\n".join(snapshot["rows"])
        html = talk.ok("snapshot", format="html")["screen"]
        assert "<b>" not in html
        assert '<span style="color:#cc6666">red</span> &lt;b&gt;&amp;amp;&lt;/b&gt;' in html
        assert "\x1b[38;5;1mred\x1b[0m" in talk.ok("snapshot", format="ansi")["screen"]
        assert talk.call("snapshot", format="png")["error"] == "invalid_argument"


@pytest.mark.requirement("3.8", "3.9")
def test_a_screen_outlives_the_daemon_and_the_conversation(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon, between two looks at one screen."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    talk.ok("resize", rows=12, cols=30)
    talk.run("printf '\\033[5;5Hplaced'")
    before = talk.ok("snapshot")
    assert before["rows"][4] == "    placed"
    home.kill_daemon()
    home.start()
    assert talk.ok("snapshot") == before
    talk.ok("close")
    # A shell that sees its end may still say `exit`, where its cursor stands.
    assert [row.removeprefix("exit") for row in talk.ok("snapshot")["rows"]] == before["rows"]


@pytest.mark.requirement("3.8", "0.7")
def test_what_was_not_looked_at_is_said(http: Http) -> None:
    with talking(http) as talk:
        talk.run("printf '\\033]2;at the start\\007'; yes 'a line of some length' | head -n 40000; echo last")
        whole = talk.ok("snapshot")
        assert (whole["complete"], whole["replayed_from"], whole["title"]) == (True, 0, "at the start")
        again = talk.ok("snapshot", replay_bytes=1 << 16)
        assert again["rows"] == whole["rows"]
    with talking(http) as talk:
        talk.run("printf '\\033]2;at the start\\007'; yes 'a line of some length' | head -n 40000; echo last")
        part = talk.ok("snapshot", replay_bytes=1 << 16)
        assert part["rows"] == whole["rows"]
        assert (part["complete"], part["title"]) == (False, "")
        assert 0 < part["resume_cursor"] - part["replayed_from"] <= 1 << 16
        assert talk.ok("snapshot", replay_bytes=1 << 30) == whole | {"resume_cursor": part["resume_cursor"]}


@pytest.mark.requirement("3.8")
def test_what_has_no_screen_says_so(http: Http) -> None:
    run_id = http.spawn("true")
    answer = http.refused("runs.snapshot", {"run_id": run_id}, "conflict")
    assert "terminal" in answer["message"]
    http.refused("pty.snapshot", {"conversation_id": "never-opened"}, "not_found")
