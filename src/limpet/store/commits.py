"""The thread that commits what was put, in groups, and outlives whatever the disk and other processes do."""
# apsw's own types name one that Python 3.11 has not got yet.
# pyright: reportUnknownMemberType=false

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

import apsw

from limpet.model.errors import Refusal
from limpet.store.database import BUSY, DAMAGE, Database
from limpet.store.pending import Pending
from limpet.store.rows import statements

Answer = TypeVar("Answer")

# As long as a commit may wait for others to join it while nobody waits for it: longer than a short run takes.
_GATHER_S: Final = 0.05
# How soon a failed commit is tried again: at first, and at last.
_AGAIN_S: Final = (0.005, 0.5)
# What a journal that was forged can hold and no row: numbers of more than 64 bits, text that is none.
_UNWRITABLE: Final = (OverflowError, ValueError, TypeError)
# From which size on, and how often, a WAL that does not shrink by itself is looked after.
_TENDED_BYTES: Final = 16 << 20
_TEND_S: Final = 1.0


class Commits:
    """Two layers over the database: what is put, and what is being committed. `on_news`: see SqliteRunStore."""

    def __init__(
        self, database: Database, busy_timeout_s: float, wal_limit_bytes: int, on_news: Callable[[], None]
    ) -> None:
        self.trouble: str | None = None
        self.needs_rebuild = False
        self._database = database
        self._busy_timeout_s = busy_timeout_s
        self._wal_limit_bytes = wal_limit_bytes
        self._on_news = on_news
        self._changed = threading.Condition()
        self._fresh = Pending()
        self._writing = Pending()
        # Layers whose commit has begun, and those that are done with.
        self._begun = 0
        self._done = 0
        self._is_hurried = self._is_damaged = self._is_closing = False
        # What the last commit failed by, and the first of those in a row when.
        self._failure: Exception | None = None
        self._failing_since = 0.0
        self._tended_at = 0.0
        self._left_out: str | None = None
        self._thread = threading.Thread(target=self._write_on, name="limpet-store", daemon=True)
        self._thread.start()

    def change(self, change: Callable[[Pending], None]) -> None:
        """Changes what is to be committed next; a moment, whatever the disk does."""
        with self._changed:
            if self.needs_rebuild:
                return
            was_idle = not self._fresh
            change(self._fresh)
            if was_idle:
                self._changed.notify_all()

    def clear(self) -> None:
        """All that was before counts no more, damage included."""
        with self._changed:
            self.needs_rebuild = False
            self._fresh = Pending()
            self._fresh.is_cleared = True
            self._changed.notify_all()
        self._on_news()

    def seen(self, look: Callable[[tuple[Pending, Pending]], Answer]) -> Answer:
        """What the layers say, the newest first; to be asked before the database, which then knows no less."""
        with self._changed:
            if self.needs_rebuild:
                raise self.damaged()
            return look((self._fresh, self._writing))

    def flush(self) -> None:
        with self._changed:
            last = self._begun + bool(self._fresh)
            self._is_hurried = True
            self._changed.notify_all()
            while not self._changed.wait_for(lambda: self._done >= last or self._is_closing, self._busy_timeout_s):
                if self._failure is not None:
                    raise refusal(self._failure)
            if self.needs_rebuild:
                raise self.damaged()

    def close(self) -> None:
        """What cannot be committed in the time of a flush is lost to the projection, never to the files."""
        with contextlib.suppress(Refusal):
            self.flush()
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        self._thread.join()

    def report_damage(self, met_at_opening: int) -> None:
        """Drops what was put: it went on from what is lost. The thread sets the database aside."""
        with self._changed:
            if met_at_opening != self._database.openings or self._is_damaged:
                return
            self._is_damaged = self.needs_rebuild = True
            self._fresh, self._writing = Pending(), Pending()
            self._begun += 1
            self._done = self._begun
            self._changed.notify_all()
        self._on_news()

    def damaged(self) -> Refusal:
        message = "the database of runs was damaged and is being filled again from their files: ask again soon"
        return Refusal("unavailable", message, reason="store_damaged")

    # The thread.

    def _write_on(self) -> None:
        pause_s: float | None = None
        while True:
            with self._changed:
                self._changed.wait_for(self._is_due, pause_s)
                if not self._is_pressed():
                    self._changed.wait_for(self._is_pressed, _GATHER_S)
                if self._is_closing:
                    return
                self._is_hurried = False
                is_damaged = self._is_damaged
                if not is_damaged and not self._writing:
                    self._writing, self._fresh = self._fresh, Pending()
                    self._begun += 1
                batch = self._writing
            opening = self._database.openings
            try:
                if is_damaged:
                    self._database.set_aside()
                    self._is_damaged = False
                elif batch:
                    self._commit(batch)
                self._succeed(batch)
                pause_s = self._tend_wal()
            except (apsw.Error, OSError) as error:
                if isinstance(error, DAMAGE) and not is_damaged:
                    self.report_damage(opening)
                else:
                    pause_s = self._fail(error)

    def _is_due(self) -> bool:
        return self._is_pressed() or (self._failure is None and bool(self._fresh))

    def _is_pressed(self) -> bool:
        return self._is_hurried or self._is_closing or (self._is_damaged and self._failure is None)

    def _commit(self, batch: Pending) -> None:
        try:
            self._write(batch)
        except _UNWRITABLE:
            for part in batch.parts():
                try:
                    self._write(part)
                except _UNWRITABLE as error:
                    self._left_out = f"no row can hold run {', '.join(part.changes)}, which is left out: {error}"
                    self._tell(self._left_out)

    def _write(self, batch: Pending) -> None:
        with self._database.transaction() as writer:
            for statement, bindings in statements(batch):
                writer.executemany(statement, bindings)

    def _succeed(self, batch: Pending) -> None:
        with self._changed:
            if self._writing is batch:
                self._writing = Pending()
                self._done = self._begun
            self._failure = None
            self._changed.notify_all()

    def _fail(self, error: Exception) -> float:
        """How long to wait before the next try."""
        now = time.monotonic()
        if self._failure is None:
            self._failing_since = now
        self._failure = error
        failing_s = now - self._failing_since
        if not isinstance(error, BUSY) or failing_s >= self._busy_timeout_s:
            self._tell(refusal(error).message)
        return min(max(failing_s, _AGAIN_S[0]), _AGAIN_S[1])

    def _tend_wal(self) -> float | None:
        """A reader of another process can keep the WAL from being taken in: it grows until that one is gone."""
        tended_bytes = min(_TENDED_BYTES, self._wal_limit_bytes)
        size = self._database.wal_bytes
        if size > tended_bytes and time.monotonic() >= self._tended_at + _TEND_S:
            with contextlib.suppress(*BUSY):
                self._database.truncate_wal()
            self._tended_at = time.monotonic()
            size = self._database.wal_bytes
        over = (
            f"{self._database.path}-wal has {size} bytes: end the program that has been reading the database for long"
        )
        self._tell(over if size > self._wal_limit_bytes else self._left_out)
        return _TEND_S if size > tended_bytes else None

    def _tell(self, trouble: str | None) -> None:
        is_news = (trouble is None) != (self.trouble is None)
        self.trouble = trouble
        if is_news:
            self._on_news()


def refusal(error: Exception) -> Refusal:
    """Why the database does not take or answer, and what to do."""
    if isinstance(error, BUSY):
        message = "another process holds the database of runs: ask again when it has let go"
        return Refusal("unavailable", message, reason="store_busy")
    if isinstance(error, apsw.FullError):
        message = "the disk of the database of runs is full: make room on it"
        return Refusal("unavailable", message, reason="storage_full")
    message = f"the database of runs fails: {error}; runs go on, look after its disk"
    return Refusal("unavailable", message, reason="store_failing")
