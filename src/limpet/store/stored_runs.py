"""Reads the database beside whoever writes it: never writes, never checkpoints, one moment at a time."""
# apsw's own types name one that Python 3.11 has not got yet.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import contextlib
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final, Protocol

import apsw

from limpet.model.items import Item, Place
from limpet.model.run import Run
from limpet.store import rows

_BUSY_TIMEOUT_MS: Final = 5000


class Stored(Protocol):
    """What verification asks of a store of runs."""

    def one_moment(self) -> contextlib.AbstractContextManager[None]:
        """All that is read inside is from one moment."""
        ...

    def get(self, run_id: str) -> Run | None: ...

    def place(self, run_id: str) -> Place | None: ...

    def items(self, run_id: str, after_seq: int, limit: int) -> list[Item]: ...


class StoredRuns:
    """What is committed of the runs. apsw.Error where there is no database that can be read."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self._connection.set_busy_timeout(_BUSY_TIMEOUT_MS)
        if self._connection.execute("PRAGMA user_version").get != rows.VERSION:
            raise apsw.NotADBError(f"{path} is not of version {rows.VERSION}")

    @contextlib.contextmanager
    def one_moment(self) -> Generator[None]:
        """All that is read inside is from one moment."""
        self._connection.execute("BEGIN")
        try:
            yield
        finally:
            self._connection.execute("COMMIT")

    def get(self, run_id: str) -> Run | None:
        """The run's state."""
        for (state,) in self._look_up("SELECT state FROM exec_run_states WHERE run_id = ?", run_id):
            return rows.decode_run(state)
        return None

    def place(self, run_id: str) -> Place | None:
        """How far its journals were taken in."""
        for (place,) in self._look_up("SELECT place FROM exec_run_states WHERE run_id = ?", run_id):
            return rows.decode_place(place) if place is not None else None
        return None

    def items(self, run_id: str, after_seq: int, limit: int) -> list[Item]:
        """Its items behind `after_seq`."""
        return [rows.item_of(row) for row in self._look_up(rows.ITEMS, run_id, after_seq, limit)]

    def _look_up(self, query: str, *bindings: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(query, bindings).fetchall()

    def close(self) -> None:
        self._connection.close()


@contextlib.contextmanager
def stored_runs(path: Path) -> Generator[StoredRuns | None]:
    """The database of a home; None where there is none, which is no fault: it is filled again from the files."""
    if not path.exists():
        yield None
        return
    stored = StoredRuns(path)
    try:
        yield stored
    finally:
        stored.close()
