"""What takes long over MCP: 45 seconds, progress, cancellation, and what is left when a client goes (6.4, 9 "MCP")."""

import itertools
import signal
import time
from collections.abc import Callable, Iterator

import pytest

from .fifos import Gate, Lifeline
from .home import Home, until
from .mcp import Mcp
from .surface import Http


@pytest.fixture
def mcp(house: Home) -> Iterator[Mcp]:
    """A process of the test's own, on the shared home."""
    mcp = Mcp(house)
    yield mcp
    if mcp.process.poll() is None:
        mcp.close()


@pytest.mark.requirement("6.4", "9.mcp")
def test_what_waits_longer_than_45_s_answers_what_is_known(mcp: Mcp, gate: Gate) -> None:
    """All of them at once, so that the test waits but once."""
    long_ms = 600_000
    other = mcp.spawn("sleep 1000", session_id="long-waits")
    mcp.ok("pty.open", {"conversation_id": "long-waits"})
    began = time.monotonic()
    calls = {
        "shell": mcp.begin_call("shell", command=f"echo before; {gate.wait} echo after; exit 5", timeout_secs=1000),
        "runs.wait": mcp.begin_call("runs.wait", run_ids=[other], timeout_ms=long_ms),
        "runs.read": mcp.begin_call("runs.read", run_id=other, wait_ms=long_ms),
        "backlog.take": mcp.begin_call("backlog.take", session_id="long-waits", wait_ms=long_ms),
        "pty.run": mcp.begin_call("pty.run", conversation_id="long-waits", cmd="cat", timeout_ms=long_ms),
        "pty.wait_for": mcp.begin_call("pty.wait_for", conversation_id="long-waits", match="never", timeout_ms=long_ms),
    }
    answers = {name: mcp.ended(message) for name, (_, message) in calls.items()}
    took = time.monotonic() - began
    assert 44 < took < 60
    for number, _ in calls.values():
        told = [began, *mcp.progress(number, count=9)]
        assert max(later - earlier for earlier, later in itertools.pairwise(told)) < 5
    shell = answers["shell"]
    assert (shell["ok"], shell["status"], shell["stdout"], shell["exit_code"]) == (True, "running", "before\n", None)
    assert shell["run_id"] in shell["message"]
    for name in ("runs.wait", "pty.run", "pty.wait_for"):
        assert answers[name]["error"] == "timeout", answers[name]
        assert "45 s" in answers[name]["message"]
    assert (answers["runs.read"]["data"], answers["backlog.take"]["messages"]) == ("", [])
    # All goes on, and each answer says from where.
    gate.open()
    ended = mcp.ok("runs.wait", {"run_ids": [shell["run_id"]]})
    assert ended["run"]["exit_code"] == 5
    log = mcp.ok("shell", {"action": "log", "run_id": shell["run_id"], "since_seq": shell["next_seq"]})
    assert [item["text"] for item in log["items"] if item["kind"] == "output"] == ["after\n"]
    mcp.ok("pty.send", {"conversation_id": "long-waits", "data": "never\n"})
    waited = {"conversation_id": "long-waits", "match": "never", "from_cursor": answers["pty.run"]["resume_cursor"]}
    assert mcp.ok("pty.wait_for", waited)["matched"] is True
    mcp.ok("pty.close", {"conversation_id": "long-waits"})
    mcp.ok("runs.kill", {"run_id": other})


@pytest.mark.requirement("6.4", "9.mcp")
def test_a_cancelled_wait_leaves_the_run_alone(mcp: Mcp, gate: Gate) -> None:
    run_id = mcp.spawn(f"{gate.wait} exit 4")
    number, _ = mcp.begin_call("runs.wait", run_ids=[run_id], timeout_ms=40_000)
    mcp.progress(number)
    mcp.cancel(number)
    assert mcp.facts(run_id)["status"] == "running"
    gate.open()
    assert mcp.finish(run_id)["exit_code"] == 4


@pytest.mark.requirement("6.4", "9.mcp")
@pytest.mark.parametrize("how", [{}, {"action": "spawn", "background": False}], ids=["one-shot", "spawn-and-wait"])
def test_a_cancelled_one_shot_is_killed(mcp: Mcp, http: Http, lifeline: Lifeline, how: dict[str, object]) -> None:
    label = f"cancelled-{len(how)}"
    command = lifeline.hold + "(trap '' TERM; sleep 1000) & sleep 1000"
    number, _ = mcp.begin_call("shell", command=command, labels=[label], **how)
    lifeline.word()
    mcp.cancel(number)
    assert lifeline.gone(30)
    [run] = http.ok("runs.list", {"label": label})["runs"]
    assert http.finish(run["run_id"])["status"] == "killed"
    assert mcp.ok("shell", {"command": "echo on"})["stdout"] == "on\n"


@pytest.mark.requirement("9.mcp")
def test_a_one_shot_cancelled_before_it_began(mcp: Mcp, http: Http) -> None:
    """Wherever in its start the word comes, nothing of it goes on."""
    for _ in range(20):
        number, _ = mcp.begin_call("shell", command="sleep 1000", labels=["at-once"])
        mcp.cancel(number)
    mcp.ok("runs.list", {})

    def over() -> bool:
        return all(run["status"] == "killed" for run in http.ok("runs.list", {"label": "at-once"})["runs"])

    until(over, "what was cancelled to be killed")


@pytest.mark.requirement("9.mcp")
def test_a_queued_one_shot_that_is_cancelled_never_starts(mcp: Mcp, http: Http, gate: Gate) -> None:
    first = mcp.spawn(gate.wait, session_id="cancel-queued")
    number, _ = mcp.begin_call("shell", command="echo never", session_id="cancel-queued", labels=["never"])
    until(lambda: bool(http.ok("runs.list", {"label": "never"})["runs"]), "the second to be queued")
    mcp.cancel(number)
    [run] = http.ok("runs.list", {"label": "never"})["runs"]
    until(lambda: http.facts(run["run_id"])["status"] == "killed", "the second to be killed")
    gate.open()
    http.finish(first)
    assert http.facts(run["run_id"])["started_at"] is None


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("way", ["end of file", "SIGTERM", "SIGINT", "SIGHUP", "SIGKILL"])
def test_a_client_that_goes_leaves_runs_and_nothing_else(house: Home, http: Http, gate: Gate, way: str) -> None:
    """Injector: the end of stdin, or a signal, while a command is waited for and another wait goes on."""
    mcp = Mcp(house)
    label = way.replace(" ", "-")
    number, _ = mcp.begin_call("shell", command=f"{gate.wait} echo done; exit 6", labels=[label])
    other, _ = mcp.begin_call("pty.wait_for", conversation_id=label, match="never", timeout_ms=40_000)
    mcp.progress(number)
    mcp.progress(other)
    assert mcp.process.stdin is not None
    if way == "end of file":
        mcp.process.stdin.close()
    else:
        mcp.process.send_signal(getattr(signal, way))
    code = mcp.process.wait(10)
    assert code == (-signal.SIGKILL if way == "SIGKILL" else 0)
    [run] = http.ok("runs.list", {"label": label})["runs"]
    assert run["status"] == "running"
    gate.open()
    assert http.finish(run["run_id"])["exit_code"] == 6
    http.ok("pty.close", {"conversation_id": label})


@pytest.mark.requirement("6.4")
def test_waits_outlive_the_daemon(new_home: Callable[..., Home], gate: Gate) -> None:
    """Injector: SIGKILL to the daemon, while calls wait."""
    home = new_home()
    mcp = Mcp(home)
    mcp.ok("pty.open", {"conversation_id": "c"})
    run_id = mcp.spawn(f"{gate.wait} echo ready; exec sleep 1000")
    shell = mcp.begin_call("shell", command=f"{gate.wait} echo over; exit 7")
    wait = mcp.begin_call("runs.wait", **{"run_ids": [run_id], "for": [{"regex": "ready\n"}], "timeout_ms": 40_000})
    prompt = mcp.begin_call("pty.run", conversation_id="c", cmd=gate.wait + "echo said", timeout_ms=40_000)
    timed = mcp.begin_call("runs.wait", run_ids=[run_id], timeout_ms=8000)
    began = time.monotonic()
    for number, _ in (shell, wait, prompt, timed):
        mcp.progress(number)
    home.kill_daemon()
    # What is left of a wait's time is what it goes on for.
    assert mcp.ended(timed[1])["error"] == "timeout"
    assert 7.5 < time.monotonic() - began < 20
    for _ in range(3):
        gate.open()
    assert mcp.ended(wait[1])["hit"]["match"] == "ready\n"
    ran = mcp.ended(shell[1])
    assert (ran["status"], ran["exit_code"], ran["stdout"]) == ("failed", 7, "over\n")
    said = mcp.ended(prompt[1])
    assert (said["exit_code"], said["output"]) == (0, "said\n")
    mcp.close()
