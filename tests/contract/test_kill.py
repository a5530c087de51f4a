"""After a kill or a timeout no process of the run is left, whatever it did to stay (1.6)."""

import json
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .fifos import Lifeline
from .home import Home, running, until
from .surface import Cli, Http, Surface

# A process that lives in its child: each generation, in a session of its own, forks the next and ends.
# It gives up after a minute, for nothing that scans for processes would catch it.
HOPPER = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
end = time.monotonic() + 60
while time.monotonic() < end:
    if os.fork():
        os._exit(0)
    os.setsid()
"""

STUBBORN = {
    "plain": "exec sleep 1000",
    "pipeline": "sleep 1000 | cat | cat",
    "child": "sleep 1000",
    "background": "sleep 1000 & sleep 1000 & wait",
    "other-session": "setsid sleep 1000 & wait; sleep 1000",
    "double-fork": "(setsid sh -c 'sleep 1000 & exit' &); sleep 1000",
    "no-streams": "setsid sleep 1000 </dev/null >/dev/null 2>&1 & sleep 1000",
    "no-environment": "env -i setsid sleep 1000 & sleep 1000",
    "ignores-term": "trap '' TERM INT HUP; while :; do sleep 0.1; done",
    "children-ignore-term": "(trap '' TERM; setsid sleep 1000) & sleep 1000",
    "stops-itself": "kill -STOP $$; sleep 1000",
    "child-stops-itself": "setsid sh -c 'kill -STOP $$; sleep 1000' & sleep 1000",
    "forks-when-killed": "trap 'setsid sleep 1000 &' TERM; while :; do sleep 0.1; done",
    "hoppers": f"for n in 1 2 3; do setsid {sys.executable} -S -c '{HOPPER}' & done; sleep 1000",
    "many": "for n in $(seq 60); do sleep 1000 & done; wait",
}


@pytest.fixture(scope="module")
def impatient() -> Iterator[Home]:
    """A home that gives half a second between TERM and KILL."""
    home = Home("[run]\nkill_grace_ms = 500\n")
    try:
        home.start()
        yield home
    finally:
        home.close()


@pytest.fixture(scope="module")
def quick(impatient: Home) -> Http:
    return Http(impatient)


@pytest.mark.requirement("1.6", "F36")
@pytest.mark.parametrize("command", STUBBORN.values(), ids=STUBBORN)
def test_kill_leaves_nothing(quick: Http, lifeline: Lifeline, command: str) -> None:
    run_id = quick.spawn(lifeline.hold + command)
    lifeline.word()
    assert not lifeline.gone(0)
    quick.ok("runs.kill", {"run_id": run_id})
    assert lifeline.gone(30)
    facts = quick.finish(run_id)
    assert (facts["status"], facts["ended_by"], facts["output_open"]) == ("killed", "kill", False)
    assert not facts["survivors"]


@pytest.mark.requirement("1.6", "6.3")
@pytest.mark.parametrize("name", ["plain", "double-fork", "ignores-term", "stops-itself"])
def test_limpet_kill_leaves_nothing(impatient: Home, quick: Http, lifeline: Lifeline, name: str) -> None:
    run_id = quick.spawn(lifeline.hold + STUBBORN[name])
    lifeline.word()
    done = impatient.limpet("kill", run_id)
    assert done.returncode == 0, done
    assert lifeline.gone(30)
    assert quick.finish(run_id)["status"] == "killed"
    assert impatient.limpet("kill", run_id).returncode == 0


@pytest.mark.requirement("1.6")
@pytest.mark.parametrize("name", ["plain", "double-fork", "ignores-term", "child-stops-itself", "hoppers"])
def test_a_timeout_leaves_nothing(quick: Http, lifeline: Lifeline, name: str) -> None:
    run_id = quick.spawn(lifeline.hold + STUBBORN[name], timeout_secs=1)
    lifeline.word()
    assert lifeline.gone(30)
    facts = quick.finish(run_id)
    assert (facts["status"], facts["ended_by"]) == ("timed_out", "timeout")


@pytest.mark.requirement("1.6")
def test_the_main_process_gets_its_grace(quick: Http, lifeline: Lifeline) -> None:
    run_id = quick.spawn(
        "trap 'sleep 0.1; echo cleaned up; exit 0' TERM; " + lifeline.hold + "while :; do sleep 0.05; done"
    )
    lifeline.word()
    quick.ok("runs.kill", {"run_id": run_id})
    facts = quick.finish(run_id)
    assert (facts["status"], facts["exit_code"], facts["ended_by"]) == ("killed", 0, "kill")
    assert quick.bytes_of(run_id) == b"cleaned up\n"


@pytest.mark.requirement("1.6", "0.8")
def test_kill_answers_at_once_and_stopping_is_a_flag(new_home: Callable[..., Home], lifeline: Lifeline) -> None:
    """The grace is far longer than the test: whoever waited for it would not be back."""
    home = new_home("[run]\nkill_grace_ms = 600000\n")
    home.start()
    for surface in (Http(home), Cli(home)):
        check_stopping(surface, lifeline)


def check_stopping(surface: Surface, lifeline: Lifeline) -> None:
    run_id = surface.spawn("trap '' TERM; " + lifeline.hold + "while :; do sleep 0.1; done")
    pid = int(lifeline.word())
    answer = surface.ok("runs.kill", {"run_id": run_id})
    assert "stopping" in json.dumps(answer), answer
    facts = surface.facts(run_id)
    assert (facts["status"], facts["stopping"]) == ("running", True)
    assert running(pid)
    surface.ok("runs.signal", {"run_id": run_id, "signal": "SIGKILL"})
    facts = surface.finish(run_id)
    assert (facts["signal"], facts["exit_code"]) == ("SIGKILL", None)
    assert not facts.get("stopping")


@pytest.mark.requirement("1.6")
def test_kill_hits_no_stranger(quick: Http, tmp_path: Path, lifeline: Lifeline) -> None:
    """Another run, and a process of the same command line outside of any run's tree, live on."""
    with Lifeline(tmp_path, "other") as other:
        kept = quick.spawn(other.hold + "exec sleep 1000")
        killed = quick.spawn(lifeline.hold + "exec sleep 1000")
        other_pid = int(other.word())
        lifeline.word()
        quick.ok("runs.kill", {"run_id": killed})
        quick.finish(killed)
        assert running(other_pid)
        assert not other.gone(0)
        quick.ok("runs.kill", {"run_id": kept})
        assert other.gone(30)


@pytest.mark.requirement("1.6")
def test_a_stopped_run_is_seen_to_stop_before_it_is_killed(quick: Http, lifeline: Lifeline) -> None:
    """Injector: SIGSTOP, by the run to itself; the test fails if it is not in state T."""
    run_id = quick.spawn(lifeline.hold + "kill -STOP $$; echo went on")
    pid = int(lifeline.word())
    until(lambda: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T", "the run to stop")
    quick.ok("runs.kill", {"run_id": run_id})
    assert quick.finish(run_id)["status"] == "killed"
    assert lifeline.gone(30)


@pytest.mark.requirement("1.6", "0.9")
def test_kills_at_once_are_one_kill(quick: Http, lifeline: Lifeline) -> None:
    run_id = quick.spawn(lifeline.hold + STUBBORN["ignores-term"])
    lifeline.word()
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(quick.call, ["runs.kill"] * 12, [{"run_id": run_id}] * 12))
    assert all(answer["ok"] for answer in answers), answers
    assert lifeline.gone(30)
    facts = quick.finish(run_id)
    assert (facts["status"], facts["signal"]) == ("killed", "SIGKILL")


@pytest.mark.requirement("1.6", "0.8")
def test_a_timeout_under_way_shows_as_stopping(new_home: Callable[..., Home], lifeline: Lifeline) -> None:
    """The grace is far longer than the test; the command ignores TERM, and goes on as one that is being stopped."""
    home = new_home("[run]\nkill_grace_ms = 600000\n")
    home.start()
    http = Http(home)
    run_id = http.spawn("trap '' TERM; " + lifeline.hold + "while :; do sleep 0.1; done", timeout_secs=0.5)
    pid = int(lifeline.word())
    until(lambda: http.facts(run_id)["stopping"], "the time limit")
    assert (http.facts(run_id)["status"], running(pid)) == ("running", True)
    http.ok("runs.signal", {"run_id": run_id, "signal": "SIGKILL"})
    facts = http.finish(run_id)
    assert (facts["status"], facts["ended_by"], facts["stopping"]) == ("timed_out", "timeout", False)


@pytest.mark.requirement("1.6")
def test_a_repeated_kill_is_one(new_home: Callable[..., Home], lifeline: Lifeline) -> None:
    """TERM comes once. Two more signals, one after the other, are answered behind any second one."""
    home = new_home("[run]\nkill_grace_ms = 600000\n")
    home.start()
    http = Http(home)
    traps = "trap 'echo term' TERM; trap 'echo usr' USR1; "
    run_id = http.spawn(traps + lifeline.hold + "while :; do sleep 0.05; done")
    lifeline.word()
    for _ in range(3):
        http.ok("runs.kill", {"run_id": run_id})
        assert http.read(run_id, wait_ms=60_000)["data"] == "term\n"
    for offset in (5, 9):
        http.ok("runs.signal", {"run_id": run_id, "signal": "SIGUSR1"})
        assert http.read(run_id, offset=offset, wait_ms=60_000)["data"] == "usr\n"
    http.ok("runs.signal", {"run_id": run_id, "signal": "SIGKILL"})
    assert http.finish(run_id)["status"] == "killed"
    assert http.bytes_of(run_id) == b"term\nusr\nusr\n"
