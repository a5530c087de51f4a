"""What a read costs, in steps of SQLite's machine, which no noise touches: the same, however much there is."""
# apsw's own types name one that Python 3.11 has not got yet.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from limpet.model.run import Phase
from limpet.store import rows
from limpet.store.runs import RunFilter
from limpet.store.sqlite import SqliteRunStore
from limpet.testing.run_store import make_output, make_run


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteRunStore]:
    store = SqliteRunStore(tmp_path / "sessions.db")
    yield store
    store.close()


def steps(store: SqliteRunStore, read: Callable[[], object]) -> int:
    """How many instructions both readers go through."""
    read()  # once before, so that statements are prepared
    count = 0

    def step() -> bool:
        nonlocal count
        count += 1
        return False

    for reader in store.database.readers:
        reader.set_progress_handler(step, 1)
    read()
    for reader in store.database.readers:
        reader.set_progress_handler(None)
    assert count
    return count


@pytest.mark.requirement("1.4")
def test_a_page_of_items_costs_the_same_among_few_and_many(store: SqliteRunStore) -> None:
    """Ten items at the end, of all and of one stream, among 10^3 and 10^5; the stream's stand 1,000 others apart."""
    costs: list[list[int]] = []
    written = 0
    run_id = make_run(1).run_id
    for count in (1_000, 100_000):
        while written < count:
            batch = range(written + 1, written + 1001)
            store.put(make_run(1), "running", [make_output(n, "stderr" if n % 1000 == 0 else "stdout") for n in batch])
            written += 1000
        store.flush()
        costs.append(
            [
                steps(store, lambda end=written: store.items(run_id, end - 10, 10)),
                steps(store, lambda: store.items(run_id, 0, 10, "stdout")),
                steps(store, lambda end=written: store.items(run_id, end - 1000, 1, "stderr")),
                steps(store, lambda: store.items(run_id, 0, 1, "pty")),
            ]
        )
    assert costs[0] == costs[1]
    assert costs[0][2] < 100  # though 999 of the other stream lie before it
    assert len(store.items(run_id, 0, 10, "stderr")) == 10


def test_a_look_costs_the_same_among_few_and_many(store: SqliteRunStore) -> None:
    """By id, by key, and a page of a list with each filter that has an index."""

    def page(**wanted: Any) -> Callable[[], object]:
        return lambda: asyncio.run(store.list(RunFilter(limit=5, **wanted)))

    reads: list[Callable[[], object]] = [
        lambda: store.get(make_run(7).run_id),
        lambda: store.find_key("k7"),
        lambda: store.place(make_run(7).run_id),
        page(),
        page(before=make_run(50).run_id),
        page(session_id="s0"),
        page(status="failed"),
        page(dialect="tasks", before=make_run(90).run_id),
        page(label="rare"),
    ]
    costs: list[list[int]] = []
    for numbers in (range(100), range(100, 5000)):
        for number in numbers:
            is_rare = number < 10
            run = make_run(
                number,
                key=f"k{number}",
                session_id=f"s{number % 10}",
                dialect="tasks" if is_rare else "shell",
                labels=["rare"] if is_rare else ["web"],
                phase=Phase.ENDED,
            )
            store.put(run, "failed" if is_rare else "completed")
        store.flush()
        costs.append([steps(store, read) for read in reads])
    assert costs[0] == costs[1]


@pytest.mark.parametrize(
    ("wanted", "by"),
    [
        ({}, "SCAN exec_runs"),  # from the end of the primary key, as far as the limit
        ({"text": "make"}, "SCAN exec_runs"),  # the same; no index knows the middle of a word
        ({"before": "x"}, "SEARCH exec_runs USING PRIMARY KEY (run_id<?)"),
        ({"session_id": "s"}, "SEARCH exec_runs USING COVERING INDEX exec_runs_by_session (session_id=?)"),
        ({"status": "running", "before": "x"}, "exec_runs_by_status (status=? AND run_id<?)"),
        ({"dialect": "shell"}, "exec_runs_by_dialect (dialect=?)"),
        ({"label": "web", "before": "x"}, "SEARCH exec_run_labels USING PRIMARY KEY (label=? AND run_id<?)"),
        ({"session_id": "s", "text": "make"}, "SEARCH exec_runs USING INDEX exec_runs_by_session (session_id=?)"),
    ],
)
def test_a_list_goes_by_an_index_and_sorts_nothing(store: SqliteRunStore, wanted: dict[str, str], by: str) -> None:
    query, bindings = rows.list_query(RunFilter(**wanted), None)  # pyright: ignore[reportArgumentType]
    plan = [str(row[-1]) for row in store.database.scan(f"EXPLAIN QUERY PLAN {query}", *bindings)]
    assert any(by in line for line in plan), plan
    assert not any("TEMP B-TREE" in line for line in plan), plan
    assert [line for line in plan if "SCAN" in line and by not in line and "SCAN (" not in line] == [], plan
