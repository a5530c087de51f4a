"""`limpet pty` and `limpet blocks`: conversations by the verb, and what was run in them."""

import json
from collections.abc import Iterator

import pytest

from .home import Home
from .surface import Http

NAME = "typed-by-hand"


@pytest.fixture
def opened(house: Home, http: Http) -> Iterator[Home]:
    done = house.limpet("pty", "open", NAME, "--cwd", "/", "--shell", "bash")
    assert done.returncode == 0, done
    assert b"mode: idle" in done.stdout
    yield house
    http.ok("pty.close", {"conversation_id": NAME})


def said(home: Home, *words: str, code: int = 0) -> str:
    done = home.limpet(*words)
    assert done.returncode == code, done
    assert b"Traceback" not in done.stderr
    return done.stdout.decode()


@pytest.mark.requirement("6.3")
def test_commands_and_their_codes(opened: Home) -> None:
    assert said(opened, "pty", "run", NAME, "cd /tmp; kept=1; echo in $PWD") == "in /tmp\n"
    assert (
        said(
            opened, "pty", "run", NAME, "--cwd", "/usr", "pwd; echo $kept; exit_with() { return 7; }; exit_with", code=7
        )
        == "/usr\n1\n"
    )
    assert (
        json.loads(said(opened, "pty", "run", NAME, "echo", "several", "words", "--json"))["output"]
        == "several words\n"
    )
    late = opened.limpet("pty", "run", "--timeout", "0.2", NAME, "echo begun; sleep 1000")
    assert (late.returncode, late.stdout) == (124, b"begun\n")
    assert b"the block goes on" in late.stderr
    assert said(opened, "pty", "status", NAME).count("mode: block_running") == 1
    assert said(opened, "pty", "signal", NAME, "int") == ""
    assert "__FWS_PROMPT__" in said(opened, "pty", "wait", NAME, "--timeout", "30")
    listed = said(opened, "blocks", "list", NAME).splitlines()
    assert [line.split()[1] for line in listed] == ["completed", "failed", "completed", "cancelled"]
    assert listed[3].endswith("echo begun; sleep 1000")
    block = listed[0].split()[0]
    assert said(opened, "blocks", "read", NAME, block) == "in /tmp\n"
    assert f"block_id: {block}\n" in said(opened, "blocks", "get", NAME, block)
    assert said(opened, "blocks", "search", NAME, "several") == f"{listed[2].split()[0]}@0: several words\n"
    assert said(opened, "blocks", "search", "--regex", "--limit", "1", NAME, "in /[a-z]+\\n") == f"{block}@0: in /tmp\n"
    assert [json.loads(line)["seq"] for line in said(opened, "blocks", "list", NAME, "--json").splitlines()] == [
        1,
        2,
        3,
        4,
    ]


@pytest.mark.requirement("6.3")
def test_a_program_is_talked_to(opened: Home) -> None:
    begun = said(opened, "pty", "exec", "--interactive", NAME, "read -p 'name? ' x; echo hello $x").strip()
    assert said(opened, "pty", "wait", NAME, "--for", "name\\? ") == "name? \n"
    assert said(opened, "pty", "send", NAME, "Ada", "Enter") == ""
    said(opened, "pty", "wait", NAME, "--for", "hello Ada\n")
    assert said(opened, "blocks", "read", NAME, begun).endswith("hello Ada\n")
    assert "hello Ada" in said(opened, "pty", "snapshot", NAME)
    assert said(opened, "pty", "snapshot", NAME, "--format", "html").startswith("<pre")
    assert "hello Ada\n" in said(opened, "pty", "read", NAME, "--from", "0")
    assert said(opened, "pty", "resize", NAME, "30", "100") == ""
    said(opened, "pty", "exec", NAME, "sleep 1000")
    said(opened, "pty", "end", "--force", NAME)
    assert said(opened, "pty", "wait", NAME, "--for", "nowhere", "--timeout", "0.1", code=124) == ""
    said(opened, "pty", "reset", NAME)


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["pty", "dance", NAME], 2),
        (["pty", "status", NAME, "more"], 2),
        (["blocks", "read", NAME], 2),
        (["blocks", "list", NAME, "more"], 2),
        (["pty", "resize", NAME, "30"], 1),
        (["pty", "signal", NAME], 1),
        (["pty", "status", "never-opened"], 1),
        (["blocks", "list", "never-opened"], 1),
        (["pty", "status", "../x"], 1),
    ],
)
def test_what_is_wrong_is_said(house: Home, words: list[str], code: int) -> None:
    done = house.limpet(*words)
    assert (done.returncode, done.stdout) == (code, b"")
    assert done.stderr.startswith(b"limpet: ")
