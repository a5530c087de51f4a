"""What others do to a run's files is noticed; no cursor comes to mean other bytes, and the rest is read (F24, F25)."""

import base64
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from .fifos import Gate
from .home import Answer, Home, until
from .remains import attempt_directory, drop_database, fact_offset, flip, seal
from .surface import Http

NewHome = Callable[..., Home]

LAST = 20_000
WHOLE = "".join(f"{n}\n" for n in range(1, LAST + 1)).encode()


def ended_run(home: Home) -> tuple[str, Path]:
    run_id = str(Http(home).ok("shell", {"command": f"seq 1 {LAST}; exit 3"})["run_id"])
    seal(home, [run_id])
    return run_id, attempt_directory(home, run_id)


def tampered(http: Http, run_id: str, **params: object) -> None:
    answer = http.refused("runs.read", {"run_id": run_id, "stream": "stdout", **params}, "internal")
    assert answer["reason"] == "spool_tampered", answer


@pytest.mark.requirement("F24", "0.7")
@pytest.mark.parametrize("restart", [False, True], ids=["same-daemon", "next-daemon"])
def test_a_spool_that_was_cut(new_home: NewHome, restart: bool) -> None:
    """Injector: truncate on a sealed spool."""
    home = new_home()
    home.start()
    run_id, directory = ended_run(home)
    kept = len(WHOLE) // 2
    os.truncate(directory / "stdout.spool", kept)
    if restart:
        home.kill_daemon()
        home.start()
    http = Http(home)
    for params in ({"offset": kept}, {"offset": len(WHOLE) - 10}, {"last_lines": 1}, {"last_bytes": 5}):
        tampered(http, run_id, **params)
    # What is there is the same bytes under the same offsets, and the run is as long as it was.
    page = http.read(run_id, max_bytes=1000, encoding="base64")
    assert base64.b64decode(page["data"]) == WHOLE[:1000]
    assert (page["total_bytes"], page["eof"]) == (len(WHOLE), False)
    assert http.facts(run_id)["streams"]["stdout"]["bytes"] == len(WHOLE)
    refused = http.refused("runs.read", {"run_id": run_id, "offset": len(WHOLE) + 1}, "invalid_argument")
    assert refused["reason"] == "cursor_ahead"


@pytest.mark.requirement("F24", "0.7")
def test_a_spool_that_was_removed(new_home: NewHome) -> None:
    """Injector: unlink of a sealed spool; the run beside it is as it was."""
    home = new_home()
    home.start()
    run_id, directory = ended_run(home)
    other, _ = ended_run(home)
    (directory / "stdout.spool").unlink()
    http = Http(home)
    tampered(http, run_id, offset=0)
    tampered(http, run_id, last_lines=3)
    facts = http.facts(run_id)
    assert (facts["status"], facts["exit_code"]) == ("failed", 3)
    assert http.bytes_of(other) == WHOLE


@pytest.mark.requirement("F24", "0.7")
def test_what_was_appended_is_no_output(new_home: NewHome) -> None:
    """Injector: bytes appended to a sealed spool."""
    home = new_home()
    home.start()
    run_id, directory = ended_run(home)
    with (directory / "stdout.spool").open("ab") as spool:
        spool.write(b"never said\n")
    for turn in range(2):
        http = Http(home)
        assert http.bytes_of(run_id) == WHOLE
        page = http.ok("runs.read", {"run_id": run_id, "stream": "stdout", "last_lines": 1})
        assert (page["data"], page["total_bytes"], page["eof"]) == (f"{LAST}\n", len(WHOLE), True)
        http.refused("runs.read", {"run_id": run_id, "offset": len(WHOLE) + 1}, "invalid_argument")
        if turn == 0:
            home.kill_daemon()
            home.start()


@pytest.mark.requirement("F24", "0.7")
def test_the_spool_of_a_run_that_goes_on(new_home: NewHome, gate: Gate) -> None:
    """Injector: truncate on a spool while its run goes on."""
    home = new_home()
    home.start()
    http = Http(home)
    run_id = http.spawn(f"seq 1 {LAST}; " + gate.wait + "exit 3")
    until(lambda: http.read(run_id, max_bytes=1)["total_bytes"] == len(WHOLE), "the output")
    os.truncate(attempt_directory(home, run_id) / "stdout.spool", 100)
    tampered(http, run_id, offset=100)
    tampered(http, run_id, offset=len(WHOLE) - 5)
    assert http.read(run_id, max_bytes=100)["data"].encode() == WHOLE[:100]
    gate.open()
    assert http.finish(run_id)["exit_code"] == 3
    tampered(http, run_id, offset=100)


def flip_ended(journal: Path) -> None:
    flip(journal, fact_offset(journal, "ended")[0] + 30)


def append_nuls(journal: Path) -> None:
    with journal.open("ab") as stream:
        stream.write(b"\0" * 512 + b"\n")


@pytest.mark.requirement("F25", "1.12")
@pytest.mark.parametrize(
    ("injure", "fact"),
    [(flip_ended, "ended"), (append_nuls, "")],
    ids=["flip", "nuls"],
)
def test_a_damaged_journal_says_where(new_home: NewHome, injure: Callable[[Path], None], fact: str) -> None:
    """Injector: a bit of a keeper's journal turned over, or NULs behind it; and the database deleted."""
    home = new_home()
    home.start()
    run_id, directory = ended_run(home)
    other, _ = ended_run(home)
    before = Http(home).facts(other)
    home.kill_daemon()
    journal = directory / "keeper.journal"
    record = fact_offset(journal, fact)[1] if fact else journal.read_bytes().count(b"\n") + 1
    injure(journal)
    damaged = journal.read_bytes()
    drop_database(home)
    home.start()
    http = Http(home)
    facts = http.facts(run_id)
    (told,) = [text for name, text in facts["damaged"].items() if "keeper" in name]
    assert str(record) in told, facts["damaged"]
    # The fold stops there and says no more than it knows; nobody repairs what they cannot read.
    if fact:
        assert (facts["exit_code"] in (None, 3), facts["status"] != "completed") == (True, True), facts
    else:
        assert (facts["status"], facts["exit_code"], facts["ended_by"]) == ("failed", 3, "self"), facts
    assert journal.read_bytes() == damaged
    assert http.bytes_of(run_id)[: len(WHOLE)] == WHOLE
    assert http.facts(other) == before
    assert http.bytes_of(other) == WHOLE
    assert http.ok("shell", {"command": "echo on"})["stdout"] == "on\n"


@pytest.mark.requirement("F25", "1.12")
def test_a_hole_in_the_middle_of_a_journal(new_home: NewHome) -> None:
    """Injector: 4 KiB of zeros in the middle of a keeper's journal, and the database deleted, while none runs."""
    home = new_home()
    home.start()
    command = "for n in $(seq 150); do echo $n; sleep 0.012; done; exit 3"
    run_id = Http(home).ok("shell", {"command": command})["run_id"]
    seal(home, [run_id])
    home.kill_daemon()
    journal = attempt_directory(home, run_id) / "keeper.journal"
    data = journal.read_bytes()
    assert len(data) > 3 * 4096, "the journal is too short for it"
    record = data[:4096].count(b"\n") + 1
    journal.write_bytes(data[:4096] + b"\0" * 4096 + data[8192:])
    drop_database(home)
    home.start()
    http = Http(home)
    (told,) = http.facts(run_id)["damaged"].values()
    assert str(record) in told, told
    whole = "".join(f"{n}\n" for n in range(1, 151)).encode()
    assert http.bytes_of(run_id)[: len(whole)] == whole


@pytest.mark.requirement("F25", "0.9", "1.11")
@pytest.mark.parametrize("fact", ["ended", "exited", "started"])
def test_damage_is_no_reboot(new_home: NewHome, fact: str) -> None:
    """Injector: a bit of an ended run's journal turned over, and the database deleted: its command is not run again."""
    home = new_home()
    home.start()
    run_id = Http(home).ok("shell", {"command": f"echo x >>'{home.work}/starts'", "key": "once"})["run_id"]
    seal(home, [run_id])
    home.kill_daemon()
    journal = attempt_directory(home, run_id) / "keeper.journal"
    flip(journal, fact_offset(journal, fact)[0] + 30)
    drop_database(home)
    home.start()
    http = Http(home)
    facts = http.finish(run_id, 10_000)
    assert facts["attempt"] == 1, facts
    assert facts["damaged"], facts
    assert http.ok("shell", {"command": "echo on"})["stdout"] == "on\n"
    assert (home.work / "starts").read_text() == "x\n"


@pytest.mark.requirement("F25")
def test_a_damaged_record_of_what_was_asked(new_home: NewHome) -> None:
    """Injector: a bit of the daemon's own journal of a run turned over, and the database deleted, while none runs."""
    home = new_home()
    home.start()
    run_id, directory = ended_run(home)
    journal = directory.parent / "daemon.journal"
    home.kill_daemon()
    flip(journal, fact_offset(journal, "submitted")[0] + 30)
    drop_database(home)
    home.start()
    http = Http(home)
    facts = http.facts(run_id)
    assert "daemon" in json.dumps(facts["damaged"]), facts
    assert (facts["exit_code"], facts["status"]) == (3, "failed"), facts
    assert http.bytes_of(run_id) == WHOLE
    listed: list[Answer] = http.ok("runs.list")["runs"]
    assert [run["run_id"] for run in listed] == [run_id]
