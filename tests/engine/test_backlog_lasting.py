"""The backlog over kills, restarts, pruning and a lost database: the same messages, and none that was acked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.client.portal import SyncClient
from tests.contract.home import Home, until

WATCH = [{"regex": "hit [0-9]+$", "event": "found", "match_type": "line"}]


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home()
    yield made
    made.close()


def client(home: Home) -> SyncClient:
    return limpet.connect_sync(home=home.path)


def watched(home: Home, command: str, **fields: Any) -> dict[str, Any]:
    with client(home) as calls:
        answer = calls.call_checked("shell", action="spawn", command=command, watch=WATCH, **fields)
        calls.call_checked("runs.wait", run_ids=[answer["run_id"]], timeout_ms=30_000)
        return answer


def take(home: Home, session: str, most: int = 1000) -> dict[str, Any]:
    with client(home) as calls:
        return calls.call_checked("backlog.take", session_id=session, max=most)


def ack(home: Home, lease: str) -> dict[str, Any]:
    with client(home) as calls:
        return calls.call("backlog.ack", lease=lease)


def lose_the_database(home: Home) -> None:
    for path in (home.path / "memory").glob("sessions.db*"):
        path.unlink()


@pytest.mark.requirement("1.9")
def test_a_message_says_what_was_found(home: Home) -> None:
    home.start()
    run = watched(home, "echo before; echo 'this is hit 7'; echo after >&2", session_id="s")
    answer = take(home, "s")
    (message,) = answer["messages"]
    with client(home) as calls:
        (item,) = (
            each
            for each in calls.call_checked("shell", action="log", run_id=run["run_id"])["items"]
            if each.get("event") == "found"
        )
    assert (message["id"], message["ts"]) == (f"{run['run_id']}.{item['seq']}", item["ts"])
    assert (message["run_id"], message["event"]) == (run["run_id"], "found")
    assert "this is hit 7" in message["text"]
    assert "this is hit 7\n" in message["snippet"]
    assert (answer["dropped"], answer["pruned"]) == (0, 0)
    assert ack(home, answer["lease"]) == {"ok": True, "acked": 1}


@pytest.mark.requirement("1.9", "F01")
def test_killed_between_take_and_ack(home: Home) -> None:
    """Injector: SIGKILL to the daemon while messages are handed out, and again right behind an ack."""
    home.start()
    watched(home, "for i in 1 2 3; do echo hit $i; done", session_id="s")
    before = take(home, "s")
    assert len(before["messages"]) == 3
    home.kill_daemon()
    home.start()
    lost = ack(home, before["lease"])
    assert (lost["error"], lost["reason"]) == ("gone", "lease_over")
    first = take(home, "s", 2)
    assert first["messages"] == before["messages"][:2]
    assert ack(home, first["lease"])["acked"] == 2
    home.kill_daemon()
    home.start()
    assert ack(home, first["lease"])["acked"] == 2, "the answer that may have been lost is given again"
    assert take(home, "s")["messages"] == before["messages"][2:]


@pytest.mark.requirement("1.9", "1.12", "F30")
def test_the_same_without_the_database(home: Home) -> None:
    """Injector: SIGKILL to the daemon, and the database is deleted."""
    home.start()
    watched(home, "for i in 1 2 3; do echo hit $i; echo é$i >&2; done", session_id="s")
    watched(home, "for i in 4 5; do echo hit $i; done", session_id="s")
    before = take(home, "s")
    assert len(before["messages"]) == 5
    home.kill_daemon()
    lose_the_database(home)
    home.start()
    first = take(home, "s", 1)
    assert first["messages"] == before["messages"][:1]
    assert ack(home, first["lease"])["acked"] == 1
    home.kill_daemon()
    lose_the_database(home)
    home.start()
    assert take(home, "s")["messages"] == before["messages"][1:]


@pytest.mark.requirement("1.9", "0.7")
def test_pruned_runs_take_their_messages_along(home: Home) -> None:
    home.start()
    run_id = watched(home, "for i in 1 2 3; do echo hit $i; done", session_id="s")["run_id"]
    with client(home) as calls:
        until(lambda: calls.call_checked("runs.prune", keep_bytes=0)["runs"] == [run_id], "its keeper to be gone")
    home.kill_daemon()
    home.start()
    answer = take(home, "s")
    assert (answer["messages"], answer["pruned"]) == ([], 3)
    assert ack(home, answer["lease"])["acked"] == 0
    assert take(home, "s") == {"ok": True, "messages": [], "lease": None, "dropped": 0, "pruned": 0}


@pytest.mark.requirement("1.9", "F25")
def test_a_damaged_journal_of_acks(home: Home) -> None:
    """Injector: the journal's only record is overwritten while no daemon runs."""
    home.start()
    watched(home, "echo hit 1", session_id="s")
    lease = take(home, "s")["lease"]
    assert ack(home, lease)["acked"] == 1
    home.kill_daemon()
    journal = Path(home.path / "acks" / "backlog.journal")
    journal.write_bytes(b"x" * (journal.stat().st_size - 1) + b"\n")
    home.start()
    assert len(take(home, "s")["messages"]) == 1, "better twice than never"
    assert list(journal.parent.glob("backlog.journal.broken-*"))
    assert b"cannot be read" in (home.base / "serve.err").read_bytes()
