"""A damaged database is found, set aside as it is, and an empty one begun."""
# apsw's own types name one that Python 3.11 has not got yet.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from limpet.model.errors import Refusal
from limpet.model.items import Place
from limpet.store.database import may_lose_wal, sqlite_version
from limpet.store.rows import VERSION
from limpet.store.runs import RunFilter
from limpet.store.sqlite import SqliteRunStore
from limpet.testing.run_store import make_output, make_run
from tests.store.news import News

PAGE_BYTES = 4096
RUNS = 300


def fill(path: Path) -> None:
    """A database of more pages than a connection remembers (2 MB)."""
    store = SqliteRunStore(path)
    for number in range(RUNS):
        items = [make_output(seq) for seq in range(1, 160)]
        store.put(make_run(number, env={"PATH": "/bin" * 50}), "running", items, Place(keeper_records=159))
    store.close()


def overwrite(path: Path, pages: list[int]) -> None:
    noise = random.Random(1)
    with path.open("r+b") as file:
        for page in pages:
            file.seek(page * PAGE_BYTES)
            file.write(noise.randbytes(PAGE_BYTES))


def is_sound(path: Path) -> bool:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.pragma("quick_check") == "ok"
    except (apsw.CorruptError, apsw.NotADBError):
        return False
    finally:
        connection.close()


def assert_begins_anew(store: SqliteRunStore) -> None:
    assert store.count() == 0
    store.put(make_run(1), "running", [make_output(1)])
    store.flush()
    assert store.get(make_run(1).run_id) == make_run(1)
    assert store.path.stat().st_mode & 0o777 == 0o600
    store.close()
    assert is_sound(store.path)


@pytest.mark.requirement("F29")
@pytest.mark.parametrize("seed", range(6))
def test_random_pages_are_found_at_the_opening(tmp_path: Path, seed: int) -> None:
    """Injector: some pages of the closed file overwritten with noise; the first one in one case."""
    path = tmp_path / "sessions.db"
    fill(path)
    count = path.stat().st_size // PAGE_BYTES
    overwrite(path, [0] if seed == 0 else random.Random(seed).sample(range(1, count), 4))
    assert not is_sound(path)
    damaged = path.read_bytes()
    store = SqliteRunStore(path)
    assert store.set_aside_as is not None
    assert store.set_aside_as.name.startswith("sessions.db.broken-")
    assert store.set_aside_as.read_bytes() == damaged
    assert not store.needs_rebuild  # an empty one: whoever opens a store takes in what it does not know
    assert_begins_anew(store)


def by_get(store: SqliteRunStore) -> None:
    for number in range(RUNS):
        store.get(make_run(number).run_id)


def by_items(store: SqliteRunStore) -> None:
    for number in range(RUNS):
        store.items(make_run(number).run_id, 0, 100)


def by_list(store: SqliteRunStore) -> None:
    asyncio.run(store.list(RunFilter(text="nowhere")))


def by_put(store: SqliteRunStore) -> None:
    for number in range(RUNS):
        store.put(make_run(number, pid=1), "running", [make_output(160)])
    store.flush()


@pytest.mark.requirement("F29")
@pytest.mark.parametrize("meet", [by_get, by_items, by_list, by_put])
def test_damage_that_is_met_in_the_middle_of_work(tmp_path: Path, meet: Callable[[SqliteRunStore], None]) -> None:
    """Injector: all pages but the first overwritten while the store is open, and found sound."""
    path = tmp_path / "sessions.db"
    fill(path)
    news = News()
    store = SqliteRunStore(path, on_news=news)
    assert store.set_aside_as is None
    overwrite(path, list(range(1, path.stat().st_size // PAGE_BYTES)))
    with pytest.raises(Refusal) as refused:
        meet(store)
    assert (refused.value.code, refused.value.reason) == ("unavailable", "store_damaged")
    news.wait(lambda: store.needs_rebuild)
    # Half a run is worse than none: nothing counts until it is taken in from its beginning.
    store.put(make_run(7), "running", [make_output(40)], Place(keeper_records=40))
    for look in (lambda: store.get("x"), store.count, store.known_over, store.flush, lambda: store.find_key("k")):
        with pytest.raises(Refusal) as refused:
            look()
        assert refused.value.reason == "store_damaged"
    store.clear()
    assert not store.needs_rebuild
    assert store.place(make_run(7).run_id) is None
    store.flush()
    assert store.set_aside_as is not None
    assert not is_sound(store.set_aside_as)
    assert_begins_anew(store)


@pytest.mark.requirement("F29")
def test_a_state_that_cannot_be_decoded_is_damage(tmp_path: Path) -> None:
    """Injector: a row's text cut short by another connection; no structure of the file is wrong."""
    path = tmp_path / "sessions.db"
    fill(path)
    other = apsw.Connection(str(path))
    other.execute("UPDATE exec_run_states SET state = substr(state, 1, 50)")
    other.close()
    assert is_sound(path)
    news = News()
    store = SqliteRunStore(path, on_news=news)
    with pytest.raises(Refusal) as refused:
        store.get(make_run(1).run_id)
    assert refused.value.reason == "store_damaged"
    store.clear()
    assert_begins_anew(store)


@pytest.mark.requirement("F29")
def test_no_wal_of_a_damaged_database_gets_into_the_new_one(tmp_path: Path) -> None:
    """Injector: SIGKILL to a process that has written, so that its WAL stays; pages overwritten."""
    path = tmp_path / "sessions.db"
    fill(path)
    program = (
        "import os, pathlib, signal, sys\n"
        "from limpet.store.sqlite import SqliteRunStore\n"
        "from limpet.testing.run_store import make_run\n"
        "store = SqliteRunStore(pathlib.Path(sys.argv[1]))\n"
        "store.put(make_run(5, pid=1), 'running')\n"
        "store.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.with_name("sessions.db-wal").stat().st_size
    overwrite(path, list(range(100, path.stat().st_size // PAGE_BYTES)))
    store = SqliteRunStore(path)
    assert store.set_aside_as is not None
    assert_begins_anew(store)


@pytest.mark.requirement("F29", "1.12")
@pytest.mark.parametrize("version", [0, VERSION - 1, VERSION + 1])
def test_another_version_is_set_aside(tmp_path: Path, version: int) -> None:
    """Injector: `user_version` of another format, with a table of its own."""
    path = tmp_path / "sessions.db"
    old = apsw.Connection(str(path))
    old.execute(
        f"CREATE TABLE exec_runs (run_id TEXT); INSERT INTO exec_runs VALUES ('x'); PRAGMA user_version = {version}"
    )
    old.close()
    store = SqliteRunStore(path)
    assert store.set_aside_as is not None
    kept = apsw.Connection(str(store.set_aside_as))
    assert kept.execute("SELECT * FROM exec_runs").get == "x"
    kept.close()
    assert_begins_anew(store)


@pytest.mark.requirement("F32")
@pytest.mark.parametrize(
    ("version", "may"),
    [("3.6.23", False), ("3.7.0", True), ("3.40.1", True), ("3.51.2", True), ("3.51.3", False), ("3.54.1", False)],
)
def test_says_which_versions_may_lose_a_wal(version: str, may: bool) -> None:
    assert may_lose_wal(version) is may


@pytest.mark.requirement("F32")
def test_one_connection_alone_can_write_and_checkpoint(tmp_path: Path) -> None:
    """Injector: none needed: what would do harm with an old SQLite is not there, whichever one is used."""
    assert not may_lose_wal(sqlite_version())
    store = SqliteRunStore(tmp_path / "sessions.db")
    readers = store.database.readers
    assert len(readers) == 2
    for reader in readers:
        assert reader.readonly("main")
        with pytest.raises(apsw.ReadOnlyError):
            reader.execute("DELETE FROM exec_runs")
    store.close()
