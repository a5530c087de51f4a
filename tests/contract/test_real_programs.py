"""Programs as people use them, in a conversation: asked, answered, steered by keys, and back at the prompt."""

import shlex
import sys
from pathlib import Path

import pytest

from .home import Answer, until
from .surface import Http
from .talk import Talk, talking


def begin(talk: Talk, command: str) -> int:
    cursor = talk.ok("exec_interactive", cmd=command)["resume_cursor"]
    assert isinstance(cursor, int)
    return cursor


def on_screen(talk: Talk, text: str) -> Answer:
    found: list[Answer] = []

    def is_there() -> bool:
        found.append(talk.ok("snapshot"))
        return text in found[-1]["screen"]

    until(is_there, f"{text!r} on the screen")
    return found[-1]


def ask(talk: Talk, cursor: int, expect: str, send: str) -> int:
    answer = talk.ok("expect_send", expect=expect, send=send, from_cursor=cursor, timeout_ms=60_000)
    after = answer["resume_cursor"]
    assert isinstance(after, int)
    return after


@pytest.mark.requirement("3.2", "3.6")
@pytest.mark.parametrize(
    ("command", "prompt", "question", "answer", "leave"),
    [
        (f"{sys.executable} -q -i", ">>> ", "6 * 7\r", "42", "exit()\r"),
        ("sqlite3", "sqlite> ", "select 6 * 7;\r", "42", ".quit\r"),
        ("sh -i", "# ", "echo $((6 * 7))\r", "42", "exit\r"),
    ],
    ids=["python", "sqlite", "sh"],
)
def test_a_shell_within_the_shell(
    http: Http, command: str, prompt: str, question: str, answer: str, leave: str
) -> None:
    with talking(http, env={"PS1": "# ", "TERM": "xterm"}) as talk:
        cursor = begin(talk, f"PS1='# ' {command}")
        cursor = ask(talk, cursor, prompt, question)
        cursor = talk.wait_for(answer, cursor)["resume_cursor"]
        cursor = ask(talk, cursor, prompt, leave)
        back = talk.wait_prompt(cursor)
        assert (back["exit_code"], back["mode"]) == (0, "idle")


@pytest.mark.requirement("3.2", "3.8")
def test_a_history_is_rewritten_in_an_editor(http: Http, tmp_path: Path) -> None:
    name = "-c user.name=n -c user.email=e@example.com -c core.editor='vim -u NONE -N -i NONE'"
    with talking(http, cwd=str(tmp_path), env={"TERM": "xterm-256color", "HOME": str(tmp_path)}) as talk:
        talk.run("git init -q . && touch a")
        for number in (1, 2, 3):
            talk.run(f"echo {number} >a; git add a; git {name} commit -q -m 'number {number}'")
        cursor = begin(talk, f"git {name} rebase -i HEAD~2")
        shown = on_screen(talk, "number 3")
        assert shown["alternate_screen"] is True
        talk.ok("send", data=":%s/^pick \\(.*number 3\\)/fixup \\1/\r")
        on_screen(talk, "fixup")
        talk.ok("send", data=":wq\r")
        back = talk.wait_prompt(cursor)
        assert back["exit_code"] == 0
        assert talk.run("git log --format=%s")["output"] == "number 2\nnumber 1\n"
        assert talk.ok("snapshot")["alternate_screen"] is False


@pytest.mark.requirement("3.2", "3.8")
def test_a_pager_is_left_by_its_key(http: Http, tmp_path: Path) -> None:
    (tmp_path / "long").write_text("".join(f"line {number}\n" for number in range(1000)))
    with talking(http, cwd=str(tmp_path), env={"TERM": "xterm-256color"}) as talk:
        cursor = begin(talk, "less long")
        on_screen(talk, "line 22")
        talk.ok("send", data="G")
        on_screen(talk, "line 999")
        talk.ok("send", data="q")
        assert talk.wait_prompt(cursor)["exit_code"] == 0


@pytest.mark.requirement("3.2", "3.8")
def test_a_form_is_filled_in(http: Http, tmp_path: Path) -> None:
    form = tmp_path / "form.py"
    form.write_text(
        "import curses, curses.textpad\n"
        "def fill(screen):\n"
        "    screen.addstr(2, 4, 'Name:'); screen.refresh()\n"
        "    return curses.textpad.Textbox(curses.newwin(1, 20, 2, 10)).edit()\n"
        "name = curses.wrapper(fill)\n"
        "print(f'filled in: {name.strip()}')\n"
    )
    with talking(http, env={"TERM": "xterm-256color"}) as talk:
        cursor = begin(talk, shlex.join([sys.executable, str(form)]))
        shown = on_screen(talk, "    Name:")
        assert shown["alternate_screen"] is True
        talk.ok("send", data="Bda\x02\x02\x04\x04Ada\x07")
        talk.wait_for("filled in: ", cursor)
        assert talk.wait_prompt(cursor)["exit_code"] == 0
        assert "Ada" in talk.ok("snapshot")["screen"]


@pytest.mark.requirement("3.2", "0.10")
def test_a_password_is_asked_for_and_not_kept(http: Http) -> None:
    with talking(http) as talk:
        cursor = begin(talk, "read -rsp 'Password: ' p; echo; echo ${#p} characters")
        cursor = ask(talk, cursor, "Password: ", "correct horse\r")
        talk.wait_for("13 characters", cursor)
        assert talk.wait_prompt(cursor)["exit_code"] == 0
        assert "horse" not in talk.spool()
