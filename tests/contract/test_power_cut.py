"""What a power cut takes is told, what was durable is there, and nobody is shown what nobody wrote (0.13, 0.7, F09)."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from prove import power_cuts

from .fifos import Gate
from .home import Answer, Home, until
from .items import all_items, events, poll, text_of
from .remains import attempt_directory, fact_offset, reboot, rewrite, seal
from .surface import Http

NewHome = Callable[..., Home]

WHOLE = "".join(f"{n}\n" for n in range(2000))
SAID_BYTES = len(WHOLE)
KEPT_BYTES = 5123
SAID = WHOLE[:KEPT_BYTES]


def another_boot(home: Home, run_id: str) -> None:
    """Injector: the journal's records are those of a keeper of another boot."""

    def change(facts: list[Answer]) -> None:
        facts[0]["keeper"]["boot_id"] = "00000000-0000-4000-8000-000000000000"

    rewrite(attempt_directory(home, run_id) / "keeper.journal", change)


def take_power(home: Home, run_id: str, take: Callable[[Path], None]) -> None:
    """Injector: SIGKILL to all, and a spool as a file system can leave it that had not written its end yet."""
    reboot(home)
    another_boot(home, run_id)
    take(attempt_directory(home, run_id) / "stdout.spool")
    (home.path / "boot").unlink()


def zeros(spool: Path) -> None:
    with spool.open("r+b") as file:
        file.seek(KEPT_BYTES)
        file.write(bytes(SAID_BYTES - KEPT_BYTES))


def shorter(spool: Path) -> None:
    os.truncate(spool, KEPT_BYTES)


def said(new_home: NewHome, gate: Gate, on_lost: str) -> tuple[Home, str]:
    """A run that goes on, and of whose output nothing is known to be on disk."""
    home = new_home("[run]\nsync_ms = 0\n")
    home.start()
    http = Http(home)
    run_id = http.spawn(f"seq 0 1999; {gate.wait}exit 3", on_lost=on_lost)
    until(lambda: http.facts(run_id)["streams"]["stdout"]["bytes"] == SAID_BYTES, "all output")
    return home, run_id


@pytest.mark.requirement("F09", "0.13", "0.7", "1.11")
@pytest.mark.parametrize("take", [zeros, shorter])
def test_what_went_with_the_power_is_gone_and_told(new_home: NewHome, gate: Gate, take: Callable[[Path], None]) -> None:
    """Injector: SIGKILL to all, another boot's id, and the end of a spool zeros or not there."""
    home, run_id = said(new_home, gate, "fail")
    take_power(home, run_id, take)
    home.start()
    http = Http(home)
    facts = http.facts(run_id)
    assert (facts["status"], facts["ended_by"], facts["attempt"]) == ("failed", "lost", 1), facts
    assert facts["streams"]["stdout"] == {"bytes": SAID_BYTES, "base": SAID_BYTES, "open": False}
    page = http.read(run_id)
    assert (page["data"], page["next_offset"], page["eof"]) == (SAID, KEPT_BYTES, False)
    for offset in (KEPT_BYTES, SAID_BYTES - 1):
        asked: Answer = {"run_id": run_id, "stream": "stdout", "offset": offset}
        assert http.refused("runs.read", asked, "gone")["base"] == SAID_BYTES
    assert http.read(run_id, offset=SAID_BYTES)["eof"] is True
    last = {"run_id": run_id, "stream": "stdout", "max_bytes": 1 << 20}
    assert http.ok("runs.read", {**last, "last_bytes": 100})["data"] == SAID[-100:]
    assert http.ok("runs.read", {**last, "last_lines": 3})["data"] == "".join(SAID.splitlines(keepends=True)[-3:])
    assert SAID.endswith(poll(http, run_id)["snippet"][-100:])
    items: list[Answer] = http.ok("shell", {"action": "log", "run_id": run_id})["items"]
    assert text_of(items) == SAID
    assert events(items, "output_lost") == [{"stream": "stdout", "start": KEPT_BYTES, "end": SAID_BYTES}]
    until((home.path / "boot").exists, "all to be looked at")
    assert http.ok("runs.verify")["findings"] == []


@pytest.mark.requirement("F09", "0.13", "1.11", "0.5")
def test_another_attempt_stands_behind_what_was_said(new_home: NewHome, gate: Gate) -> None:
    """Injector: SIGKILL to all, another boot's id, and the end of a spool zeros."""
    home, run_id = said(new_home, gate, "requeue")
    take_power(home, run_id, zeros)
    home.start()
    http = Http(home)
    gate.open()
    facts = http.finish(run_id)
    assert (facts["exit_code"], facts["attempt"], facts["ended_by"]) == (3, 2, "self"), facts
    assert http.bytes_of(run_id, offset=SAID_BYTES).decode() == WHOLE
    assert http.read(run_id)["data"] == SAID
    items = http.ok("shell", {"action": "log", "run_id": run_id})["items"]
    assert text_of(items) == SAID + WHOLE
    until(lambda: http.ok("runs.verify")["findings"] == [], "verify to find nothing")


@pytest.mark.requirement("F09", "1.11", "1.12")
def test_what_the_database_knew_alone_is_looked_at_again(new_home: NewHome) -> None:
    """Injector: SIGKILL to the daemon; the record that a run was to be ended is zeros, and the boot is another."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn("echo said >&2; trap 'exit 4' TERM; while :; do sleep 0.1; done")
    Http(home).ok("runs.kill", {"run_id": run_id})
    Http(home).finish(run_id)
    seal(home, [run_id])
    until(lambda: Http(home).facts(run_id)["durable_offset"]["stderr"] > 0, "all to be durable")
    facts = Http(home).facts(run_id)
    assert home.limpet("stop").returncode == 0
    journal = home.path / "runs" / run_id / "daemon.journal"
    offset, _ = fact_offset(journal, "stop_asked")
    data = journal.read_bytes()
    journal.write_bytes(data[:offset] + bytes(len(data) - offset))
    (home.path / "boot").unlink()
    home.start()
    until((home.path / "boot").exists, "all to be looked at")
    assert Http(home).facts(run_id) == facts
    assert Http(home).ok("runs.verify")["findings"] == []
    assert all_items(Http(home), run_id)


@pytest.mark.requirement("F09", "0.13", "0.9", "1.11")
def test_the_power_of_a_disk_cut() -> None:
    """Injector: EXT4_IOC_SHUTDOWN on a loop mount of our own, its log lost. At length: `python -m prove power_cuts`."""
    report = power_cuts.prove(2)
    assert "attempt 2" in report or "lost" in report
