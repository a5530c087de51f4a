"""The database is a projection of files: locked, damaged, old or gone, the answers are the same (1.12, F28 to F30)."""

import contextlib
import os
import random
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest

from prove import store_lost

from .fifos import Gate, Lifeline
from .home import LIMPET, Answer, Home, read_line, running, until
from .items import all_items, everything
from .remains import drop_database, seal
from .surface import Http

NewHome = Callable[..., Home]

MARKER = "q7Zx-0utput-of-a-run"


def sorts_of_runs(home: Home) -> list[str]:
    """Ended runs that differ in all that a row can tell."""
    http = Http(home)
    made = [
        http.spawn("echo out; echo err >&2", session_id="s", labels=["a", "b"], key="keyed"),
        http.spawn("exit 3", session_id="s", context={"runId": "r"}),
        http.spawn("kill -TERM $$"),
        http.spawn("exec sleep 1000", timeout_secs=0.5),
        http.spawn("true", cwd="/no/such/place"),
        http.spawn("seq 1 50000", max_output_bytes=5000),
        http.spawn("printf 'a\\r\\nb\\n'", pty=True),
        http.spawn("exec sleep 1000"),
    ]
    http.ok("runs.kill", {"run_id": made[-1]})
    for run_id in made:
        http.finish(run_id)
    seal(home, [run_id for n, run_id in enumerate(made) if n != 4])
    until(lambda: all_durable(http, made), "all output to be durable")
    return made


def all_durable(http: Http, made: Sequence[str]) -> bool:
    facts = map(http.facts, made)
    return all(told["durable_offset"] == {n: s["bytes"] for n, s in told["streams"].items()} for told in facts)


@pytest.mark.requirement("1.12", "F30", "1.4", "0.9")
def test_deleted_under_runs_of_every_sort() -> None:
    """Injector: the database deleted under some 60 runs, pruned and recovered ones among them, after SIGKILL and stop.

    At length: `python -m prove store_lost`.
    """
    report = store_lost.prove(60)
    assert "and 2 pruned ones" in report


def overwrite_pages(file: Path, seed: int) -> None:
    """Injector: a third of the pages, the first not among them, overwritten with noise."""
    noise = random.Random(seed)
    pages = file.stat().st_size // 4096
    assert pages >= 4, f"only {pages} pages"
    with file.open("r+b") as stream:
        for page in noise.sample(range(1, pages), pages // 3 + 1):
            stream.seek(page * 4096)
            stream.write(noise.randbytes(4096))


def overwrite_first_page(file: Path) -> None:
    with file.open("r+b") as stream:
        stream.write(random.Random(5).randbytes(4096))


def halve(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2 + 100)


@pytest.mark.requirement("1.12", "F30", "1.4")
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_deleted_it_is_filled_again_with_the_same_answers(new_home: NewHome, end: str) -> None:
    """Injector: the database deleted, after a stop or after SIGKILL to the daemon."""
    home = new_home()
    home.start()
    made = sorts_of_runs(home)
    before = everything(Http(home), made)
    if end == "stop":
        assert home.limpet("stop").returncode == 0
    else:
        home.kill_daemon()
    drop_database(home)
    home.start()
    assert everything(Http(home), made) == before
    again: Answer = {"command": "echo out; echo err >&2", "session_id": "s", "labels": ["a", "b"], "key": "keyed"}
    assert Http(home).spawn(**again) == made[0]


@pytest.mark.requirement("1.12", "F29")
@pytest.mark.parametrize(
    "injure",
    [
        partial(overwrite_pages, seed=1),
        partial(overwrite_pages, seed=2),
        overwrite_first_page,
        halve,
    ],
    ids=["pages", "other-pages", "header", "half"],
)
def test_damaged_it_is_set_aside(new_home: NewHome, injure: Callable[[Path], None]) -> None:
    """Injector: pages of the database overwritten, or half of it cut off, while no daemon runs."""
    home = new_home()
    home.start()
    made = sorts_of_runs(home)
    before = [Http(home).facts(run_id) for run_id in made]
    items = [all_items(Http(home), run_id) for run_id in made]
    assert home.limpet("stop").returncode == 0
    database = home.path / "memory" / "sessions.db"
    injure(database)
    home.start()
    assert [Http(home).facts(run_id) for run_id in made] == before
    assert [all_items(Http(home), run_id) for run_id in made] == items
    assert list(database.parent.glob("sessions.db.broken-*")), "it was not noticed"


@pytest.mark.requirement("1.12", "F30", "1.11", "1.4")
def test_an_old_copy_is_brought_up_to_date(new_home: NewHome, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon, and a database from before the last runs put in place. One run goes on."""
    home = new_home()
    home.start()
    alive = Http(home).spawn("echo one; " + gate.wait + "echo two; " + gate.wait + "exit 3")
    made = sorts_of_runs(home)
    assert home.limpet("stop").returncode == 0
    old = (home.path / "memory" / "sessions.db").read_bytes()
    home.start()
    gate.open()
    until(lambda: Http(home).facts(alive)["durable_offset"]["stdout"] == len("one\ntwo\n"), "more output, synced")
    newer = Http(home).ok("shell", {"command": "echo newer", "key": "newer"})
    seal(home, [newer["run_id"]])
    items = all_items(Http(home), alive)
    before = everything(Http(home), [*made, newer["run_id"]])
    home.kill_daemon()
    drop_database(home)
    (home.path / "memory" / "sessions.db").write_bytes(old)
    home.start()
    http = Http(home)
    assert everything(http, [*made, newer["run_id"]]) == before
    assert all_items(http, alive) == items
    assert http.ok("shell", {"command": "echo newer", "key": "newer"}) == newer
    # No id is used a second time, and the run that went on has lost nothing.
    assert http.spawn("true") > newer["run_id"]
    gate.open()
    assert http.finish(alive)["exit_code"] == 3
    assert all_items(http, alive)[: len(items)] == items


@pytest.mark.requirement("F30", "1.11", "1.10")
def test_a_queue_and_what_runs_are_found_without_it(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """Injector: SIGKILL to the daemon, and the database deleted while one run goes on and one is queued."""
    home = new_home()
    home.start()
    first = Http(home).spawn(lifeline.hold + "echo one; " + gate.wait + "exit 3", session_id="s")
    lifeline.word()
    second = Http(home).spawn("echo two", session_id="s")
    home.kill_daemon()
    drop_database(home)
    home.start()
    assert [Http(home).facts(run_id)["status"] for run_id in (first, second)] == ["running", "queued"]
    gate.open()
    assert Http(home).finish(second)["status"] == "completed"
    assert Http(home).facts(first)["exit_code"] == 3


@pytest.mark.requirement("1.12")
def test_rows_are_there_and_output_is_not(new_home: NewHome) -> None:
    home = new_home()
    home.start()
    ran = Http(home).ok("shell", {"command": f"for n in $(seq 50000); do echo {MARKER[:5]}''{MARKER[5:]} $n; done"})
    assert Http(home).read(ran["run_id"])["data"].startswith(MARKER)
    all_items(Http(home), ran["run_id"])
    assert home.limpet("stop").returncode == 0
    with contextlib.closing(sqlite3.connect(home.path / "memory" / "sessions.db")) as database:
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert {"exec_runs", "exec_run_items"} <= tables
        assert database.execute("SELECT run_id FROM exec_runs").fetchall() == [(ran["run_id"],)]
    for file in (home.path / "memory").iterdir():
        assert MARKER.encode() not in file.read_bytes(), file
        assert file.stat().st_size < 1_000_000, file


@pytest.mark.requirement("F28")
def test_a_lock_on_it_stops_no_run(new_home: NewHome, gate: Gate) -> None:
    """Injector: BEGIN EXCLUSIVE by another process's connection, held for ten seconds."""
    home = new_home()
    home.start()
    http = Http(home)
    alive = http.spawn("echo one; " + gate.wait + "seq 1 50000; exit 3")
    ended = http.ok("shell", {"command": "exit 4"})["run_id"]
    answered: list[Answer] = []
    with contextlib.closing(sqlite3.connect(home.path / "memory" / "sessions.db", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        until_s = time.monotonic() + 10
        gate.open()
        while time.monotonic() < until_s:
            began = time.monotonic()
            answered += [http.call("shell", {"action": "spawn", "command": "true"})]
            answered += [http.call("runs.get", {"run_id": run_id}) for run_id in (alive, ended)]
            answered += [http.call("runs.list"), http.call("runs.read", {"run_id": alive, "stream": "stdout"})]
            assert time.monotonic() - began < 30, "somebody waited for the lock"
        other.execute("ROLLBACK")
    for answer in answered:
        # Whatever could not be answered says so, and is safe to ask again.
        assert answer["ok"] or (answer["error"], answer["reason"]) == ("unavailable", "store_busy"), answer
    assert http.finish(alive)["exit_code"] == 3
    assert http.bytes_of(alive).decode() == "one\n" + "".join(f"{n}\n" for n in range(1, 50_001))
    for answer in answered:
        if answer["ok"] and answer.get("status") in ("running", "queued", "completed"):
            assert http.finish(answer["run_id"])["status"] in ("completed", "failed")
    home.kill_daemon()
    home.start()
    assert Http(home).facts(alive)["exit_code"] == 3


@pytest.mark.requirement("F13", "1.12", "F30")
def test_killed_while_it_is_filled_again(new_home: NewHome) -> None:
    """Injector: SIGKILL to a daemon that has begun to fill a new database and is not ready yet."""
    home = new_home()
    home.start()
    made = [Http(home).ok("shell", {"command": f"echo {n}; exit {n}"})["run_id"] for n in range(40)]
    seal(home, made)
    before = [Http(home).facts(run_id) for run_id in made]
    home.kill_daemon()
    interrupted = 0
    for _ in range(10):
        drop_database(home)
        with subprocess.Popen(
            [LIMPET, "serve", "--ready-json"], env=home.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as daemon:
            while not (home.path / "memory" / "sessions.db").exists():
                assert daemon.poll() is None
            os.kill(daemon.pid, signal.SIGKILL)
            interrupted += not read_line(daemon)
        until(lambda pid=daemon.pid: not running(pid), "it to be gone")
    assert interrupted, "each was ready before it was killed"
    home.start()
    assert [Http(home).facts(run_id) for run_id in made] == before
    assert len(Http(home).ok("runs.list", {"limit": 1000})["runs"]) == 40
