"""Conversations as spec 3, section 8, has them, over every surface: cursors, sessions, the gate, sentinels."""

import base64
import sys
from pathlib import Path

import pytest

from .surface import Http, Surface
from .talk import ALL_SHELLS, SENTINEL, talking

GUESS = """
import sys
while True:
    sys.stdout.write('Guess a number: ')
    sys.stdout.flush()
    number = int(sys.stdin.readline())
    if number > 10:
        print('Out of range')
        sys.exit(3)
    if number == 7:
        print('Correct!')
        break
"""


@pytest.fixture
def guess(tmp_path: Path) -> str:
    program = tmp_path / "guess"
    program.write_text(GUESS)
    return f"{sys.executable} '{program}'"


@pytest.mark.requirement("3.2", "3.5", "9.pty")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_cursors_lead_from_one_wait_to_the_next(surface: Surface, shell: str) -> None:
    with talking(surface, shell=shell) as talk:
        begun = talk.ok("exec_block", cmd='printf "hello\\nworld\\n"')
        assert set(begun) == {"ok", "block_id", "seq", "ts"}
        first = talk.wait_for("hello", 0)
        assert set(first) <= {"ok", "matched", "match_text", "match_cursor", "match_span", "resume_cursor", "extra"}
        assert first["resume_cursor"] == first["match_span"]["end"]
        second = talk.wait_for("world", first["resume_cursor"])
        talk.wait_prompt(second["resume_cursor"])
        late = talk.call("wait_for", match="nowhere", from_cursor=second["resume_cursor"], timeout_ms=50)
        assert (late["ok"], late["matched"], late["error"]) == (False, False, "timeout")
        assert late["resume_cursor"] == talk.status()["resume_cursor"]
        assert "next_cursor" not in first | second | late


@pytest.mark.requirement("3.2", "3.6")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_an_interactive_session_ends_at_the_prompt(surface: Surface, shell: str, guess: str) -> None:
    with talking(surface, shell=shell) as talk:
        begun = talk.ok("exec_interactive", cmd=guess)
        assert set(begun) == {"ok", "session_id", "block_id", "ts_begin", "resume_cursor"}
        assert talk.status()["mode"] == "interactive"
        asked = talk.wait_for("Guess a number", begun["resume_cursor"])
        assert talk.ok("send", data="7\r") == {"ok": True}
        right = talk.wait_for("Correct!", asked["resume_cursor"])
        back = talk.wait_prompt(right["resume_cursor"])
        assert (back["exit_code"], back["mode"], back["block_id"]) == (0, "idle", begun["block_id"])
        assert talk.block(begun["block_id"])["status"] == "completed"


@pytest.mark.requirement("3.2", "3.6")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_a_session_that_fails_says_its_exit_code(http: Http, shell: str, guess: str) -> None:
    with talking(http, shell=shell) as talk:
        begun = talk.ok("exec_interactive", cmd=guess)
        sent = talk.ok("expect_send", expect="Guess a number", send="11\r", from_cursor=begun["resume_cursor"])
        wrong = talk.wait_for("Out of range", sent["resume_cursor"])
        assert talk.wait_prompt(wrong["resume_cursor"])["exit_code"] == 3
        block = talk.block(begun["block_id"])
        assert (block["status"], block["exit_code"], block["ended_by"]) == ("failed", 3, "prompt")


@pytest.mark.requirement("3.2", "9.pty")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_nothing_begins_beside_what_runs(surface: Surface, shell: str, guess: str) -> None:
    with talking(surface, shell=shell) as talk:
        talk.ok("exec_interactive", cmd=guess)
        refused = talk.call("exec_block", cmd="echo SHOULD_FAIL")
        assert (refused["error"], refused["mode"]) == ("busy", "interactive")
        assert "interactive mode" in refused["message"]
        ended = talk.ok("end_session")
        assert (ended["ended"], ended["mode"]) == (True, "idle")
        talk.ok("exec_block", cmd="read x")
        refused = talk.call("exec_block", cmd="echo SHOULD_FAIL")
        assert (refused["error"], refused["mode"]) == ("busy", "block_running")


@pytest.mark.requirement("3.2", "3.4")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_each_command_is_followed_by_a_sentinel(http: Http, shell: str) -> None:
    with talking(http, shell=shell, cwd="/") as talk:
        for cmd in ("true", "cd /tmp", "printf no-newline", "sh -c 'exit 9'"):
            talk.run(cmd)
        spool = talk.spool()
        found = SENTINEL.findall(spool)
        assert [code for _, _, code in found] == ["0", "0", "0", "0", "9"]
        assert [base64.b64decode(cwd).decode() for _, cwd, _ in found] == ["/", "/", "/tmp", "/tmp", "/tmp"]
        stamps = [int(ts) for ts, _, _ in found]
        assert stamps == sorted(stamps)
        assert "no-newline\n__FWS_PROMPT__" in spool
        outputs = [
            talk.ok("blocks.read", block_id=block["block_id"])["data"] for block in talk.ok("blocks.since")["blocks"]
        ]
        assert outputs == ["", "", "no-newline", ""]
        assert "cd /tmp" not in spool


@pytest.mark.requirement("3.1", "3.2")
def test_a_prompt_is_found_from_any_cursor(http: Http) -> None:
    with talking(http) as talk:
        talk.run("false")
        first = talk.wait_prompt(0)
        second = talk.wait_prompt(first["resume_cursor"])
        assert SENTINEL.fullmatch(second["match_text"])
        assert second["exit_code"] == 1
        assert second["match_span"]["end"] == second["resume_cursor"]
        assert talk.call("wait_prompt", from_cursor=second["resume_cursor"], timeout_ms=50)["error"] == "timeout"


@pytest.mark.requirement("0.1", "3.1")
def test_a_conversation_is_listed_as_a_run(surface: Surface) -> None:
    with talking(surface) as talk:
        run_id = talk.status()["run_id"]
        assert surface.facts(run_id)["status"] == "running"
        listed = surface.ok("runs.list", {"dialect": "pty", "session_id": talk.id})["runs"]
        assert [run["run_id"] for run in listed] == [run_id]
    assert surface.facts(run_id)["ended_by"] == "kill"
    assert talk.status()["closed"] is True


@pytest.mark.requirement("0.9")
def test_a_key_begins_one_block(http: Http) -> None:
    with talking(http) as talk:
        first = talk.run("echo once", key="k1")
        again = talk.run("echo once", key="k1")
        assert (first["block_id"], first["output"]) == (again["block_id"], again["output"])
        assert talk.call("run", cmd="echo other", key="k1")["error"] == "conflict"
        assert talk.status()["blocks"] == 1


@pytest.mark.requirement("3.10", "9.pty")
def test_blocks_are_searched_without_their_prompts(http: Http) -> None:
    with talking(http) as talk:
        blocks = [talk.run(f"echo a needle {number}")["block_id"] for number in range(3)]
        found = talk.ok("blocks.search", query="needle", limit=2)
        assert [(hit["block_id"], hit["span"], hit["lines"]) for hit in found["hits"]] == [
            (blocks[number], {"start": 2, "end": 8}, f"a needle {number}") for number in range(2)
        ]
        rest = talk.ok("blocks.search", query="needle", after=found["next_after"])
        assert [hit["block_id"] for hit in rest["hits"]] == blocks[2:]
        assert rest["has_more"] is False
        assert talk.ok("blocks.search", query="__FWS_PROMPT__")["hits"] == []
        assert len(talk.ok("blocks.search", query="needle [12]", regex=True)["hits"]) == 2
