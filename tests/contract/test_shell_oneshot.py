"""The shell operation without action runs a command and waits; spawn does not (1.1, 1.2, 1.3)."""

from pathlib import Path
from typing import Any

import pytest

from .fifos import Gate, Lifeline
from .surface import Http, Surface


@pytest.mark.requirement("1.1")
def test_one_shot(surface: Surface) -> None:
    ran = surface.ok("shell", {"command": "echo out; echo err >&2; exit 3"})
    expected: dict[str, Any] = {
        "ok": True,
        "exit_code": 3,
        "stdout": "out\n",
        "stderr": "err\n",
        "truncated": False,
        "timed_out": False,
    }
    assert {name: ran[name] for name in expected} == expected
    assert isinstance(ran["run_id"], str)
    assert type(ran["duration_ms"]) is int
    assert 0 <= ran["duration_ms"] < 60_000
    assert surface.facts(ran["run_id"])["status"] == "failed"


@pytest.mark.requirement("1.1")
@pytest.mark.parametrize(
    ("command", "stdout"),
    [
        ("echo 'a  b' \"c$((1+1))\" | tr a-z A-Z", "A  B C2\n"),
        ("x=1\nif [ $x = 1 ]; then\n  echo yes\nfi", "yes\n"),
        ("cat <<END\nhere $((2*3))\nEND", "here 6\n"),
        ("echo a # comment", "a\n"),
        ("(exit 3) || echo no", "no\n"),
        ("", ""),
        ("-n", None),
        ("echo héllo 🐚", "héllo 🐚\n"),
        ("printf 'x\\377y'", "x\ufffdy"),
    ],
)
def test_any_command(http: Http, command: str, stdout: str | None) -> None:
    answer = http.call("shell", {"command": command})
    if command == "":
        assert answer["ok"] or answer["error"] == "invalid_argument", answer
    elif stdout is None:
        assert answer["ok"], answer
        assert answer["exit_code"] != 0, answer
    else:
        assert (answer["exit_code"], answer["stdout"]) == (0, stdout)


@pytest.mark.requirement("1.1")
def test_a_long_command(http: Http) -> None:
    words = "a" * 100_000
    ran = http.ok("shell", {"command": f"printf %s '{words}' | wc -c"})
    assert (ran["exit_code"], ran["stdout"].strip()) == (0, "100000")


@pytest.mark.requirement("1.3")
def test_a_command_longer_than_an_argument_may_be(http: Http) -> None:
    """It runs, or it could not start and says so; it is never cut."""
    words = "a" * 1_000_000
    ran = http.ok("shell", {"command": f"printf %s '{words}' | wc -c"})
    if ran["exit_code"] is None:
        assert "long" in ran["error_message"], str(ran)[:500]
    else:
        assert (ran["exit_code"], ran["stdout"].strip()) == (0, "1000000"), str(ran)[:500]


@pytest.mark.requirement("1.3")
@pytest.mark.parametrize("cwd", ["/no/such/folder", "/etc/passwd"])
def test_a_command_that_cannot_start(surface: Surface, cwd: str) -> None:
    answer = surface.call("shell", {"command": "true", "cwd": cwd})
    assert answer["ok"] is True, answer
    assert cwd in answer["error_message"] or "cwd" in answer["error_message"], answer
    assert answer["exit_code"] is None, answer
    facts = surface.facts(answer["run_id"])
    assert (facts["status"], facts["exit_code"], facts["signal"]) == ("failed", None, None)
    assert facts["error_message"] == answer["error_message"]


@pytest.mark.requirement("1.3")
def test_a_spawn_that_cannot_start(surface: Surface) -> None:
    facts = surface.finish(surface.spawn("true", cwd="/no/such/folder"))
    assert facts["status"] == "failed"
    assert "/no/such/folder" in facts["error_message"] or "cwd" in facts["error_message"]


@pytest.mark.requirement("1.1", "1.6", "9")
def test_a_one_shot_that_times_out(surface: Surface, lifeline: Lifeline) -> None:
    ran = surface.ok("shell", {"command": lifeline.hold + "echo before; sleep 1000", "timeout_secs": 1})
    assert (ran["timed_out"], ran["stdout"]) == (True, "before\n"), ran
    assert ran["duration_ms"] >= 1000
    assert lifeline.gone(30)
    facts = surface.facts(ran["run_id"])
    assert (facts["status"], facts["ended_by"]) == ("timed_out", "timeout")
    assert ran["exit_code"] == facts["exit_code"]


@pytest.mark.requirement("1.6")
def test_a_command_within_its_timeout(http: Http) -> None:
    ran = http.ok("shell", {"command": "exit 2", "timeout_secs": 600})
    assert (ran["timed_out"], ran["exit_code"]) == (False, 2)


@pytest.mark.requirement("1.3", "1.6")
def test_statuses_of_ends(http: Http, lifeline: Lifeline) -> None:
    killed = http.spawn(lifeline.hold + "exec sleep 1000")
    lifeline.word()
    http.ok("runs.kill", {"run_id": killed})
    ends = {
        "completed": http.spawn("true"),
        "failed": http.spawn("kill -HUP $$"),
        "timed_out": http.spawn("sleep 1000", timeout_secs=1),
        "killed": killed,
    }
    assert {status: http.finish(run_id)["status"] for status, run_id in ends.items()} == {s: s for s in ends}


@pytest.mark.requirement("1.2", "1.6")
def test_spawn_answers_without_waiting(surface: Surface, gate: Gate) -> None:
    spawned = surface.ok("shell", {"action": "spawn", "command": gate.wait + "echo done"})
    assert set(spawned) >= {"ok", "run_id", "session_id", "status", "next_seq"}
    assert spawned["status"] in ("queued", "running")
    assert type(spawned["next_seq"]) is int
    assert surface.facts(spawned["run_id"])["status"] in ("queued", "running")
    gate.open()
    assert surface.finish(spawned["run_id"])["status"] == "completed"
    assert surface.bytes_of(spawned["run_id"]) == b"done\n"


@pytest.mark.requirement("1.2")
def test_spawn_in_the_foreground_waits(surface: Surface) -> None:
    ended = surface.ok("shell", {"action": "spawn", "command": "echo hi; exit 3", "background": False})
    assert (ended["status"], ended["exit_code"], ended["signal"], ended["ended_by"]) == ("failed", 3, None, "self")
    facts = surface.facts(ended["run_id"])
    same = ("session_id", "command", "attempt", "truncated", "error_message", "created_at", "started_at", "finished_at")
    assert {name: ended[name] for name in same} == {name: facts[name] for name in same}


@pytest.mark.requirement("1.1", "0.10")
def test_cwd(surface: Surface, tmp_path: Path) -> None:
    assert surface.ok("shell", {"command": "pwd", "cwd": str(tmp_path)})["stdout"] == f"{tmp_path}\n"


@pytest.mark.requirement("0.5", "1.1")
def test_plain_view_of_a_one_shot(http: Http) -> None:
    command = "printf '\\033[1mbold\\033[0m 1%%\\r2%%\\n'"
    assert http.ok("shell", {"command": command})["stdout"] == "\x1b[1mbold\x1b[0m 1%\r2%\n"
    assert http.ok("shell", {"command": command, "view": "plain"})["stdout"] == "2%\n"


@pytest.mark.requirement("1.10")
def test_sessions_run_side_by_side(http: Http, tmp_path: Path, gate: Gate) -> None:
    """The first ends only after the second has begun, so one after the other would never end."""
    with Lifeline(tmp_path, "second") as second:
        first = http.spawn(gate.wait, session_id="side-one")
        other = http.spawn(second.hold, session_id="side-two")
        second.word()
        gate.open()
        assert [http.finish(run_id)["status"] for run_id in (first, other)] == ["completed", "completed"]
