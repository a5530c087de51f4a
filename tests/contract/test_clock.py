"""A wall clock that jumps changes no timeout, no order and no lease, and makes nothing old (0.6, F71)."""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .clocks import HOUR_S, TEN_YEARS_S, JumpingClock
from .fifos import Gate, Lifeline
from .hits import timed_out, wait, watch
from .home import Answer, Home, until
from .inbox import lease_config, take
from .items import all_items, statuses
from .remains import attempt_directory, drop_database, rewrite, seal
from .surface import Http

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="not on this machine: gcc")
JUMPS = pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S, TEN_YEARS_S, -TEN_YEARS_S])
OUTPUT_BYTES = 588_895  # of seq 1 100000


@pytest.fixture
def clock(tmp_path: Path) -> JumpingClock:
    return JumpingClock(tmp_path)


def served(new_home: Callable[..., Home], clock: JumpingClock, config: str = "") -> tuple[Home, Http]:
    home = new_home(config)
    home.start(env=clock.env)
    return home, Http(home)


def jumped(http: Http, clock: JumpingClock, jump_s: int) -> None:
    """Injector: the clock jumps, and the daemon has seen it."""
    clock.jump(jump_s)
    assert abs(clock.happened(http, time.time() * 1000) - jump_s) < 60


@pytest.mark.requirement("0.6", "1.6", "F71")
@JUMPS
def test_timeouts_are_monotonic(
    new_home: Callable[..., Home], clock: JumpingClock, lifeline: Lifeline, jump_s: int
) -> None:
    """Injector: the jumping clock. The run's own timeout, a wait's and a read's are none of them early or late."""
    _, http = served(new_home, clock)
    begun = time.monotonic()
    run_id = http.spawn(lifeline.hold + "exec sleep 1000", timeout_secs=3)
    lifeline.word()
    jumped(http, clock, jump_s)
    asked = time.monotonic()
    timed_out(http, [run_id], {"exit": True}, timeout_ms=600)
    assert 0.55 < time.monotonic() - asked < 3
    facts = http.finish(run_id, timeout_ms=40_000)
    assert 2.9 < time.monotonic() - begun < 20
    assert (facts["status"], facts["ended_by"]) == ("timed_out", "timeout")


@pytest.mark.requirement("0.6", "1.1", "1.4", "F71")
@JUMPS
def test_durations_and_order(
    new_home: Callable[..., Home], clock: JumpingClock, lifeline: Lifeline, gate: Gate, jump_s: int
) -> None:
    """Injector: the jumping clock, in the midst of a run. `seq` orders what `ts` does not."""
    _, http = served(new_home, clock)
    with ThreadPoolExecutor(1) as pool:
        one_shot = {"command": f"{lifeline.hold} echo one; {gate.wait} echo two"}
        running = pool.submit(http.ok, "shell", one_shot)
        lifeline.word()
        until(lambda: http.ok("runs.list", {"status": "running"})["runs"] != [], "the run to be listed")
        jumped(http, clock, jump_s)
        gate.open()
        answer = running.result(60)
    assert answer["stdout"] == "one\ntwo\n"
    assert 0 <= answer["duration_ms"] < 30_000
    items = all_items(http, answer["run_id"])
    assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
    assert statuses(items)[-1] == "completed"
    assert items[-1]["kind"] == "status"


@pytest.mark.requirement("0.11", "0.6", "F71")
def test_quiet_is_monotonic(new_home: Callable[..., Home], clock: JumpingClock) -> None:
    """Injector: the jumping clock, while something comes all the time: no jump makes a silence of it."""
    _, http = served(new_home, clock)
    run_id = http.spawn("while :; do echo on; sleep 0.05; done")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(timed_out, http, [run_id], {"quiet_ms": 5000}, timeout_ms=1500)
        for jump_s in (HOUR_S, -HOUR_S):
            jumped(http, clock, jump_s)
        waiting.result(60)
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("1.1", "0.6", "F71")
def test_no_duration_is_negative(new_home: Callable[..., Home]) -> None:
    """Injector: the keeper's journal, rewritten so that its clock went back ten years in the midst of the run."""
    home = new_home()
    home.start()
    request: Answer = {"command": "echo said", "key": "negative"}
    run_id = Http(home).ok("shell", request)["run_id"]
    seal(home, [run_id])
    home.kill_daemon()

    def back(facts: list[Answer]) -> None:
        for fact in facts[[fact["fact"] for fact in facts].index("started") + 1 :]:
            fact["at"] -= TEN_YEARS_S * 1000

    rewrite(attempt_directory(home, run_id) / "keeper.journal", back)
    drop_database(home)
    home.start()
    facts = Http(home).facts(run_id)
    assert facts["finished_at"] < facts["started_at"]
    again = Http(home).ok("shell", request)
    assert (again["run_id"], again["stdout"], again["duration_ms"]) == (run_id, "said\n", 0)


@pytest.mark.requirement("1.6", "0.6", "F71")
@JUMPS
def test_a_time_limit_in_the_queue_is_monotonic(
    new_home: Callable[..., Home], clock: JumpingClock, gate: Gate, jump_s: int
) -> None:
    """Injector: the jumping clock, while one run waits for two seconds at most and another for an hour."""
    _, http = served(new_home, clock)
    first = http.spawn(gate.wait, session_id="s")
    begun = time.monotonic()
    late = http.spawn("true", session_id="s", queue_timeout_secs=2)
    patient = http.spawn("true", session_id="s", queue_timeout_secs=1800)
    jumped(http, clock, jump_s)
    assert http.facts(late)["status"] == "queued"
    assert http.finish(late)["status"] == "timed_out"
    assert 1.9 < time.monotonic() - begun < 20
    gate.open()
    assert http.finish(patient)["status"] == "completed"
    assert http.facts(first)["status"] == "completed"


@pytest.mark.requirement("0.11", "0.6", "F71")
@JUMPS
def test_what_was_said_is_not_old_after_a_jump(new_home: Callable[..., Home], clock: JumpingClock, jump_s: int) -> None:
    """Injector: the jumping clock, between the last output and a wait: quiet comes in its time, and not before."""
    _, http = served(new_home, clock)
    run_id = http.spawn("echo on; exec sleep 1000")
    http.read(run_id, wait_ms=60_000)
    jumped(http, clock, jump_s)
    asked = time.monotonic()
    assert wait(http, [run_id], {"quiet_ms": 1000}, timeout_ms=40_000)["met"] == {"quiet_ms": 1000}
    assert 0.9 < time.monotonic() - asked < 20
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("1.9", "0.6", "F71")
def test_a_lease_is_monotonic(new_home: Callable[..., Home], clock: JumpingClock) -> None:
    """Injector: the jumping clock. A lease of a minute does not end early; one of two seconds does not last years."""
    for lease_s, jump_s in ((60, TEN_YEARS_S), (2, -TEN_YEARS_S)):
        _, http = served(new_home, clock, lease_config(lease_s))
        clock.jump(0)
        http.finish(http.spawn("echo NEEDLE", session_id="leased", watch=[watch("NEEDLE")]))
        until(lambda http=http: take(http, "leased")[0] != [], "the message")
        jumped(http, clock, jump_s)
        if lease_s == 60:
            assert take(http, "leased")[0] == []
        else:
            until(lambda http=http: take(http, "leased")[0] != [], "the message to come back", 20)


@pytest.mark.requirement("1.12", "0.6", "F71")
def test_nothing_is_pruned_for_a_jump(new_home: Callable[..., Home], clock: JumpingClock) -> None:
    """Injector: the jumping clock, ten years ahead. That retention has looked is seen by what it takes for its size."""
    config = f"[retention]\nmax_age_days = 30\nmax_bytes = {int(3.5 * OUTPUT_BYTES)}\ncheck_s = 1\n"
    home, http = served(new_home, clock, config)
    made = [http.ok("shell", {"command": "seq 1 100000"})["run_id"] for _ in range(3)]
    seal(home, made)
    jumped(http, clock, TEN_YEARS_S)
    for oldest in made[:2]:
        newest = http.ok("shell", {"command": "seq 1 100000"})["run_id"]
        seal(home, [newest])
        made.append(newest)
        until(lambda oldest=oldest: not http.call("runs.get", {"run_id": oldest})["ok"], "the oldest to go", 60)
    assert [run_id for run_id in made if not http.call("runs.get", {"run_id": run_id})["ok"]] == made[:2]
