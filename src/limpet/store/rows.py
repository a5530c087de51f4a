"""The tables of the database and what stands in them: runs and items as rows, rows as runs and items."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from limpet.model.items import Item, Place
from limpet.model.run import Run
from limpet.model.tombstone import Tombstone
from limpet.store.pending import Pending
from limpet.store.runs import RunFilter, is_settled

Value = str | int | None

VERSION: Final = 3
# What people look at stands in columns of its own; the whole state is apart, so that a scan reads none of it.
SCHEMA: Final = f"""
CREATE TABLE exec_runs (
    run_id TEXT PRIMARY KEY,
    session_id TEXT NOT NULL,
    dialect TEXT NOT NULL,
    status TEXT NOT NULL,
    command TEXT NOT NULL,
    exit_code INTEGER,
    signal TEXT,
    ended_by TEXT,
    error_message TEXT,
    attempt INTEGER NOT NULL,
    labels TEXT NOT NULL,
    key TEXT,
    output_bytes INTEGER NOT NULL,
    created_at INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    is_settled INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX exec_runs_by_key ON exec_runs (key) WHERE key IS NOT NULL;
CREATE INDEX exec_runs_by_session ON exec_runs (session_id, run_id);
CREATE INDEX exec_runs_by_status ON exec_runs (status, run_id);
CREATE INDEX exec_runs_by_dialect ON exec_runs (dialect, run_id);
CREATE INDEX exec_runs_settled ON exec_runs (is_settled) WHERE is_settled;

CREATE TABLE exec_run_states (run_id TEXT PRIMARY KEY, state TEXT NOT NULL, place TEXT);

CREATE TABLE exec_run_labels (label TEXT NOT NULL, run_id TEXT NOT NULL, PRIMARY KEY (label, run_id)) WITHOUT ROWID;
CREATE TRIGGER exec_runs_label AFTER INSERT ON exec_runs WHEN new.labels <> '[]' BEGIN
    INSERT OR IGNORE INTO exec_run_labels SELECT value, new.run_id FROM json_each(new.labels);
END;
CREATE TRIGGER exec_runs_relabel AFTER UPDATE ON exec_runs WHEN old.labels <> new.labels BEGIN
    DELETE FROM exec_run_labels
        WHERE label IN (SELECT value FROM json_each(old.labels)) AND run_id = old.run_id;
    INSERT OR IGNORE INTO exec_run_labels SELECT value, new.run_id FROM json_each(new.labels);
END;
CREATE TRIGGER exec_runs_unlabel AFTER DELETE ON exec_runs WHEN old.labels <> '[]' BEGIN
    DELETE FROM exec_run_labels
        WHERE label IN (SELECT value FROM json_each(old.labels)) AND run_id = old.run_id;
END;

CREATE TABLE exec_run_items (
    run_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    ts INTEGER NOT NULL,
    kind TEXT NOT NULL,
    stream TEXT,
    start INTEGER,
    "end" INTEGER,
    event TEXT,
    data TEXT,
    PRIMARY KEY (run_id, seq)
) WITHOUT ROWID;
CREATE INDEX exec_run_items_by_stream ON exec_run_items (run_id, stream, seq) WHERE kind = 'output';
CREATE INDEX exec_run_items_hits ON exec_run_items (run_id, seq) WHERE kind = 'event' AND stream IS NOT NULL;

CREATE TABLE exec_run_tombstones (
    run_id TEXT PRIMARY KEY,
    key TEXT,
    request_digest TEXT,
    pruned_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX exec_run_tombstones_by_key ON exec_run_tombstones (key) WHERE key IS NOT NULL;
PRAGMA user_version = {VERSION};
"""

_RUN_COLUMNS: Final = (
    "run_id, session_id, dialect, status, command, exit_code, signal, ended_by, error_message, attempt, labels, key, "
    "output_bytes, created_at, started_at, finished_at, is_settled"
)
_CHANGING: Final = ", ".join(f"{name} = excluded.{name}" for name in _RUN_COLUMNS.split(", ")[1:])
_PUT_RUN: Final = f"""INSERT INTO exec_runs ({_RUN_COLUMNS}) VALUES ({", ".join("?" * 17)})
    ON CONFLICT (run_id) DO UPDATE SET {_CHANGING}"""
_PUT_STATE: Final = """INSERT INTO exec_run_states (run_id, state, place) VALUES (?, ?, ?)
    ON CONFLICT (run_id) DO UPDATE SET state = excluded.state, place = coalesce(excluded.place, place)"""
_PUT_ITEM: Final = """INSERT INTO exec_run_items (run_id, seq, ts, kind, stream, start, "end", event, data)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run_id, seq) DO NOTHING"""
_PUT_STONE: Final = "INSERT OR REPLACE INTO exec_run_tombstones VALUES (?, ?, ?, ?)"
_TABLES_OF_A_RUN: Final = ("exec_runs", "exec_run_states", "exec_run_items")
_TABLES: Final = (*_TABLES_OF_A_RUN, "exec_run_tombstones")

_ITEM_COLUMNS: Final = 'seq, ts, kind, stream, start, "end", event, data'
ITEMS: Final = f"SELECT {_ITEM_COLUMNS} FROM exec_run_items WHERE run_id = ? AND seq > ? ORDER BY seq LIMIT ?"
# Left to itself the planner takes the primary key, and passes over all that is of other streams.
OUTPUTS: Final = f"""SELECT {_ITEM_COLUMNS} FROM exec_run_items INDEXED BY exec_run_items_by_stream
    WHERE run_id = ? AND seq > ? AND kind = 'output' AND stream = ? ORDER BY seq LIMIT ?"""
# Those of watchers, over all runs but those in a JSON list.
HITS: Final = f"""SELECT run_id, {_ITEM_COLUMNS} FROM exec_run_items INDEXED BY exec_run_items_hits
    WHERE kind = 'event' AND stream IS NOT NULL AND (run_id, seq) > (?, ?)
    AND run_id NOT IN (SELECT value FROM json_each(?)) ORDER BY run_id, seq LIMIT ?"""
# All runs but those in a JSON list.
COUNT: Final = """SELECT (SELECT count(*) FROM exec_runs)
    - (SELECT count(*) FROM exec_runs WHERE run_id IN (SELECT value FROM json_each(?)))"""
_STONE_COLUMNS: Final = "run_id, key, request_digest, pruned_at"
STONE: Final = f"SELECT {_STONE_COLUMNS} FROM exec_run_tombstones WHERE run_id = ?"
STONE_BY_KEY: Final = f"SELECT {_STONE_COLUMNS} FROM exec_run_tombstones WHERE key = ? ORDER BY run_id LIMIT 1"

_encode: Final = msgspec.json.Encoder().encode
decode_run: Final = msgspec.json.Decoder(Run).decode
decode_place: Final = msgspec.json.Decoder(Place).decode
_decode_data: Final = msgspec.json.Decoder(dict[str, Any]).decode


def statements(batch: Pending) -> Iterator[tuple[str, Iterator[tuple[Value, ...]]]]:
    """What commits a layer: each statement with the rows it is for, in order."""
    if batch.is_cleared:
        for table in _TABLES:
            yield f"DELETE FROM {table}", iter([()])
    changes = batch.changes
    anew = [run_id for run_id, change in changes.items() if change.is_anew]
    if anew:
        for table in _TABLES_OF_A_RUN:
            yield f"DELETE FROM {table} WHERE run_id = ?", ((run_id,) for run_id in anew)
    yield _PUT_RUN, (_run_row(change.run, change.status) for change in changes.values() if change.run is not None)
    yield _PUT_STATE, (_state_row(change.run, change.place) for change in changes.values() if change.run is not None)
    yield _PUT_ITEM, (_item_row(run_id, item) for run_id, change in changes.items() for item in change.items)
    yield (
        _PUT_STONE,
        ((stone.run_id, stone.key, stone.request_digest, stone.pruned_at) for stone in batch.stones.values()),
    )


def _run_row(run: Run, status: str) -> tuple[Value, ...]:
    return (
        run.run_id,
        run.session_id,
        run.dialect,
        status,
        run.command,
        run.exit_code,
        run.signal,
        run.ended_by,
        run.error_message,
        run.attempt,
        _encode(run.labels).decode(),
        run.key,
        run.output_bytes,
        run.created_at,
        run.started_at,
        run.finished_at,
        int(is_settled(run)),
    )


def _state_row(run: Run, place: Place | None) -> tuple[Value, ...]:
    return run.run_id, _encode(run).decode(), _encode(place).decode() if place else None


def _item_row(run_id: str, item: Item) -> tuple[Value, ...]:
    data = None if item.data is None else _encode(item.data).decode()
    return run_id, item.seq, item.ts, item.kind, item.stream, item.start, item.end, item.event, data


def item_of(row: tuple[Any, ...]) -> Item:
    seq, ts, kind, stream, start, end, event, data = row
    known = None if data is None else _decode_data(data)
    return Item(seq=seq, ts=ts, kind=kind, stream=stream, start=start, end=end, event=event, data=known)


def stone_of(row: tuple[Any, ...]) -> Tombstone:
    run_id, key, request_digest, pruned_at = row
    return Tombstone(run_id=run_id, key=key, request_digest=request_digest, pruned_at=pruned_at)


def json_list(names: Iterable[str]) -> str:
    return _encode(list(names)).decode()


def list_query(wanted: RunFilter, shadowed: str | None) -> tuple[str, list[Value]]:
    """The id and state of the newest runs that are wanted, but for those in the JSON list `shadowed`."""
    conditions: list[str] = []
    bindings: list[Value] = []
    for condition, value in (
        ("label = ?", wanted.label),
        ("session_id = ?", wanted.session_id),
        ("status = ?", wanted.status),
        ("dialect = ?", wanted.dialect),
        ("run_id < ?", wanted.before),
        ("instr(command, ?) > 0", wanted.text),
        ("run_id NOT IN (SELECT value FROM json_each(?))", shadowed),
    ):
        if value is not None:
            conditions.append(condition)
            bindings.append(value)
    among = "exec_runs" if wanted.label is None else "exec_run_labels JOIN exec_runs USING (run_id)"
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    found = f"SELECT run_id FROM {among} {where} ORDER BY run_id DESC LIMIT ?"
    query = f"SELECT run_id, state FROM ({found}) JOIN exec_run_states USING (run_id) ORDER BY run_id DESC"
    return query, [*bindings, wanted.limit]
