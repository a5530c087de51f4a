"""Pruning takes the oldest of what has ended, says what it took, and touches nothing that lives (1.12, 0.7, 0.9)."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from .fifos import Gate, Lifeline
from .home import Answer, Home, json_lines, until
from .remains import drop_database, seal
from .surface import Http, Surface

NewHome = Callable[..., Home]

OUTPUT_BYTES = 588_895  # of seq 1 100000


def some_runs(home: Home, number: int, **params: str) -> list[str]:
    """Ended runs, the oldest first, each with the same amount of output."""
    http = Http(home)
    made = [http.ok("shell", {"command": f"seq 1 100000; exit {n}", **params})["run_id"] for n in range(number)]
    seal(home, made)
    return made


def listed(surface: Surface) -> list[str]:
    return sorted(run["run_id"] for run in surface.ok("runs.list", {"limit": 1000})["runs"])


def pruned(surface: Surface, run_id: str) -> None:
    """Every way to ask for a pruned run says that it is gone, and why."""
    for op, params in (
        ("runs.get", {}),
        ("runs.read", {"stream": "stdout"}),
        ("runs.kill", {}),
        ("shell", {"action": "poll"}),
        ("shell", {"action": "log"}),
    ):
        assert surface.refused(op, {"run_id": run_id, **params}, "gone")["reason"] == "pruned", op
    assert surface.refused("runs.wait", {"run_ids": [run_id], "timeout_ms": 0}, "gone")["reason"] == "pruned"


@pytest.mark.requirement("1.12", "0.7", "0.2")
@pytest.mark.parametrize("way", ["http", "cli"])
def test_the_oldest_go_first(new_home: NewHome, way: str) -> None:
    home = new_home()
    home.start()
    made = some_runs(home, 4)
    http = Http(home)
    keep_bytes = int(2.5 * OUTPUT_BYTES)
    if way == "http":
        answer = http.ok("runs.prune", {"keep_bytes": keep_bytes})
    else:
        done = home.limpet("prune", "--keep-bytes", str(keep_bytes), "--json")
        assert done.returncode == 0, done
        (answer,) = json_lines(done.stdout)
    assert (answer["dry_run"], sorted(answer["runs"])) == (False, made[:2]), answer
    assert 2 * OUTPUT_BYTES <= answer["bytes"] <= 3 * OUTPUT_BYTES
    assert listed(http) == made[2:]
    for n, run_id in enumerate(made):
        if n < 2:
            pruned(http, run_id)
            assert not list((home.path / "runs" / run_id).rglob("*.spool"))
        else:
            assert (http.facts(run_id)["exit_code"], len(http.bytes_of(run_id))) == (n, OUTPUT_BYTES)
    # Nothing is left to do.
    again = http.ok("runs.prune", {"keep_bytes": keep_bytes})
    assert (again["runs"], again["bytes"]) == ([], 0)
    http.refused("runs.get", {"run_id": "0000000000000"}, "not_found")


@pytest.mark.requirement("1.12")
@pytest.mark.parametrize("way", ["http", "cli"])
def test_a_dry_run_only_says(new_home: NewHome, way: str) -> None:
    home = new_home()
    home.start()
    made = some_runs(home, 3)
    http = Http(home)
    if way == "http":
        answer = http.ok("runs.prune", {"keep_bytes": 0, "dry_run": True})
    else:
        done = home.limpet("prune", "--keep-bytes", "0", "--dry-run", "--json")
        assert done.returncode == 0, done
        (answer,) = json_lines(done.stdout)
    assert (answer["dry_run"], sorted(answer["runs"])) == (True, made)
    assert listed(http) == made
    assert [len(http.bytes_of(run_id)) for run_id in made] == [OUTPUT_BYTES] * 3
    real = http.ok("runs.prune", {"keep_bytes": 0})
    assert (sorted(real["runs"]), real["bytes"]) == (made, answer["bytes"])


@pytest.mark.requirement("1.12")
def test_age_decides(new_home: NewHome) -> None:
    home = new_home()
    home.start()
    made = some_runs(home, 3)
    http = Http(home)
    assert http.ok("runs.prune", {"older_than_ms": 3_600_000})["runs"] == []
    assert json_lines(home.limpet("prune", "--older-than", "7d", "--json").stdout)[0]["runs"] == []
    assert listed(http) == made
    assert sorted(http.ok("runs.prune", {"older_than_ms": 0})["runs"]) == made
    assert listed(http) == []


@pytest.mark.requirement("1.12")
def test_age_counts_from_the_end_of_each_run(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """The second was started first, and ended 1.5 s after the other."""
    home = new_home()
    home.start()
    http = Http(home)
    second = http.spawn(lifeline.hold + gate.wait)
    lifeline.word()
    (first,) = some_runs(home, 1)
    ended_ms = http.facts(first)["finished_at"]
    until(lambda: time.time_ns() // 1_000_000 > ended_ms + 1500, "the first to be older")
    gate.open()
    http.finish(second)
    seal(home, [second])
    older_than_ms = time.time_ns() // 1_000_000 - ended_ms - 700
    assert http.ok("runs.prune", {"older_than_ms": older_than_ms})["runs"] == [first]
    assert listed(http) == [second]


@pytest.mark.requirement("1.12", "0.3", "6.3")
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"older_than_ms": -1}, ["--older-than", "-1d"]),
        ({"keep_bytes": "10G"}, ["--keep-bytes", "lots"]),
        ({"dry_run": 1}, ["--older-than", "7 fortnights"]),
        ({"keep": 1}, ["--no-such-option"]),
    ],
)
def test_what_is_no_bound_prunes_nothing(new_home: NewHome, params: Answer, words: list[str]) -> None:
    home = new_home()
    home.start()
    made = some_runs(home, 1)
    http = Http(home)
    refused = http.refused("runs.prune", params, "invalid_argument")
    assert next(iter(params)) in json.dumps(refused)
    done = home.limpet("prune", *words)
    assert done.returncode == 2, done
    assert b"Traceback" not in done.stderr
    assert listed(http) == made


@pytest.mark.requirement("1.12", "0.8")
def test_what_lives_is_never_pruned(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """Runs that run, wait in a queue, or have left somebody who holds a stream."""
    home = new_home()
    home.start()
    http = Http(home)
    ended = some_runs(home, 1)
    running = http.spawn("seq 1 100000; " + gate.wait + "seq 1 10", session_id="s")
    queued = http.spawn("echo queued", session_id="s")
    open_still = http.ok("shell", {"command": lifeline.hold + "sleep 1000 & seq 1 100000"})["run_id"]
    assert http.facts(open_still)["output_open"] is True
    for params in ({"keep_bytes": 0}, {"older_than_ms": 0}, {"keep_bytes": 0, "older_than_ms": 0}):
        assert set(http.ok("runs.prune", params)["runs"]) <= set(ended)
    assert listed(http) == sorted([running, queued, open_still])
    assert len(http.bytes_of(open_still)) == OUTPUT_BYTES
    http.ok("runs.kill", {"run_id": open_still})
    assert lifeline.gone(30)
    gate.open()
    assert http.finish(queued)["status"] == "completed"
    assert http.bytes_of(queued) == b"queued\n"
    assert http.bytes_of(running).endswith(b"9\n10\n")


@pytest.mark.requirement("1.12", "0.7")
def test_what_is_pruned_as_it_is_read_is_gone(new_home: NewHome) -> None:
    """A command that is waited for, over and pruned before its output was read: never an error of limpet's own."""
    home = new_home()
    home.start()
    http = Http(home)
    stop = home.work / "stop"

    def prune() -> None:
        while not stop.exists():
            http.ok("runs.prune", {"keep_bytes": 0})

    with ThreadPoolExecutor(1) as pool:
        pruning = pool.submit(prune)
        try:
            for _ in range(100):
                answer = http.call("shell", {"command": "seq 1 100"})
                assert answer["ok"] or (answer["error"], answer["reason"]) == ("gone", "pruned"), answer
        finally:
            stop.touch()
        pruning.result(60)


@pytest.mark.requirement("0.9", "1.12", "F30")
def test_a_pruned_key_starts_nothing_ever_again(new_home: NewHome) -> None:
    """Injector: the daemon killed, and then the database deleted too."""
    home = new_home()
    home.start()
    request: Answer = {"command": f"echo started >>'{home.work}/starts'", "key": "once"}
    run_id = Http(home).ok("shell", request)["run_id"]
    seal(home, [run_id])
    assert Http(home).ok("runs.prune", {"keep_bytes": 0})["runs"] == [run_id]
    for turn in range(3):
        http = Http(home)
        for params in (request, {**request, "action": "spawn"}):
            refused = http.call("shell", params)
            # The second is another request too: of two errors at once either is named.
            assert refused["error"] in (("gone",) if params is request else ("gone", "conflict")), refused
            assert refused["error"] != "gone" or refused["reason"] == "pruned"
        pruned(http, run_id)
        home.kill_daemon()
        if turn == 1:
            drop_database(home)
        home.start()
    assert (home.work / "starts").read_text() == "started\n"
    other = Http(home).ok("shell", {**request, "key": "another"})["run_id"]
    assert other > run_id, "ids made later sort later, after a pruning too"


@pytest.mark.requirement("0.14", "1.12", "F26")
def test_the_bound_on_all_bytes_holds_by_itself(new_home: NewHome, gate: Gate) -> None:
    home = new_home(f"[retention]\nmax_bytes = {int(4.5 * OUTPUT_BYTES)}\ncheck_s = 1\n")
    home.start()
    http = Http(home)
    running = http.spawn("seq 1 100000; " + gate.wait)
    made = some_runs(home, 8)
    until(lambda: len(listed(http)) <= 5, "old runs to be pruned")
    settled_ms = http.ok("daemon.status")["uptime_ms"] + 2500
    until(lambda: http.ok("daemon.status")["uptime_ms"] > settled_ms, "two more checks to have passed")
    kept = [run_id for run_id in listed(http) if run_id != running]
    # Whether the run that goes on counts or not: no more went than had to.
    assert kept in (made[-3:], made[-4:])
    for run_id in kept:
        assert len(http.bytes_of(run_id)) == OUTPUT_BYTES
    for run_id in made[:4]:
        pruned(http, run_id)
    # What goes is said in the log too.
    logs = [file.read_text() for file in (home.base / "serve.err", home.path / "daemon.log") if file.exists()]
    assert "prune" in "".join(logs), logs
    assert http.facts(running)["status"] == "running"
    gate.open()
    assert http.finish(running)["exit_code"] == 0


@pytest.mark.requirement("0.14", "1.12")
@pytest.mark.parametrize("config", ["max_bytes = 0\n", ""])
def test_without_a_bound_that_is_reached_nothing_goes(new_home: NewHome, config: str) -> None:
    home = new_home(f"[retention]\n{config}check_s = 1\n")
    home.start()
    made = some_runs(home, 3)
    http = Http(home)
    until(lambda: http.ok("daemon.status")["uptime_ms"] > 2500, "two checks to have passed")
    assert listed(http) == made


@pytest.mark.requirement("0.14", "6.1")
@pytest.mark.parametrize("line", ["max_bytes = -1", "max_age_days = 'old'", "check_s = -5", "no_such_key = 1"])
def test_a_wrong_retention_is_refused_at_start(new_home: NewHome, line: str) -> None:
    home = new_home(f"[retention]\n{line}\n")
    done = home.limpet("serve", timeout_s=20)
    assert done.returncode != 0
    assert line.split()[0].encode() in done.stderr, done


@pytest.mark.requirement("0.14", "F16")
def test_with_too_little_room_starts_are_refused(new_home: NewHome, gate: Gate) -> None:
    """Injector: `store.min_free_bytes` above what the disk has, from the next daemon on; before it a run goes on."""
    home = new_home()
    home.start()
    ended = some_runs(home, 1)[0]
    running = Http(home).spawn("echo one; " + gate.wait + "exit 3")
    home.kill_daemon()
    home.configure("[store]\nmin_free_bytes = 1152921504606846976\n")
    home.start()
    http = Http(home)
    for params in ({"command": "true"}, {"command": "true", "action": "spawn"}, {"command": "true", "key": "k"}):
        refused = http.call("shell", params)
        assert (refused["ok"], refused["reason"]) == (False, "storage_full"), refused
    assert len(http.bytes_of(ended)) == OUTPUT_BYTES
    gate.open()
    assert http.finish(running)["exit_code"] == 3
    assert listed(http) == sorted([ended, running])
