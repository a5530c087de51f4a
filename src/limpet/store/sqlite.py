"""The store of runs in SQLite: one writer thread that commits in groups, one reading connection."""
# apsw's own types name one that Python 3.11 has not got yet.
# pyright: reportUnknownMemberType=false

import asyncio
import contextlib
import queue
import threading
import time
from pathlib import Path
from typing import Any, Final

import apsw
import msgspec

from limpet.model.run import Run
from limpet.store.runs import RunFilter

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS exec_runs (
    run_id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    dialect TEXT NOT NULL,
    status TEXT NOT NULL,
    command TEXT NOT NULL,
    labels TEXT NOT NULL,
    key TEXT,
    created_at INTEGER,
    is_settled INTEGER NOT NULL,
    run BLOB NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS exec_runs_by_key ON exec_runs (key) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS exec_runs_by_session ON exec_runs (session_id, run_id);
PRAGMA user_version = 1;
"""
_PUT: Final = "INSERT OR REPLACE INTO exec_runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
# As long as a commit may wait for others to join it while nobody waits for it: longer than a short run takes.
_GATHER_S: Final = 0.05

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Run)


class SqliteRunStore:
    """`<home>/memory/sessions.db`. A file that is no sound database is set aside, and an empty one begun."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._writer = _open_or_set_aside(path)
        self._reader = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._reader.set_busy_timeout(5000)
        # What has been put and is not committed yet: reads look here first.
        self._fresh: dict[str, tuple[Run, str]] = {}
        self._fresh_keys: dict[str, str] = {}
        self._lock = threading.Lock()
        self._wanted: queue.SimpleQueue[threading.Event | None] = queue.SimpleQueue()
        self._is_asked = False
        self._closing = False
        self._thread = threading.Thread(target=self._write_on, name="limpet-store", daemon=True)
        self._thread.start()

    def put(self, run: Run, status: str) -> None:
        with self._lock:
            self._fresh[run.run_id] = (run, status)
            if run.key is not None:
                self._fresh_keys[run.key] = run.run_id
            if self._is_asked:
                return
            self._is_asked = True
        self._wanted.put(None)

    def get(self, run_id: str) -> Run | None:
        with self._lock:
            fresh = self._fresh.get(run_id)
        if fresh is not None:
            return fresh[0]
        return self._one("SELECT run FROM exec_runs WHERE run_id = ?", run_id)

    def find_key(self, key: str) -> Run | None:
        with self._lock:
            run_id = self._fresh_keys.get(key)
        if run_id is not None and (run := self.get(run_id)) is not None:
            return run
        return self._one("SELECT run FROM exec_runs WHERE key = ?", key)

    def _one(self, query: str, *bindings: Any) -> Run | None:
        for (row,) in self._reader.execute(query, bindings):
            return _decoder.decode(row)
        return None

    async def list(self, wanted: RunFilter) -> list[Run]:
        await asyncio.to_thread(self.flush)
        where: list[str] = []
        bindings: list[str | int] = []
        for column, value in (
            ("session_id = ?", wanted.session_id),
            ("status = ?", wanted.status),
            ("dialect = ?", wanted.dialect),
            ("run_id < ?", wanted.before),
            ("instr(command, ?) > 0", wanted.text),
            ("EXISTS (SELECT 1 FROM json_each(labels) WHERE value = ?)", wanted.label),
        ):
            if value is not None:
                where.append(column)
                bindings.append(value)
        condition = f"WHERE {' AND '.join(where)}" if where else ""
        query = f"SELECT run FROM exec_runs {condition} ORDER BY run_id DESC LIMIT ?"
        return [_decoder.decode(row) for (row,) in self._reader.execute(query, (*bindings, wanted.limit))]

    def known_over(self) -> set[str]:
        self.flush()
        return {run_id for (run_id,) in self._reader.execute("SELECT run_id FROM exec_runs WHERE is_settled")}

    def count(self) -> int:
        self.flush()
        return int(self._reader.execute("SELECT count(*) FROM exec_runs").get)

    def flush(self) -> None:
        """Returns once everything that was put before is committed."""
        done = threading.Event()
        self._wanted.put(done)
        done.wait()

    def close(self) -> None:
        if self._closing:
            return
        self._closing = True
        self.flush()
        self._thread.join()
        self._reader.close()
        self._writer.close()

    def _write_on(self) -> None:
        while True:
            waiter = self._wanted.get()
            if waiter is None:
                with contextlib.suppress(queue.Empty):
                    waiter = self._wanted.get(timeout=_GATHER_S)
            with self._lock:
                batch = list(self._fresh.values())
                self._is_asked = False
            if batch:
                self._commit(batch)
            if waiter is not None:
                waiter.set()
                if self._closing:
                    return

    def _commit(self, batch: "list[tuple[Run, str]]") -> None:
        with self._writer:
            self._writer.executemany(_PUT, (_row(run, status) for run, status in batch))
        with self._lock:
            for run, _ in batch:
                if self._fresh.get(run.run_id, (None,))[0] is run:
                    del self._fresh[run.run_id]
                    if run.key is not None:
                        self._fresh_keys.pop(run.key, None)


def _row(run: Run, status: str) -> tuple[str | int | bytes | None, ...]:
    is_settled = run.is_over and not run.output_open and not run.survivors
    labels = _encoder.encode(run.labels).decode()
    described = (run.run_id, run.session_id, run.dialect, status, run.command, labels, run.key, run.created_at)
    return (*described, int(is_settled), _encoder.encode(run))


def _open_or_set_aside(path: Path) -> apsw.Connection:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        return _open(path)
    except (apsw.NotADBError, apsw.CorruptError):
        path.rename(path.with_name(f"{path.name}.broken-{time.time_ns()}"))
        for suffix in ("-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
        return _open(path)


def _open(path: Path) -> apsw.Connection:
    path.touch(mode=0o600)
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(5000)
        connection.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
        if connection.execute("PRAGMA quick_check(1)").get != "ok":
            raise apsw.CorruptError("quick_check found damage")
        connection.execute(_SCHEMA)
    except apsw.Error:
        connection.close()
        raise
    return connection
