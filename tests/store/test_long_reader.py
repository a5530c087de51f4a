"""Somebody reads the database for long: the WAL grows, that is told, and it is cut afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.model.items import Place
from limpet.store.sqlite import SqliteRunStore
from limpet.testing.run_store import make_output, make_run
from tests.store.news import News
from tests.store.other_process import other_process

WRITES = 100_000
LIMIT_BYTES = 2 << 20


@pytest.mark.requirement("F31")
def test_a_snapshot_over_many_writes(tmp_path: Path) -> None:
    """Injector: another process holds a read transaction open while 10^5 rows are written."""
    news = News()
    store = SqliteRunStore(tmp_path / "sessions.db", wal_limit_bytes=LIMIT_BYTES, on_news=news)
    run = make_run(1)
    store.put(run, "running")
    store.flush()
    count = "SELECT count(*) FROM exec_run_items"
    with other_process(store.path, f"BEGIN; {count}") as other:
        for first in range(1, WRITES + 1, 1000):
            items = [make_output(seq) for seq in range(first, first + 1000)]
            store.put(run, "running", items, Place(keeper_records=first + 999))
            store.flush()
        assert other.execute(count) == "[(0,)]"  # it still holds its snapshot
        assert store.wal_bytes > LIMIT_BYTES
        news.wait(lambda: store.trouble is not None)
        assert f"{store.path}-wal has" in (store.trouble or "")
        assert store.items(run.run_id, WRITES - 1, 10) == [make_output(WRITES)]
        other.execute("COMMIT")
        news.wait(lambda: store.trouble is None)  # though nothing is written any more
        assert store.wal_bytes <= LIMIT_BYTES
        assert other.execute(count) == f"[({WRITES},)]"
    store.close()


@pytest.mark.requirement("F31")
def test_without_a_reader_the_wal_stays_small(tmp_path: Path) -> None:
    """Injector: none: the same writes with nobody at the database, which the test above is to differ from."""
    store = SqliteRunStore(tmp_path / "sessions.db", wal_limit_bytes=LIMIT_BYTES * 4)
    largest = 0
    for first in range(1, WRITES + 1, 1000):
        store.put(make_run(1), "running", [make_output(seq) for seq in range(first, first + 1000)])
        store.flush()
        largest = max(largest, store.wal_bytes)
    assert largest <= LIMIT_BYTES * 4
    assert store.trouble is None
    store.close()
