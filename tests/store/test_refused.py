"""The database cannot be written for a while: puts wait in memory, reads answer, and it goes on by itself."""
# apsw's own types name one that Python 3.11 has not got yet.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import apsw
import pytest

from limpet.model.errors import Refusal
from limpet.model.items import Place
from limpet.store.runs import RunFilter
from limpet.store.sqlite import SqliteRunStore
from limpet.testing.run_store import make_output, make_run
from tests.faults.disks import MIB, small_tmpfs
from tests.store.news import News
from tests.store.other_process import other_process

# A put holds a lock for a moment: whoever runs an event loop does not notice. Scheduling on a busy machine included.
PUT_WITHIN_S = 1.0


def put_many(store: SqliteRunStore, numbers: range) -> float:
    """Puts runs with an item each; how long the slowest took."""
    slowest = 0.0
    for number in numbers:
        begun = time.monotonic()
        store.put(make_run(number, key=f"k{number}"), "running", [make_output(1)], Place(keeper_records=1))
        slowest = max(slowest, time.monotonic() - begun)
    return slowest


def assert_all_there(store: SqliteRunStore, count: int) -> None:
    assert store.count() == count
    newest = asyncio.run(store.list(RunFilter(limit=count)))
    assert newest == [make_run(number, key=f"k{number}") for number in reversed(range(count))]
    for run in newest:
        assert store.items(run.run_id, 0, 10) == [make_output(1)]
        assert store.find_key(run.key or "") == run


@pytest.mark.requirement("F28")
def test_a_locked_database_stops_nobody(tmp_path: Path) -> None:
    """Injector: BEGIN EXCLUSIVE in another process, until it is told to commit."""
    news = News()
    store = SqliteRunStore(tmp_path / "sessions.db", busy_timeout_s=0.3, on_news=news)
    put_many(store, range(50))
    store.flush()
    with other_process(store.path, "BEGIN EXCLUSIVE") as other:
        assert put_many(store, range(50, 200)) < PUT_WITHIN_S
        with pytest.raises(Refusal) as refused:
            store.flush()
        assert (refused.value.code, refused.value.reason) == ("unavailable", "store_busy")
        news.wait(lambda: store.trouble is not None)
        assert "another process" in (store.trouble or "")
        assert_all_there(store, 200)
        assert other.execute("SELECT count(*) FROM exec_runs") == "[(50,)]"
        other.execute("COMMIT")
        news.wait(lambda: store.trouble is None)
        store.flush()
        assert other.execute("SELECT count(*) FROM exec_runs") == "[(200,)]"
    assert_all_there(store, 200)
    store.close()


@pytest.mark.requirement("F28")
def test_a_database_that_another_process_keeps_to_itself_is_not_opened(tmp_path: Path) -> None:
    """Injector: PRAGMA locking_mode = EXCLUSIVE in another process: nobody else may even read."""
    SqliteRunStore(tmp_path / "sessions.db").close()
    keep = "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE; COMMIT"
    with other_process(tmp_path / "sessions.db", keep), pytest.raises(Refusal) as refused:
        SqliteRunStore(tmp_path / "sessions.db", busy_timeout_s=0.1)
    assert refused.value.reason == "store_busy"
    SqliteRunStore(tmp_path / "sessions.db").close()
    assert [path.name for path in tmp_path.iterdir()] == ["sessions.db"]


@pytest.mark.requirement("F28")
def test_closing_does_not_wait_for_ever(tmp_path: Path) -> None:
    """Injector: BEGIN EXCLUSIVE in another process that does not end before the store does."""
    store = SqliteRunStore(tmp_path / "sessions.db", busy_timeout_s=0.1)
    with other_process(store.path, "BEGIN EXCLUSIVE"):
        put_many(store, range(3))
        store.close()
        store.close()
    reopened = SqliteRunStore(store.path)
    assert reopened.count() == 0  # the fault held to the end
    reopened.close()


@pytest.mark.requirement("F16")
def test_a_full_disk_keeps_what_is_put_in_memory(tmp_path: Path) -> None:
    """Injector: a tmpfs that is filled while the store is open, and emptied again."""
    news = News()
    with small_tmpfs(tmp_path, 4 * MIB) as disk:
        store = SqliteRunStore(disk.at / "sessions.db", busy_timeout_s=0.2, on_news=news)
        put_many(store, range(20))
        store.flush()
        filler = disk.fill()
        assert put_many(store, range(20, 2000)) < PUT_WITHIN_S
        with pytest.raises(Refusal) as refused:
            store.flush()
        assert (refused.value.code, refused.value.reason) == ("unavailable", "storage_full")
        assert "make room" in (store.trouble or "")
        assert_all_there(store, 2000)
        filler.unlink()
        news.wait(lambda: store.trouble is None)
        store.flush()
        assert_all_there(store, 2000)
        store.close()
        sound = apsw.Connection(str(store.path), flags=apsw.SQLITE_OPEN_READONLY)
        assert sound.pragma("integrity_check") == "ok"
        sound.close()


@pytest.mark.requirement("F25")
@pytest.mark.parametrize("forged", [{"created_at": 1 << 70}, {"command": "\udc80"}])
def test_a_run_that_no_row_can_hold_is_left_out_alone(tmp_path: Path, forged: dict[str, Any]) -> None:
    """Injector: a state with a number of more than 64 bits, or with half a character, among sound ones."""
    store = SqliteRunStore(tmp_path / "sessions.db")
    put_many(store, range(20))
    store.put(make_run(30, **forged), "running", [make_output(1)])
    store.tombstone(make_run(31).run_id, None, None, 1)
    store.flush()
    assert_all_there(store, 20)
    assert store.find_tombstone(run_id=make_run(31).run_id) is not None
    assert make_run(30).run_id in (store.trouble or "")
    store.put(make_run(30), "running")
    store.flush()
    assert store.count() == 21
    store.close()
