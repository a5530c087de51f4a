"""The file of the database: its version and soundness, one connection that writes and two that read."""
# apsw's own types name one that Python 3.11 has not got yet.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import contextlib
import threading
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any, Final

import apsw

from limpet.store.rows import SCHEMA, VERSION

# A statement that is refused as such meets tables that are not ours any more.
DAMAGE: Final = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError, apsw.SQLError)
BUSY: Final = (apsw.BusyError, apsw.LockedError)
# As much of the WAL is kept from one checkpoint to the next.
_WAL_KEPT_BYTES: Final = 8 << 20


def sqlite_version() -> str:
    """The version of SQLite that is used: the one that apsw was built with, not Python's own."""
    return apsw.sqlite_lib_version()


def may_lose_wal(version: str) -> bool:
    """Whether that version may corrupt a database when a WAL is reset while another connection checkpoints."""
    return (3, 7, 0) <= tuple(int(part) for part in version.split(".")[:3]) < (3, 51, 3)


class Database:
    """Opens or makes it. A file that is no sound database of this version is set aside, and an empty one begun.

    One connection alone writes and checkpoints, so that no version of SQLite can lose a WAL that is reset.
    """

    def __init__(self, path: Path, busy_timeout_s: float) -> None:
        self.path = path
        self.set_aside_as: Path | None = None
        # How often it was opened: damage that was met before the last time is of another file.
        self.openings = 0
        self._busy_timeout_ms = int(busy_timeout_s * 1000)
        # A reader is used by one thread at a time: one for what is looked up, one for lists that take longer.
        self._locks = (threading.Lock(), threading.Lock())
        self._open()

    def _open(self) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            self._writer = _open_writer(self.path, self._busy_timeout_ms)
        except DAMAGE:
            self._move_aside()
            self._writer = _open_writer(self.path, self._busy_timeout_ms)
        self.openings += 1
        self.readers = tuple(self._open_reader() for _ in self._locks)

    def _open_reader(self) -> apsw.Connection:
        reader = apsw.Connection(str(self.path), flags=apsw.SQLITE_OPEN_READONLY)
        reader.set_busy_timeout(self._busy_timeout_ms)
        return reader

    def set_aside(self) -> None:
        """Goes on with an empty database."""
        with self._locks[0], self._locks[1]:
            self._close()
            self._move_aside()
            self._open()

    def _move_aside(self) -> None:
        """The WAL goes first: left behind, it would be taken for the new database's."""
        aside = self.path.with_name(f"{self.path.name}.broken-{time.time_ns()}")
        for suffix in ("-wal", ""):
            with contextlib.suppress(FileNotFoundError):
                self.path.with_name(self.path.name + suffix).rename(aside.with_name(aside.name + suffix))
        self.path.with_name(self.path.name + "-shm").unlink(missing_ok=True)
        self.set_aside_as = aside

    def look_up(self, query: str, *bindings: Any) -> list[tuple[Any, ...]]:
        """All rows of a query that is answered from an index."""
        with self._locks[0]:
            return self.readers[0].execute(query, bindings).fetchall()

    def scan(self, query: str, *bindings: Any) -> list[tuple[Any, ...]]:
        """The same, for a query that may take longer: what is looked up does not wait for it."""
        with self._locks[1]:
            return self.readers[1].execute(query, bindings).fetchall()

    @contextlib.contextmanager
    def transaction(self) -> Generator[apsw.Connection]:
        """All or nothing; waits for no other process. For one thread alone."""
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            yield self._writer
            self._writer.execute("COMMIT")
        finally:
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    @property
    def wal_bytes(self) -> int:
        try:
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def truncate_wal(self) -> None:
        """Moves all of the WAL into the database, if nobody reads what is older."""
        self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        with self._locks[0], self._locks[1]:
            self._close()

    def _close(self) -> None:
        """The writer last: it takes the WAL in."""
        for connection in (*self.readers, self._writer):
            connection.close(True)


def _open_writer(path: Path, busy_timeout_ms: int) -> apsw.Connection:
    path.touch(mode=0o600)
    connection = apsw.Connection(str(path))
    try:
        connection.set_busy_timeout(busy_timeout_ms)
        connection.execute(f"""
            PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA journal_size_limit = {_WAL_KEPT_BYTES};
        """).fetchall()
        version = connection.execute("PRAGMA user_version").get
        if not version and not connection.execute("SELECT count(*) FROM sqlite_schema").get:
            connection.execute(f"BEGIN IMMEDIATE; {SCHEMA} COMMIT;").fetchall()
        elif version != VERSION:
            raise apsw.FormatError(f"version {version}")
        elif connection.execute("PRAGMA quick_check(1)").get != "ok":
            raise apsw.CorruptError("quick_check found damage")
        connection.set_busy_timeout(0)
    except apsw.Error:
        connection.close(True)
        raise
    return connection
