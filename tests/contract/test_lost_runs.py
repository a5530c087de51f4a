"""Runs of which a starting daemon finds nothing are queued again; those lost under a living one are not (1.11)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .fifos import Gate, Lifeline
from .home import Answer, Home, running, until
from .items import all_items, events, statuses, text_of
from .remains import attempt_directory, kill_keeper, reboot, records, seal
from .surface import Http

NewHome = Callable[..., Home]


def counted(folder: Path, rest: str = "") -> str:
    return f"echo started >>'{folder}/starts'; {rest}"


def starts(folder: Path) -> int:
    file = folder / "starts"
    return file.read_text().count("started") if file.exists() else 0


def rebooted(home: Home, command: str, expect: str, **params: Any) -> str:
    """A run that has said `expect`, and then went with the whole machine; a new daemon is there."""
    home.start()
    http = Http(home)
    run_id = http.spawn(command, **params)
    until(lambda: http.bytes_of(run_id).decode() == expect, "the first attempt's output")
    reboot(home)
    home.start()
    return run_id


@pytest.mark.requirement("1.11", "9.shell")
def test_after_a_reboot_a_run_is_started_again(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: SIGKILL to daemon, keeper and command, in this order."""
    home = new_home()
    run_id = rebooted(home, counted(tmp_path, "echo said; " + gate.wait + "exit 3"), "said\n")
    http = Http(home)
    until(lambda: starts(tmp_path) == 2, "the second attempt")
    until(lambda: http.facts(run_id)["status"] == "running", "the second attempt to be shown")
    facts = http.facts(run_id)
    assert (facts["attempt"], facts["exit_code"], facts["ended_by"]) == (2, None, None), facts
    gate.open()
    facts = http.finish(run_id)
    assert (facts["status"], facts["exit_code"], facts["ended_by"], facts["attempt"]) == ("failed", 3, "self", 2)
    assert starts(tmp_path) == 2
    # Its output stands behind the first one's, and offsets go on.
    assert http.bytes_of(run_id) == b"said\nsaid\n"
    assert http.bytes_of(run_id, offset=5) == b"said\n"
    assert records(attempt_directory(home, run_id, 2) / "keeper.journal")[0]["fact"] == "prepared"
    items = all_items(http, run_id)
    assert [item["seq"] for item in items] == list(range(1, len(items) + 1))
    assert events(items, "recovered") == [{"attempt": 2}]
    assert statuses(items)[-4:] == ["running", "queued", "running", "failed"]
    assert text_of(items) == "said\nsaid\n"
    place = next(place for place, item in enumerate(items) if item.get("event") == "recovered")
    assert text_of(items[:place]) == "said\n"


@pytest.mark.requirement("1.11", "0.9")
def test_a_cursor_and_a_key_go_on_across_attempts(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: SIGKILL to daemon, keeper and command, twice."""
    home = new_home()
    home.start()
    request: Answer = {"command": counted(tmp_path, "echo said; " + gate.wait), "key": "k"}
    run_id = Http(home).spawn(**request)
    seen: list[Answer] = []
    for attempt in (1, 2):
        said = "said\n" * attempt
        until(lambda said=said: Http(home).bytes_of(run_id).decode() == said, f"attempt {attempt}")
        seen += all_items(Http(home), run_id, since_seq=seen[-1]["seq"] if seen else 0)
        reboot(home)
        home.start()
        assert Http(home).spawn(**request) == run_id
        assert all_items(Http(home), run_id)[: len(seen)] == seen
    until(lambda: starts(tmp_path) == 3, "the third attempt")
    gate.open()
    facts = Http(home).finish(run_id)
    assert (facts["status"], facts["attempt"]) == ("completed", 3)
    assert Http(home).spawn(**request) == run_id
    items = all_items(Http(home), run_id)
    assert items == seen + all_items(Http(home), run_id, since_seq=seen[-1]["seq"])
    assert events(items, "recovered") == [{"attempt": 2}, {"attempt": 3}]
    assert Http(home).bytes_of(run_id) == b"said\nsaid\nsaid\n"
    assert starts(tmp_path) == 3


@pytest.mark.requirement("1.11", "0.8")
@pytest.mark.parametrize("where", ["request", "config"])
def test_on_lost_fail_opts_out(new_home: NewHome, tmp_path: Path, gate: Gate, where: str) -> None:
    """Injector: SIGKILL to daemon, keeper and command, in this order."""
    home = new_home('[run]\non_lost = "fail"\n' if where == "config" else "")
    params = {"on_lost": "fail"} if where == "request" else {}
    run_id = rebooted(home, counted(tmp_path, "echo said; " + gate.wait), "said\n", **params)
    http = Http(home)
    facts = http.finish(run_id)
    assert (facts["status"], facts["ended_by"], facts["attempt"]) == ("failed", "lost", 1), facts
    assert (facts["exit_code"], facts["signal"], facts["survivors"]) == (None, None, []), facts
    assert facts["error_message"]
    assert http.bytes_of(run_id) == b"said\n"
    items = all_items(http, run_id)
    assert (statuses(items)[-1], events(items, "recovered")) == ("failed", [])
    assert starts(tmp_path) == 1


@pytest.mark.requirement("1.11", "0.3")
def test_on_lost_of_the_run_stands_above_the_config(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: SIGKILL to daemon, keeper and command, in this order."""
    home = new_home('[run]\non_lost = "fail"\n')
    run_id = rebooted(home, counted(tmp_path, "echo said; " + gate.wait), "said\n", on_lost="requeue")
    until(lambda: starts(tmp_path) == 2, "the second attempt")
    gate.open()
    assert Http(home).finish(run_id)["attempt"] == 2
    for value in ("restart", "", 1, True):
        params: Answer = {"action": "spawn", "command": "true", "on_lost": value}
        assert Http(home).refused("shell", params, "invalid_argument").get("field") == "on_lost"


@pytest.mark.requirement("1.11")
def test_what_had_ended_or_was_killed_is_not_started_again(
    new_home: NewHome, tmp_path: Path, lifeline: Lifeline
) -> None:
    """Injector: SIGKILL to daemon, keepers and commands; one had ended, one was being killed."""
    home = new_home("[run]\nkill_grace_ms = 600000\n")
    home.start()
    http = Http(home)
    ended = http.spawn(counted(tmp_path, "exit 4"))
    http.finish(ended)
    stopped = http.spawn(counted(tmp_path, "trap '' TERM; " + lifeline.hold + "while :; do sleep 0.1; done"))
    lifeline.word()
    http.ok("runs.kill", {"run_id": stopped})
    assert http.facts(stopped)["stopping"] is True
    reboot(home)
    home.start()
    facts = Http(home).facts(ended)
    assert (facts["status"], facts["exit_code"], facts["attempt"]) == ("failed", 4, 1)
    facts = Http(home).finish(stopped)
    assert (facts["status"] in ("killed", "failed"), facts["attempt"]) == (True, 1), facts
    assert starts(tmp_path) == 2


@pytest.mark.requirement("1.11", "1.10")
def test_a_recovered_run_keeps_its_place(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: SIGKILL to daemon, keeper and command, with two runs queued behind."""
    home = new_home()
    home.start()
    http = Http(home)
    first = http.spawn(f"echo first >>'{tmp_path}/order'; " + gate.wait, session_id="kept")
    queued = [http.spawn(f"echo {n} >>'{tmp_path}/order'", session_id="kept") for n in range(2)]
    until((tmp_path / "order").exists, "the first to run")
    reboot(home)
    home.start()
    gate.open()
    assert [Http(home).finish(run_id)["status"] for run_id in (first, *queued)] == ["completed"] * 3
    assert (tmp_path / "order").read_text().split() == ["first", "first", "0", "1"]
    assert [Http(home).facts(run_id)["attempt"] for run_id in (first, *queued)] == [2, 1, 1]


@pytest.mark.requirement("1.11", "0.10", "0.12")
def test_a_second_attempt_has_all_that_the_first_had(new_home: NewHome, tmp_path: Path, gate: Gate) -> None:
    """Injector: SIGKILL to daemon, keeper and command. Given stdin, secrets and directory are those of the first."""
    home = new_home()
    command = 'cat; echo "$API_TOKEN $PWD"; ' + gate.wait
    params: Answer = {"stdin": "given\n", "env": {"API_TOKEN": "t0ken"}, "cwd": str(tmp_path)}
    said = f"given\nt0ken {tmp_path}\n"
    run_id = rebooted(home, command, said, **params)
    until(lambda: Http(home).bytes_of(run_id).decode() == said * 2, "the second attempt's output")
    gate.open()
    assert Http(home).finish(run_id)["attempt"] == 2
    seal(home, [run_id], 2)
    until(lambda: not list((home.path / "runs" / run_id).rglob("start.json")), "the secrets to be removed")


@pytest.mark.requirement("1.11", "1.6")
def test_a_second_attempt_has_its_whole_time(new_home: NewHome, tmp_path: Path) -> None:
    """Injector: SIGKILL to daemon, keeper and command. The limit holds for the attempt that runs."""
    home = new_home("[run]\nkill_grace_ms = 200\n")
    run_id = rebooted(home, counted(tmp_path, "echo said; exec sleep 1000"), "said\n", timeout_secs=3)
    facts = Http(home).finish(run_id)
    assert (facts["status"], facts["ended_by"], facts["attempt"]) == ("timed_out", "timeout", 2), facts
    assert facts["finished_at"] - facts["started_at"] >= 2900, facts


@pytest.mark.requirement("1.11")
def test_what_is_left_of_a_lost_attempt_ends_before_the_next(
    new_home: NewHome, lifeline: Lifeline, tmp_path: Path, gate: Gate
) -> None:
    """Injector: SIGKILL to the daemon, then to the keeper; the command lives on until the next daemon comes."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(counted(tmp_path, lifeline.hold + gate.wait))
    left = int(lifeline.word())
    home.kill_daemon()
    kill_keeper(home, run_id)
    assert running(left)
    home.start()
    until(lambda: not running(left), "what was left to be ended")
    until(lambda: starts(tmp_path) == 2, "the second attempt")
    assert Http(home).facts(run_id)["attempt"] == 2
    gate.open()
    assert Http(home).finish(run_id)["ended_by"] == "self"
