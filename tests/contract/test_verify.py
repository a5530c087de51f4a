"""`verify` finds what does not fit, names file, offset and record, changes nothing, and raises no false alarm (5.3)."""

import contextlib
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from prove import planted_damage

from .fifos import Gate, Lifeline
from .home import Answer, Home, json_lines
from .items import everything
from .remains import attempt_directory, contents, fact_offset, flip, reboot, seal
from .surface import Http, Surface

NewHome = Callable[..., Home]

FOUND = {"run_id", "file", "offset", "record", "problem", "message"}


def ended_run(home: Home, command: str = "seq 1 20000; echo err >&2; exit 3") -> str:
    run_id = Http(home).ok("shell", {"command": command})["run_id"]
    seal(home, [run_id])
    return str(run_id)


def by_cli(home: Home, *words: str) -> Answer:
    done = home.limpet("verify", "--json", *words)
    assert b"Traceback" not in done.stderr, done
    (told,) = json_lines(done.stdout)
    assert done.returncode == (0 if told["sound"] else 1), done
    assert told["sound"] is (not told["findings"]), told
    assert all(set(finding) >= FOUND for finding in told["findings"]), told
    return told


def problems(told: Answer) -> set[str]:
    return {finding["problem"] for finding in told["findings"]}


@pytest.mark.requirement("5.3", "0.2")
def test_a_sound_home_is_said_to_be_sound(house: Home, surface: Surface) -> None:
    ran = surface.ok("shell", {"command": "seq 1 20000; exit 3"})
    seal(house, [ran["run_id"]])
    told = surface.ok("runs.verify", {"run_id": ran["run_id"]})
    assert (told["sound"], told["runs"], told["findings"]) == (True, 1, []), told
    assert told["bytes"] >= 108_894
    surface.refused("runs.verify", {"run_id": "0000000000000"}, "not_found")


@pytest.mark.requirement("5.3", "F33")
def test_all_kinds_of_runs_are_sound(new_home: NewHome, lifeline: Lifeline, gate: Gate) -> None:
    """Those that ended in every way, that run, wait, hold a stream open, were lost: with a daemon, and without."""
    home = new_home("[run]\nspool_max_bytes = 200000\n")
    home.start()
    http = Http(home)
    made = [ended_run(home, command) for command in ("true", "exit 3", "seq 1 50000", "kill -9 $$", "printf '\\377'")]
    made += [http.spawn("true", cwd="/no/such/place"), http.spawn("exec sleep 1000", timeout_secs=1)]
    made += [http.spawn("printf 'a\\r\\nb\\n'; exit 2", pty=True)]
    http.ok("shell", {"command": "seq 1 200000", "max_output_bytes": 1000})
    held = http.ok("shell", {"command": lifeline.hold + "sleep 1000 & echo held"})["run_id"]
    running = http.spawn("seq 1 1000; " + gate.wait, session_id="s")
    http.spawn("true", session_id="s")
    for run_id in made:
        http.finish(run_id)
    told = by_cli(home)
    assert (told["findings"], told["runs"]) == ([], 12)
    home.kill_daemon()
    assert by_cli(home)["findings"] == []
    assert home.limpet("status").returncode == 1, "verify started a daemon"
    home.start()
    gate.open()
    http.finish(running)
    http.ok("runs.kill", {"run_id": held})
    assert lifeline.gone(30)
    assert by_cli(home)["findings"] == []


@pytest.mark.requirement("5.3", "1.11")
def test_what_a_crash_of_all_leaves_is_sound(new_home: NewHome) -> None:
    """Injector: SIGKILL to daemon, keepers and commands in the middle of output; and a torn last line."""
    home = new_home()
    home.start()
    http = Http(home)
    made = [http.spawn("while :; do seq 1 1000; done") for _ in range(5)]
    for run_id in made:
        assert http.read(run_id, wait_ms=60_000)["total_bytes"] > 0
    reboot(home)
    with (attempt_directory(home, made[0]) / "keeper.journal").open("ab") as journal:
        journal.write(b'1 0badc0de {"n":99')
    told = by_cli(home)
    assert told["findings"] == []
    home.start()
    assert by_cli(home)["findings"] == []
    for run_id in made:
        Http(home).ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("5.3", "F33", "1.12")
def test_it_changes_nothing_and_starts_nothing(new_home: NewHome) -> None:
    """Injector: SIGKILL to the daemon, so that the database has a log which an eager reader would fold in."""
    home = new_home()
    home.start()
    ended_run(home)
    home.kill_daemon()
    assert (home.path / "memory" / "sessions.db-wal").stat().st_size > 0
    before = contents(home)
    assert by_cli(home)["sound"] is True
    after = contents(home)
    assert set(after) == set(before)
    assert [name for name, data in before.items() if after[name] != data] == []
    assert home.processes() == []


@pytest.mark.requirement("5.3", "F25")
@pytest.mark.parametrize("running", [True, False], ids=["daemon", "no-daemon"])
@pytest.mark.parametrize("name", ["keeper.journal", "daemon.journal"])
def test_a_flipped_bit_in_a_journal(new_home: NewHome, name: str, running: bool) -> None:
    """Injector: one bit of one record turned over."""
    home = new_home()
    home.start()
    whole, damaged = ended_run(home), ended_run(home)
    journal = home.path / "runs" / damaged / ("1/keeper.journal" if name == "keeper.journal" else name)
    offset, record = fact_offset(journal, "exited" if name == "keeper.journal" else "submitted")
    if not running:
        home.kill_daemon()
    flip(journal, offset + 30)
    told = by_cli(home)
    assert told["sound"] is False
    assert {finding["run_id"] for finding in told["findings"]} == {damaged}, told
    (finding,) = [finding for finding in told["findings"] if finding["problem"] == "record_damaged"]
    assert (finding["offset"], finding["record"]) == (offset, record), finding
    assert finding["file"].endswith(name), finding
    assert finding["message"]
    assert by_cli(home, whole)["sound"] is True
    assert by_cli(home, damaged)["sound"] is False
    words = home.limpet("verify")
    assert (words.returncode, damaged in words.stdout.decode()) == (1, True), words


def damage(file: Path) -> None:
    flip(file, 5000)


def append(file: Path) -> None:
    with file.open("ab") as stream:
        stream.write(b"more\n")


def shorten(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 5)


def replace(file: Path) -> None:
    """Another inode with other bytes of the same length."""
    data = file.read_bytes()
    file.unlink()
    file.touch(mode=0o600)
    file.write_bytes(b"x" * len(data))


@pytest.mark.requirement("5.3", "F24")
@pytest.mark.parametrize(
    ("injure", "problem"),
    [
        (damage, "spool_damaged"),
        (replace, "spool_damaged"),
        (shorten, "spool_short"),
        (Path.unlink, "missing"),
        (append, "spool_long"),
    ],
    ids=["flip", "replace", "shorten", "remove", "append"],
)
def test_a_spool_that_was_changed(new_home: NewHome, injure: Callable[[Path], object], problem: str) -> None:
    """Injector: a sealed spool changed, cut, removed, or made longer."""
    home = new_home()
    home.start()
    whole, changed = ended_run(home), ended_run(home)
    injure(attempt_directory(home, changed) / "stdout.spool")
    told = by_cli(home)
    assert problem in problems(told), told
    assert {finding["run_id"] for finding in told["findings"]} == {changed}, told
    assert any(finding["file"].endswith("stdout.spool") for finding in told["findings"]), told
    assert by_cli(home, whole)["sound"] is True


@pytest.mark.requirement("5.3", "6.6")
def test_modes_that_let_others_in(new_home: NewHome) -> None:
    """Injector: chmod 0644 on a spool."""
    home = new_home()
    home.start()
    run_id = ended_run(home)
    (attempt_directory(home, run_id) / "stdout.spool").chmod(0o644)
    told = by_cli(home)
    assert problems(told) == {"mode"}, told
    (attempt_directory(home, run_id) / "stdout.spool").chmod(0o600)
    assert by_cli(home)["sound"] is True


@pytest.mark.requirement("5.3", "F30")
def test_a_database_that_differs_from_the_files(new_home: NewHome) -> None:
    """Injector: a row changed with SQLite's own means while no daemon runs."""
    home = new_home()
    home.start()
    whole, changed = ended_run(home), ended_run(home)
    assert home.limpet("stop").returncode == 0
    with contextlib.closing(sqlite3.connect(home.path / "memory" / "sessions.db")) as database:
        row = "UPDATE exec_run_states SET state = replace(state, ?, ?) WHERE run_id = ?"
        assert database.execute(row, ('"exit_code":3', '"exit_code":0', changed)).rowcount == 1
        database.commit()
    told = by_cli(home)
    assert problems(told) == {"state_differs"}, told
    assert {finding["run_id"] for finding in told["findings"]} == {changed} != {whole}, told


@pytest.mark.requirement("5.3", "F30")
def test_a_database_that_is_behind_the_files_is_filled_again(new_home: NewHome) -> None:
    """Injector: an older copy of the database put back while no daemon runs. What it lacks is in the files."""
    home = new_home()
    home.start()
    ended_run(home)
    assert home.limpet("stop").returncode == 0
    old = (home.path / "memory" / "sessions.db").read_bytes()
    home.start()
    lacking = ended_run(home)
    before = everything(Http(home), [lacking])
    assert home.limpet("stop").returncode == 0
    for file in (home.path / "memory").glob("sessions.db-*"):
        file.unlink()
    (home.path / "memory" / "sessions.db").write_bytes(old)
    assert by_cli(home)["sound"] is True
    home.start()
    assert everything(Http(home), [lacking]) == before
    assert by_cli(home)["sound"] is True


@pytest.mark.requirement("5.3", "F24", "F25", "F33")
def test_every_piece_of_damage_is_found() -> None:
    """Injector: bits flipped, ends cut, records and blocks swapped, doubled, left out, in runs of every sort.

    At length: `python -m prove planted_damage`.
    """
    report = planted_damage.prove(600, looks=2, runs=40)
    assert report.startswith("600 pieces of damage")
    for kind in ("bare_lf", "command", "daemon.journal", "keeper.journal", "spool"):
        assert kind in report, report


@pytest.mark.requirement("F33", "5.3")
def test_no_false_alarm_under_load(new_home: NewHome, tmp_path: Path) -> None:
    """Twenty runs write, come and go, while verify looks again and again."""
    home = new_home()
    home.start()
    http = Http(home)
    stop = tmp_path / "stop"
    writers = [http.spawn(f"until [ -e '{stop}' ]; do seq 1 300; sleep 0.02; done") for _ in range(10)]

    def churn(_: int) -> None:
        while not stop.exists():
            http.ok("shell", {"command": "seq 1 2000; sleep 0.2; exit 1"})

    with ThreadPoolExecutor(5) as pool:
        busy = [pool.submit(churn, n) for n in range(4)]
        try:
            for _ in range(15):
                assert http.ok("runs.verify")["findings"] == []
                assert by_cli(home)["findings"] == []
        finally:
            stop.touch()
        for work in busy:
            work.result(60)
    for run_id in writers:
        assert http.finish(run_id)["status"] == "completed"
