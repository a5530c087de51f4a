"""Programs that ask their terminal: answered once, never where line mode is on or the shell is in front."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from .home import Home
from .surface import Http, Surface
from .talk import talking

# Asks as it is told, in raw mode, and says what it heard: as many bytes as it waits for, and what comes after them.
ASKER = """
import os, select, sys, termios, tty
question, count = sys.argv[1].encode().decode("unicode_escape").encode("latin-1"), int(sys.argv[2])
before = termios.tcgetattr(0)
if "line" not in sys.argv:
    tty.setraw(0)
os.write(1, question)
heard = b""
while len(heard) < count:
    heard += os.read(0, 1000)
while select.select([0], [], [], 0.5)[0]:
    heard += os.read(0, 1000)
termios.tcsetattr(0, termios.TCSANOW, before)
print("heard", heard.hex(), "in all", flush=True)
"""
PLACE = "\\x1b[5;7H\\x1b[6n"


def asker(folder: Path, question: str, count: int, *more: str) -> str:
    program = folder / "asker.py"
    program.write_text(ASKER)
    return shlex.join([sys.executable, str(program), question, str(count), *more])


def heard(http: Surface, run_id: str) -> bytes:
    http.finish(run_id)
    said = http.bytes_of(run_id, "pty").decode()
    return bytes.fromhex(said.rpartition("heard ")[2].partition(" in all")[0])


@pytest.mark.requirement("3.8", "F51")
@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (PLACE, b"\x1b[5;7R"),
        ("\\x1b[5n", b"\x1b[0n"),
        ("\\x1b[?25$p", b"\x1b[?25;1$y"),
        ("\\x1b]11;?\\x07", b"\x1b]11;rgb:0000/0000/0000\x07"),
        ("\\x1b[12;40H\\x1b[6n\\x1b[5n", b"\x1b[12;40R\x1b[0n"),
    ],
    ids=["place", "state", "mode", "colour", "two"],
)
def test_a_program_that_asks_is_answered_once(http: Http, tmp_path: Path, question: str, answer: bytes) -> None:
    """Injector: a program that asks its terminal and listens; nobody is attached."""
    run_id = http.spawn(asker(tmp_path, question, len(answer)), pty=True)
    assert heard(http, run_id) == answer


@pytest.mark.requirement("3.8", "F51")
def test_what_kind_of_terminal_it_is_can_be_asked(http: Http, tmp_path: Path) -> None:
    """Injector: a program that asks its terminal and listens; nobody is attached."""
    answer = heard(http, http.spawn(asker(tmp_path, "\\x1b[c", 5), pty=True))
    assert answer.startswith(b"\x1b[?6")
    assert answer.count(b"c") == 1


@pytest.mark.requirement("3.8", "F51")
def test_history_is_not_answered_again(http: Http, tmp_path: Path) -> None:
    """Injector: a program that asked and was answered listens on, while its screen is looked at again and again."""
    stop = tmp_path / "stop"
    program = tmp_path / "asker.py"
    program.write_text(ASKER.replace("0.5)[0]", "0.2)[0] or not os.path.exists(sys.argv[3])"))
    command = shlex.join([sys.executable, str(program), PLACE, "6", str(stop)])
    run_id = http.spawn(f"{command}", pty=True)
    http.ok("runs.wait", {"run_ids": [run_id], "for": [{"quiet_ms": 300}], "timeout_ms": 60_000})
    for size in (1 << 16, 1 << 20, 1 << 30):
        assert http.ok("runs.snapshot", {"run_id": run_id, "replay_bytes": size})["cursor"]["row"] == 4
    stop.touch()
    http.ok("runs.write", {"run_id": run_id, "text": "."})
    assert heard(http, run_id) == b"\x1b[5;7R."


@pytest.mark.requirement("3.8", "F51")
def test_nothing_is_answered_in_line_mode_or_to_the_shell(house: Home, http: Http, tmp_path: Path) -> None:
    """Injector: output that asks, in line mode, and in the background while a conversation's shell is in front."""
    run_id = http.spawn(asker(tmp_path, PLACE, 1, "line"), pty=True)
    http.ok("runs.wait", {"run_ids": [run_id], "for": [{"quiet_ms": 300}], "timeout_ms": 60_000})
    http.ok("runs.write", {"run_id": run_id, "text": "x\n"})
    assert heard(http, run_id) == b"x\n"
    with talking(http) as talk:
        talk.run("stty raw -echo; (sleep 0.2; printf '\\033[6n') & echo begun")
        talk.ok("wait_for", match="\x1b[6n", from_cursor=0, timeout_ms=60_000)
        talk.run("stty sane; printf 'still \\033[6n there\\n'")
        run_id = talk.status()["run_id"]
        assert "still \x1b[6n there\n" in talk.spool()
        assert typed(house, run_id) == []


def typed(home: Home, run_id: str) -> list[dict[str, object]]:
    """The facts of what was typed into a run's terminal, by whomever."""
    journal = (home.path / "runs" / run_id / "1" / "keeper.journal").read_text().splitlines()
    facts = [json.loads(line.split(" ", 2)[2]) for line in journal]
    return [fact for fact in facts if fact["fact"] == "stdin"]
