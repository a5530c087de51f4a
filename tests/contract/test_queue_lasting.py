"""The queue outlives the daemon, and `run.max_parallel` bounds what runs at once (1.10, 1.11, 1.6)."""

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from .fifos import Gate, Lifeline
from .home import Answer, Home, until
from .items import all_items, poll, statuses
from .remains import kill_keeper
from .surface import Http

NewHome = Callable[..., Home]


def noted(folder: Path, name: object) -> str:
    return f"echo {name} >>'{folder}/order'; "


def begun(folder: Path) -> list[str]:
    order = folder / "order"
    return order.read_text().split() if order.exists() else []


@pytest.mark.requirement("1.10", "1.3")
def test_no_more_than_max_parallel_at_once(new_home: NewHome, tmp_path: Path) -> None:
    home = new_home("[run]\nmax_parallel = 2\n")
    home.start()
    http = Http(home)
    with contextlib.ExitStack() as stack:
        gates = [stack.enter_context(Gate(tmp_path, f"gate{n}")) for n in range(4)]
        made = [http.spawn(noted(tmp_path, n) + gates[n].wait) for n in range(2)]
        made += [http.spawn(noted(tmp_path, n) + gates[n].wait, session_id=f"s{n}") for n in (2, 3)]
        until(lambda: set(begun(tmp_path)) == {"0", "1"}, "two to run")
        for run_id in made[2:]:
            facts = http.facts(run_id)
            # Neither is behind a run of its own session: each waits for a free place.
            assert (facts["status"], facts["waiting_for"], facts["started_at"]) == ("queued", None, None), facts
        assert len(http.ok("runs.list", {"status": "running"})["runs"]) == 2
        gates[1].open()
        http.finish(made[1])
        until(lambda: len(begun(tmp_path)) == 3, "the next one to run")
        assert begun(tmp_path)[2] == "2"
        assert http.facts(made[3])["status"] == "queued"
        for gate in gates:
            gate.open()
        assert [http.finish(run_id)["status"] for run_id in made] == ["completed"] * 4
    assert begun(tmp_path)[3] == "3"


@pytest.mark.requirement("1.10")
def test_a_queue_does_not_take_a_place_of_others(new_home: NewHome, gate: Gate) -> None:
    """With two places, one busy and a long queue behind it in its session, another session's run starts at once."""
    home = new_home("[run]\nmax_parallel = 2\n")
    home.start()
    http = Http(home)
    first = http.spawn(gate.wait, session_id="long")
    queued = [http.spawn("true", session_id="long") for _ in range(5)]
    assert http.finish(http.spawn("exit 5", session_id="short"))["exit_code"] == 5
    assert {http.facts(run_id)["status"] for run_id in queued} == {"queued"}
    gate.open()
    assert {http.finish(run_id)["status"] for run_id in (first, *queued)} == {"completed"}


@pytest.mark.requirement("1.10", "6.1")
@pytest.mark.parametrize("value", ["0", "-1", "'many'"])
def test_max_parallel_is_a_positive_number(new_home: NewHome, value: str) -> None:
    home = new_home(f"[run]\nmax_parallel = {value}\n")
    done = home.limpet("serve", timeout_s=20)
    assert done.returncode != 0
    assert b"max_parallel" in done.stderr, done


@pytest.mark.requirement("1.10", "1.11", "F01")
def test_a_queue_outlives_the_daemon(new_home: NewHome, tmp_path: Path, lifeline: Lifeline, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon, twice, with three runs queued behind one that goes on."""
    home = new_home()
    home.start()
    first = Http(home).spawn(lifeline.hold + gate.wait + "exit 3", session_id="kept")
    lifeline.word()
    queued = [Http(home).spawn(noted(tmp_path, n), session_id="kept") for n in range(3)]
    before = [Http(home).facts(run_id) for run_id in queued]
    for _ in range(2):
        home.kill_daemon()
        home.start()
        http = Http(home)
        assert http.facts(first)["status"] == "running"
        for told, run_id in zip(before, queued, strict=True):
            now = http.facts(run_id)
            assert {name: now[name] for name in ("status", "waiting_for", "created_at", "attempt")} == {
                name: told[name] for name in ("status", "waiting_for", "created_at", "attempt")
            }
            assert now["status"] == "queued"
    late = Http(home).spawn(noted(tmp_path, 3), session_id="kept")
    assert begun(tmp_path) == []
    gate.open()
    assert [Http(home).finish(run_id)["status"] for run_id in (*queued, late)] == ["completed"] * 4
    assert Http(home).facts(first)["exit_code"] == 3
    assert begun(tmp_path) == ["0", "1", "2", "3"]
    assert statuses(all_items(Http(home), queued[0])) == ["queued", "running", "completed"]


@pytest.mark.requirement("1.10", "1.11")
def test_the_one_ahead_ends_while_there_is_no_daemon(
    new_home: NewHome, tmp_path: Path, lifeline: Lifeline, gate: Gate
) -> None:
    """Injector: SIGKILL to the daemon. Without one nothing is started; the next one starts what is due."""
    home = new_home()
    home.start()
    first = Http(home).spawn(lifeline.hold + gate.wait + "exit 3", session_id="kept")
    lifeline.word()
    second = Http(home).spawn(noted(tmp_path, 2), session_id="kept")
    home.kill_daemon()
    gate.open()
    assert lifeline.gone(30)
    assert begun(tmp_path) == []
    home.start()
    assert Http(home).finish(second)["status"] == "completed"
    assert (Http(home).facts(first)["exit_code"], begun(tmp_path)) == (3, ["2"])


@pytest.mark.requirement("1.6", "1.11")
def test_a_queue_timeout_and_a_kill_hold_across_a_crash(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon, before the queue timeout and after the kill."""
    home = new_home()
    home.start()
    first = Http(home).spawn(gate.wait, session_id="kept")
    late = Http(home).spawn(noted(tmp_path, "late"), session_id="kept", queue_timeout_secs=1.5)
    doomed = Http(home).spawn(noted(tmp_path, "doomed"), session_id="kept")
    Http(home).ok("runs.kill", {"run_id": doomed})
    assert Http(home).facts(late)["status"] == "queued"
    home.kill_daemon()
    home.start()
    assert (Http(home).facts(doomed)["status"], Http(home).facts(doomed)["ended_by"]) == ("killed", "kill")
    facts = Http(home).finish(late)
    assert (facts["status"], facts["ended_by"], facts["started_at"]) == ("timed_out", "timeout", None), facts
    gate.open()
    Http(home).finish(first)
    assert begun(tmp_path) == []


@pytest.mark.requirement("1.10", "0.9", "1.11")
def test_a_queued_key_holds_across_a_crash(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon while the run with the key is queued."""
    home = new_home()
    home.start()
    first = Http(home).spawn(gate.wait, session_id="kept")
    request: Answer = {"command": noted(tmp_path, 1), "session_id": "kept", "key": "k"}
    run_id = Http(home).spawn(**request)
    assert Http(home).facts(run_id)["status"] == "queued"
    home.kill_daemon()
    home.start()
    assert Http(home).spawn(**request) == run_id
    gate.open()
    assert Http(home).finish(run_id)["status"] == "completed"
    assert Http(home).spawn(**request) == run_id
    assert begun(tmp_path) == ["1"]
    assert Http(home).facts(first)["status"] == "completed"


@pytest.mark.requirement("1.10", "F05")
def test_a_lost_run_makes_room(new_home: NewHome, tmp_path: Path, lifeline: Lifeline) -> None:
    """Injector: SIGKILL to the keeper of the run at the head of the queue."""
    home = new_home()
    home.start()
    http = Http(home)
    first = http.spawn(lifeline.hold + "exec sleep 1000", session_id="kept")
    lifeline.word()
    second = http.spawn(noted(tmp_path, 2), session_id="kept")
    assert http.facts(second)["status"] == "queued"
    kill_keeper(home, first)
    assert http.finish(second)["status"] == "completed"
    facts = http.facts(first)
    assert (facts["status"], facts["ended_by"]) == ("failed", "lost")
    assert facts["finished_at"] <= http.facts(second)["started_at"]


@pytest.mark.requirement("1.10", "6.1")
def test_a_daemon_that_stops_with_its_runs_starts_none(new_home: NewHome, tmp_path: Path, lifeline: Lifeline) -> None:
    home = new_home()
    home.start()
    first = Http(home).spawn(lifeline.hold + "exec sleep 1000", session_id="kept")
    lifeline.word()
    second = Http(home).spawn(noted(tmp_path, 2), session_id="kept")
    assert home.limpet("stop", "--kill-runs").returncode == 0
    assert lifeline.gone(30)
    home.start()
    assert [Http(home).finish(run_id)["status"] for run_id in (first, second)] == ["killed", "killed"]
    assert begun(tmp_path) == []


@pytest.mark.requirement("1.10", "6.3")
def test_limpet_run_queues_in_a_session(new_home: NewHome, tmp_path: Path, lifeline: Lifeline, gate: Gate) -> None:
    home = new_home()
    home.start()
    first = Http(home).spawn(lifeline.hold + gate.wait, session_id="kept")
    lifeline.word()
    shown = home.popen("run", "--session", "kept", noted(tmp_path, 2) + "echo out; exit 6")
    http = Http(home)
    until(lambda: len(http.ok("runs.list", {"status": "queued"})["runs"]) == 1, "it to be queued")
    told = home.limpet("ps").stdout.decode()
    assert "queued" in told, told
    assert begun(tmp_path) == []
    gate.open()
    assert shown.wait(60) == 6
    assert shown.stdout is not None
    assert shown.stdout.read() == b"out\n"
    assert poll(http, first)["status"] == "completed"
