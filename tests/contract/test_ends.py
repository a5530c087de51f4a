"""The end of a run is several facts, kept apart: code or signal, who ended it, what still holds a stream (0.8)."""

import json
import os
import signal

import pytest

from .fifos import Gate, Lifeline
from .home import Answer, running, until
from .surface import Http, Surface


def ends(facts: Answer) -> Answer:
    return {name: facts[name] for name in ("status", "exit_code", "signal", "ended_by")}


@pytest.mark.requirement("0.8", "1.3")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("exit 0", {"status": "completed", "exit_code": 0, "signal": None, "ended_by": "self"}),
        ("exit 3", {"status": "failed", "exit_code": 3, "signal": None, "ended_by": "self"}),
        ("exit 255", {"status": "failed", "exit_code": 255, "signal": None, "ended_by": "self"}),
        # A code that only looks like a signal stays a code.
        ("exit 137", {"status": "failed", "exit_code": 137, "signal": None, "ended_by": "self"}),
        ("kill -TERM $$", {"status": "failed", "exit_code": None, "signal": "SIGTERM", "ended_by": "self"}),
        ("kill -KILL $$", {"status": "failed", "exit_code": None, "signal": "SIGKILL", "ended_by": "self"}),
        ("kill -HUP $$", {"status": "failed", "exit_code": None, "signal": "SIGHUP", "ended_by": "self"}),
        ("exec sleep 0", {"status": "completed", "exit_code": 0, "signal": None, "ended_by": "self"}),
        ("/no/such/program", {"status": "failed", "exit_code": 127, "signal": None, "ended_by": "self"}),
    ],
)
def test_ends_of_its_own(http: Http, command: str, expected: Answer) -> None:
    facts = http.finish(http.spawn(command))
    assert ends(facts) == expected
    assert facts["output_open"] is False
    assert not facts["survivors"]


@pytest.mark.requirement("0.8", "1.6")
def test_an_end_by_kill(http: Http, lifeline: Lifeline) -> None:
    run_id = http.spawn(lifeline.hold + "exec sleep 1000")
    lifeline.word()
    http.ok("runs.kill", {"run_id": run_id})
    facts = http.finish(run_id)
    assert ends(facts) == {"status": "killed", "exit_code": None, "signal": "SIGTERM", "ended_by": "kill"}


@pytest.mark.requirement("0.8", "1.6")
def test_a_killed_command_may_choose_its_code(http: Http, lifeline: Lifeline) -> None:
    run_id = http.spawn("trap 'echo bye; exit 5' TERM; " + lifeline.hold + "while :; do sleep 0.05; done")
    lifeline.word()
    http.ok("runs.kill", {"run_id": run_id})
    facts = http.finish(run_id)
    assert ends(facts) == {"status": "killed", "exit_code": 5, "signal": None, "ended_by": "kill"}
    assert http.bytes_of(run_id) == b"bye\n"


@pytest.mark.requirement("0.8", "1.6")
def test_an_end_by_timeout(http: Http) -> None:
    facts = http.finish(http.spawn("exec sleep 1000", timeout_secs=1))
    assert ends(facts) == {"status": "timed_out", "exit_code": None, "signal": "SIGTERM", "ended_by": "timeout"}


@pytest.mark.requirement("0.8")
def test_a_living_run_has_neither_code_nor_signal(http: Http, gate: Gate) -> None:
    run_id = http.spawn("echo on; " + gate.wait)
    http.read(run_id, wait_ms=60_000)
    facts = http.facts(run_id)
    assert (facts["status"], facts["exit_code"], facts["signal"], facts["ended_by"]) == ("running", None, None, None)
    gate.open()
    http.finish(run_id)


@pytest.mark.requirement("0.8")
def test_a_descendant_that_holds_the_stream(surface: Surface, lifeline: Lifeline, gate: Gate) -> None:
    """The run ends without it; what it writes later is in the spool alone; the stream is over when it lets go."""
    run_id = surface.spawn(lifeline.hold + f"({gate.wait} echo late; {gate.wait}) & echo now; exit 6")
    facts = surface.finish(run_id)
    assert ends(facts) == {"status": "failed", "exit_code": 6, "signal": None, "ended_by": "self"}
    assert facts["output_open"] is True
    page = surface.read(run_id)
    assert (page["data"], page["eof"]) == ("now\n", False)
    gate.open()
    page = surface.read(run_id, offset=4, wait_ms=60_000)
    assert (page["data"], page["eof"]) == ("late\n", False)
    gate.open()
    assert lifeline.gone(30)
    page = surface.read(run_id, offset=9, wait_ms=60_000)
    assert (page["data"], page["total_bytes"], page["eof"]) == ("", 9, True)
    until(lambda: surface.facts(run_id)["output_open"] is False, "output_open to be false")
    assert ends(surface.facts(run_id)) == ends(facts)


@pytest.mark.requirement("0.8", "1.1")
def test_a_one_shot_does_not_wait_for_a_descendant(http: Http, lifeline: Lifeline) -> None:
    ran = http.ok("shell", {"command": lifeline.hold + "sleep 1000 & echo $! ; exit 2"})
    assert (ran["exit_code"], ran["timed_out"]) == (2, False)
    left = int(ran["stdout"])
    assert running(left)
    facts = http.facts(ran["run_id"])
    assert facts["output_open"] is True
    assert str(left) in json.dumps(facts["survivors"])
    os.kill(left, signal.SIGKILL)
    assert lifeline.gone(30)


@pytest.mark.requirement("0.8")
def test_a_noisy_descendant_holds_the_end_up_for_a_second_at_most(http: Http, lifeline: Lifeline) -> None:
    """It is never quiet, so the end comes by the clock; the bound is ten times that for a loaded machine."""
    command = "(while :; do echo noise; sleep 0.02; done) & exit 0"
    ran = http.ok("shell", {"command": lifeline.hold + command})
    assert ran["exit_code"] == 0
    assert ran["duration_ms"] < 10_000
    assert ran["stdout"].startswith("noise\n") or not ran["stdout"]
    http.ok("runs.kill", {"run_id": ran["run_id"]})
    assert lifeline.gone(30)


@pytest.mark.requirement("0.8", "1.6")
def test_kill_ends_what_an_ended_run_left(surface: Surface, lifeline: Lifeline) -> None:
    run_id = surface.spawn(lifeline.hold + "setsid sleep 1000 & exit 0")
    before = surface.finish(run_id)
    assert (before["status"], before["output_open"]) == ("completed", True)
    assert not lifeline.gone(0)
    surface.ok("runs.kill", {"run_id": run_id})
    assert lifeline.gone(30)
    until(lambda: surface.facts(run_id)["output_open"] is False, "output_open to be false")
    # It had ended by itself before, and that stays so.
    assert ends(surface.facts(run_id)) == ends(before)
    assert surface.read(run_id, wait_ms=60_000)["eof"] is True


@pytest.mark.requirement("0.8")
def test_a_descendant_that_holds_no_stream(http: Http, lifeline: Lifeline) -> None:
    ran = http.ok("shell", {"command": lifeline.hold + "sleep 1000 >/dev/null 2>&1 & echo $!"})
    left = int(ran["stdout"])
    facts = http.facts(ran["run_id"])
    assert (facts["status"], facts["output_open"]) == ("completed", False)
    assert str(left) in json.dumps(facts["survivors"])
    assert http.read(ran["run_id"])["eof"] is True
    http.ok("runs.kill", {"run_id": ran["run_id"]})
    assert lifeline.gone(30)


@pytest.mark.requirement("0.8", "1.4")
def test_output_right_before_the_end_is_all_there(http: Http) -> None:
    ran = http.ok("shell", {"command": "seq 1 200000; seq 1 1000 >&2", "max_output_bytes": 4 << 20})
    assert ran["stdout"] == "".join(f"{n}\n" for n in range(1, 200_001))
    assert ran["stderr"] == "".join(f"{n}\n" for n in range(1, 1001))
    assert ran["truncated"] is False


@pytest.mark.requirement("0.8")
def test_a_run_is_not_drained_while_output_comes(http: Http, lifeline: Lifeline) -> None:
    """A descendant that never pauses: the end is put off for its second. A loaded machine gets three tries."""
    drained_ms: list[int] = []
    for _ in range(3):
        ran = http.ok("shell", {"command": lifeline.hold + "(while :; do echo on; done) & exit 0"})
        drained_ms.append(ran["duration_ms"])
        http.ok("runs.kill", {"run_id": ran["run_id"]})
        assert lifeline.gone(30)
        if drained_ms[-1] >= 900:
            break
    assert max(drained_ms) >= 900, drained_ms
