"""Both stores of runs keep what every store of runs must."""
# apsw's own types name one that Python 3.11 has not got yet.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import apsw
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import precondition, rule

from limpet.store.memory import MemoryRunStore
from limpet.store.runs import RunStore
from limpet.store.sqlite import SqliteRunStore
from limpet.testing.run_store import RunStoreSuite
from limpet.testing.run_store_model import RunStoreModel


@pytest.mark.requirement("1.12")
class TestMemory(RunStoreSuite):
    def open_store(self, directory: Path) -> RunStore:
        del directory
        return MemoryRunStore()


@pytest.mark.requirement("1.12")
class TestSqlite(RunStoreSuite):
    def open_store(self, directory: Path) -> RunStore:
        return SqliteRunStore(directory / "sessions.db")


class MemoryModel(RunStoreModel):
    def open_store(self, directory: Path) -> RunStore:
        del directory
        return MemoryRunStore()


class SqliteModel(RunStoreModel):
    """Injector: BEGIN EXCLUSIVE by another connection, at any time: what is put waits in layers, and reads see it."""

    persists: ClassVar = True

    def __init__(self) -> None:
        super().__init__()
        self.other: apsw.Connection | None = None

    def open_store(self, directory: Path) -> RunStore:
        return SqliteRunStore(directory / "sessions.db")

    @precondition(lambda self: self.other is None)
    @rule()
    def hold(self) -> None:
        assert isinstance(self.store, SqliteRunStore)
        self.other = apsw.Connection(str(self.store.path))
        self.other.set_busy_timeout(5000)
        self.other.execute("BEGIN EXCLUSIVE")

    @precondition(lambda self: self.other is not None)
    @rule()
    def let_go(self) -> None:
        if self.other is not None:
            self.other.close()
            self.other = None

    @rule()
    def flush(self) -> None:
        self.let_go()
        super().flush()

    @rule()
    def reopen(self) -> None:
        self.let_go()
        super().reopen()

    def teardown(self) -> None:
        self.let_go()
        super().teardown()


TestMemoryModel = MemoryModel.TestCase
TestMemoryModel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

TestSqliteModel = SqliteModel.TestCase
TestSqliteModel.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
