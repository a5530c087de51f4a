"""`limpet attach` feels like a terminal, and gives back the one that it was given."""

import hashlib
import os
import shlex
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from .home import Home, until
from .own_terminal import OwnTerminal
from .surface import Http
from .talk import Talk, talking
from .test_questions import PLACE, asker, heard

DETACH = b"\x1dd"


def is_raw(terminal: OwnTerminal) -> bool:
    return terminal.settings() != terminal.before


@pytest.mark.requirement("6.3")
def test_commands_are_written_and_run_in_a_conversation(house: Home, http: Http) -> None:
    with talking(http, cwd="/") as talk, OwnTerminal(house, ["attach", talk.id]) as terminal:
        terminal.wait("/ $")
        terminal.press("echo wrogn\x7f\x7fng right\r")
        terminal.wait("wrong right", 1)
        assert terminal.rows()[0] == "/ $ echo wrong right"
        terminal.press("cd /tmp\r")
        terminal.wait("/tmp $")
        terminal.press("(exit 3)\r")
        terminal.wait("[3] /tmp $")
        terminal.press("\x1b[A\x1b[A\x15echo 'two\x1b[200~\nlines'\x1b[201~\r")
        terminal.wait("lines", 7)
        blocks = talk.ok("blocks.since")["blocks"]
        assert [block["cmd"] for block in blocks] == ["echo wrong right", "cd /tmp", "(exit 3)", "echo 'two\nlines'"]
        terminal.press("read x; echo got $x\r")
        until(lambda: talk.status()["mode"] == "interactive", "the block to begin")
        terminal.press("it\r")
        terminal.wait("got it")
        terminal.press(DETACH)
        assert terminal.end() == 0
        assert "__FWS_PROMPT__" not in terminal.said.decode()
        assert talk.status()["closed"] is False


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize(("rows", "cols"), [(24, 80), (60, 200)])
def test_a_program_draws_as_on_the_terminal_itself(
    house: Home, http: Http, tmp_path: Path, rows: int, cols: int
) -> None:
    path = tmp_path / "lines"
    path.write_text("".join(f"line {number}\n" for number in range(500)))
    run_id = http.spawn(f"vim -u NONE -N -i NONE {shlex.quote(str(path))}", pty=True, env={"TERM": "xterm-256color"})
    with OwnTerminal(house, ["attach", run_id], rows, cols) as terminal:
        terminal.wait(f"line {rows - 2}", rows - 2)
        terminal.press("G")
        terminal.wait("line 499", rows - 2)
        assert terminal.is_alternate()
        terminal.resize(30, 90)
        terminal.wait("line 499", 28)
        terminal.press(":echo &lines &columns\r")
        terminal.wait("30 90", 29)
        assert terminal.rows() == http.ok("runs.snapshot", {"run_id": run_id})["rows"]
        terminal.press(DETACH)
        assert terminal.end() == 0
        assert not terminal.is_alternate()
    with OwnTerminal(house, ["attach", "--detach-keys", "C-a C-d", run_id], 30, 90) as again:
        again.wait("line 499", 28)
        assert again.is_alternate()
        again.press(b"gg\x01")
        again.wait("line 0", 0)
        again.press("\x04")
        assert again.end() == 0
    with OwnTerminal(house, ["attach", run_id], 30, 90, LIMPET_DETACH_KEYS="F12") as ending:
        ending.wait("line 0", 0)
        ending.press(":cq!\r")
        assert ending.end() == 1
        assert not ending.is_alternate()


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_the_terminal_is_given_back_after_a_signal(house: Home, http: Http, number: signal.Signals) -> None:
    """Injector: that signal to the command while it is attached to a program that has turned everything on."""
    modes = "\\033[?1049h\\033[?1002h\\033[?1006h\\033[?2004h\\033[?25l\\033[5;9r"
    run_id = http.spawn(f"stty raw -echo; printf '{modes}drawn'; exec cat", pty=True)
    with OwnTerminal(house, ["attach", run_id]) as terminal:
        terminal.wait("drawn")
        until(lambda: is_raw(terminal), "the terminal to be raw")
        os.kill(terminal.process.pid, number)
        assert terminal.end() == 128 + number
        assert not terminal.is_alternate()
        assert terminal.picture().modes == []
        assert terminal.picture().cursor.visible
    assert http.facts(run_id)["status"] == "running"
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("6.3", "1.11")
def test_it_goes_on_after_a_restart_of_the_daemon(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon while somebody is attached; it is started again."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    talk.ok("open", cwd="/")
    with OwnTerminal(home, ["attach", "c1"]) as terminal:
        terminal.wait("/ $")
        terminal.press("while read x; do echo got $x; done\r")
        until(lambda: talk.status()["mode"] == "interactive", "the block to begin")
        terminal.press("one\r")
        terminal.wait("got one")
        home.kill_daemon()
        home.start()
        terminal.press("two\r")
        terminal.wait("got two")
        terminal.press("\x04")
        terminal.wait("/ $", 5)
        terminal.press("echo back\r")
        terminal.wait("back", 6)
        terminal.press(DETACH)
        assert terminal.end() == 0
    talk.ok("close")


@pytest.mark.requirement("6.3")
def test_a_daemon_that_does_not_come_back_leaves_the_terminal_as_it_was(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon, and a file in the way of its socket: no other one can be started."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn("exec sleep 1000", pty=True)
    with OwnTerminal(home, ["attach", run_id]) as terminal:
        until(lambda: is_raw(terminal), "the terminal to be raw")
        home.configure("nonsense = [")
        home.kill_daemon()
        assert terminal.end() == 1
        assert "limpet:" in terminal.said.decode()
    home.configure("")


@pytest.mark.requirement("3.8", "F51")
def test_the_attached_terminal_answers_once(house: Home, http: Http, tmp_path: Path) -> None:
    """Injector: a program that asks its terminal, with two terminals attached, both of which would answer."""
    run_id = http.spawn("stty -echo; echo up; read x; exec " + asker(tmp_path, PLACE, 6), pty=True)
    with OwnTerminal(house, ["attach", run_id]) as first, OwnTerminal(house, ["attach", run_id]) as second:
        first.wait("up")
        second.wait("up")
        until(
            lambda: http.ok("runs.attend", {"run_id": run_id, "terminal": "t", "wait_ms": 1})["terminals"] == 3, "both"
        )
        first.press("go\r")
        assert heard(http, run_id) == b"\x1b[5;7R"
        assert {first.end(), second.end()} == {0}
        asked = [b"\x1b[6n" in terminal.said for terminal in (first, second)]
        assert sorted(asked) == [False, True]


@pytest.mark.requirement("3.8", "F51")
def test_history_that_asks_is_not_shown_to_a_terminal(house: Home, http: Http) -> None:
    """Injector: output full of questions, and a terminal that attaches later and would answer each."""
    run_id = http.spawn("stty raw -echo; printf 'a\\033[6n\\033[c\\033[5nb'; exec cat -v", pty=True)
    http.ok("runs.wait", {"run_ids": [run_id], "for": [{"quiet_ms": 500}], "timeout_ms": 60_000})
    before = http.bytes_of(run_id, "pty")
    with OwnTerminal(house, ["attach", run_id]) as terminal:
        until(lambda: is_raw(terminal), "the terminal to be raw")
        terminal.wait("ab")
        terminal.press("x")
        terminal.wait("x")
        terminal.press(DETACH)
        assert terminal.end() == 0
        assert b"\x1b[6n" not in terminal.said
    assert http.bytes_of(run_id, "pty") == before + b"x"
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("6.3")
def test_a_large_paste_arrives_whole(house: Home, http: Http, tmp_path: Path) -> None:
    got = tmp_path / "got"
    data = "".join(f"{number} grüße 世界\n" for number in range(250_000)).encode()
    assert len(data) > 5_000_000
    run_id = http.spawn(f"stty raw -echo; echo up; exec head -c {len(data)} >{shlex.quote(str(got))}", pty=True)
    with OwnTerminal(house, ["attach", run_id]) as terminal:
        terminal.wait("up")
        terminal.press(data)
        assert terminal.end() == 0
    assert hashlib.sha256(got.read_bytes()).digest() == hashlib.sha256(data).digest()


@pytest.mark.requirement("6.3")
def test_what_cannot_be_attached_is_said(house: Home, http: Http) -> None:
    run_id = http.spawn("exec sleep 1000")
    with OwnTerminal(house, ["attach", run_id]) as terminal:
        terminal.wait("no terminal")
        assert terminal.end() == 1
    with OwnTerminal(house, ["attach", "no-such-name"]) as terminal:
        terminal.wait("no run and no conversation")
        assert terminal.end() == 1
    http.ok("runs.kill", {"run_id": run_id})
    tty = http.spawn("exec sleep 1000", pty=True)
    done = house.limpet("attach", tty)
    assert done.returncode == 1
    assert b"must be a terminal" in done.stderr
    assert house.limpet("attach", "--detach-keys", "Nonsense", tty).returncode == 1
    http.ok("runs.kill", {"run_id": tty})
