"""`pty.status` says whether what runs waits for somebody to type, and whether that will be seen."""

import shlex
import sys

import pytest

from .home import until
from .surface import Http
from .talk import Talk, talking

SELECTS = "import select, sys; select.select([sys.stdin], [], []); sys.stdin.readline()"
POLLS = "import select, sys; p = select.poll(); p.register(0, select.POLLIN); p.poll(); sys.stdin.readline()"
EPOLLS = "import select, sys; p = select.epoll(); p.register(0, select.EPOLLIN); p.poll(); sys.stdin.readline()"
SECRET = "import getpass; getpass.getpass('word: ')"


def python(program: str) -> str:
    return shlex.join([sys.executable, "-c", program])


def waits(talk: Talk) -> bool:
    wanted = talk.status()["input"]
    assert set(wanted) == {"waits", "echo", "line_mode", "pids"}
    return wanted["waits"]


@pytest.mark.requirement("3.1", "3.8")
@pytest.mark.parametrize(
    "command",
    ["read x", "cat | head -n 1", python(SELECTS), python(POLLS), python(EPOLLS), "sh -c 'read x </dev/tty'"],
    ids=["read", "pipe", "select", "poll", "epoll", "tty"],
)
def test_what_waits_for_input_is_known(http: Http, command: str) -> None:
    with talking(http) as talk:
        begun = talk.ok("exec_interactive", cmd=command)
        until(lambda: waits(talk), f"{command} to wait for input")
        wanted = talk.status()["input"]
        assert (wanted["echo"], wanted["line_mode"]) == (True, True)
        talk.ok("send", data="typed\r\x04")
        talk.wait_prompt(begun["resume_cursor"])


@pytest.mark.requirement("3.1", "3.8")
def test_a_secret_is_known_by_its_echo(http: Http) -> None:
    with talking(http) as talk:
        begun = talk.ok("exec_interactive", cmd=python(SECRET))
        talk.wait_for("word: ", begun["resume_cursor"])
        until(lambda: waits(talk), "the question for a secret")
        assert talk.status()["input"]["echo"] is False
        talk.ok("send", data="secret\r")
        talk.wait_prompt(begun["resume_cursor"])


@pytest.mark.requirement("3.1", "3.8")
def test_what_computes_or_sleeps_waits_for_nobody(http: Http) -> None:
    with talking(http) as talk:
        for command in ("sleep 1000", "while :; do :; done", "sleep 1000 | cat", "cat <<<here; sleep 1000"):
            begun = talk.ok("exec_interactive", cmd=f"echo begun; {command}")
            talk.wait_for("begun\n", begun["resume_cursor"])
            assert not any(waits(talk) for _ in range(5))
            talk.ok("end_session", force=True)
        assert waits(talk) is False
    assert talk.status()["input"] == {"waits": None, "echo": None, "line_mode": None, "pids": []}
