"""What every store of runs must do, as tests: for pytest, on whatever store you have made."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from limpet.model.items import Item, Place
from limpet.model.run import Phase, Run, Stream
from limpet.model.tombstone import Tombstone
from limpet.store.runs import RunFilter, RunStore


def make_run(number: int, **fields: Any) -> Run:
    """A run whose id sorts by its number."""
    run = Run(run_id=f"{number:013d}", command=f"echo {number}", created_at=number)
    return msgspec.structs.replace(run, **fields)


def make_output(seq: int, stream: str = "stdout") -> Item:
    return Item(seq=seq, ts=seq, kind="output", stream=stream, start=seq * 10, end=seq * 10 + 10)


class RunStoreSuite:
    """Subclass it as `class TestMine(RunStoreSuite)`, with an `open_store` that makes an empty store.

    Each test runs twice: reads see what was put whether it is committed or not.
    """

    def open_store(self, directory: Path) -> RunStore:
        """An empty store; it may keep its files in the directory."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[RunStore]:
        store = self.open_store(tmp_path)
        yield store
        store.close()

    @pytest.fixture(params=["fresh", "committed"])
    def settle(self, request: pytest.FixtureRequest, store: RunStore) -> Callable[[], None]:
        """Called between what is written and what is read."""
        return store.flush if request.param == "committed" else lambda: None

    def test_knows_a_run_as_it_was_put_last(self, store: RunStore, settle: Callable[[], None]) -> None:
        first = make_run(1, labels=["web", "é"], env={"A": "x\ny"}, argv=["sh", "-c", "true"], key="k")
        store.put(first, "running")
        settle()
        assert store.get(first.run_id) == first
        last = make_run(1, phase=Phase.ENDED, exit_code=0, streams={"stdout": Stream(bytes=5, holes=((1, 2),))})
        store.put(last, "completed")
        settle()
        assert store.get(first.run_id) == last
        assert store.count() == 1
        assert store.get(make_run(2).run_id) is None

    def test_finds_a_run_by_its_key(self, store: RunStore, settle: Callable[[], None]) -> None:
        store.put(make_run(3, key="twice"), "running")
        store.put(make_run(2, key="twice"), "running")
        settle()
        store.put(make_run(4, key="twice"), "running")
        found = store.find_key("twice")
        assert found is not None
        assert found.run_id == make_run(2).run_id
        store.forget(found.run_id)
        settle()
        assert store.find_key("twice") == make_run(3, key="twice")
        assert store.find_key("never") is None

    def test_gives_items_in_order(self, store: RunStore, settle: Callable[[], None]) -> None:
        run = make_run(1)
        status = Item(seq=2, ts=2, kind="status", event="running", data={"pid": 7, "why": "naïve"})
        hit = Item(seq=4, ts=4, kind="event", stream="stdout", event="ready", data={"span": {"start": 1}})
        items = [make_output(1), status, make_output(3, "stderr"), hit, make_output(5), make_output(6)]
        store.put(run, "running", items[:2])
        settle()
        store.put(run, "running", items[2:])
        settle()
        store.put(make_run(2), "running", [make_output(1)])
        assert store.items(run.run_id, 0, 100) == items
        assert store.items(run.run_id, 2, 2) == items[2:4]
        assert store.items(run.run_id, 6, 100) == []
        assert store.items(run.run_id, 0, 2, "stdout") == [items[0], items[4]]
        assert store.items(run.run_id, 1, 100, "stderr") == [items[2]]
        assert store.items(run.run_id, 0, 100, "pty") == []
        assert store.items(make_run(9).run_id, 0, 100) == []

    def test_gives_the_hits_of_all_runs(self, store: RunStore, settle: Callable[[], None]) -> None:
        def hit(seq: int, stream: str | None = "stdout") -> Item:
            return Item(seq=seq, ts=seq, kind="event", stream=stream, start=3, end=7, event="e", data={"tail": [seq]})

        for number in (3, 1, 2):
            store.put(make_run(number), "running", [make_output(1), hit(2), hit(3, None)])
            settle()
            store.put(make_run(number), "running", [hit(2), make_output(4), hit(5)])
        settle()
        first, second, third = (make_run(number).run_id for number in (1, 2, 3))
        everything = [(run_id, hit(seq)) for run_id in (first, second, third) for seq in (2, 5)]
        assert store.hits(("", 0), 100) == everything
        assert store.hits((first, 2), 2) == everything[1:3]
        assert store.hits((second, 5), 100) == everything[4:]
        assert store.hits((third, 5), 100) == []
        store.forget(second)
        store.tombstone(first, None, None, 1)
        settle()
        assert store.hits(("", 0), 100) == everything[4:]
        store.put(make_run(2), "running", [hit(9)])
        settle()
        assert store.hits(("", 0), 100) == [(second, hit(9)), *everything[4:]]

    def test_takes_items_in_once(self, store: RunStore, settle: Callable[[], None]) -> None:
        run = make_run(1)
        items = [make_output(seq) for seq in range(1, 6)]
        store.put(run, "running", items[:3], Place(keeper_records=3))
        settle()
        for again in (items[:3], items[1:5], items):
            store.put(run, "running", again, Place(keeper_records=5))
        settle()
        assert store.items(run.run_id, 0, 100) == items

    def test_keeps_the_place(self, store: RunStore, settle: Callable[[], None]) -> None:
        run = make_run(1)
        place = Place(attempt=2, keeper_bytes=1 << 40, keeper_chain=0xFFFFFFFF, keeper_records=9, daemon_records=1)
        store.put(run, "running")
        settle()
        assert store.place(run.run_id) is None
        store.put(run, "running", (), place)
        settle()
        store.put(run, "completed")
        settle()
        assert store.place(run.run_id) == place
        assert store.place(make_run(2).run_id) is None

    def test_lists_the_newest_first(self, store: RunStore, settle: Callable[[], None]) -> None:
        runs = [make_run(number) for number in range(20)]
        for run in runs[::2]:
            store.put(run, "running")
        settle()
        for run in runs[1::2]:
            store.put(run, "running")
        assert asyncio.run(store.list(RunFilter())) == runs[::-1]
        assert asyncio.run(store.list(RunFilter(limit=3))) == runs[:16:-1]
        assert asyncio.run(store.list(RunFilter(before=runs[5].run_id, limit=2))) == [runs[4], runs[3]]

    def test_lists_what_fits(self, store: RunStore, settle: Callable[[], None]) -> None:
        web = make_run(1, session_id="s", dialect="shell", labels=["web", "w"], command="serve 'x'% now")
        job = make_run(2, session_id="s", dialect="sessions", command="SERVE")
        other = make_run(3, session_id="t", dialect="shell", labels=["we"])
        for run in (web, job, other):
            store.put(run, "running")
        settle()
        store.put(other, "failed")

        def listed(**wanted: Any) -> list[Run]:
            return asyncio.run(store.list(RunFilter(**wanted)))

        assert listed(session_id="s") == [job, web]
        assert listed(status="running") == [job, web]
        assert listed(status="failed") == [other]
        assert listed(dialect="shell") == [other, web]
        assert listed(label="web") == [web]
        assert listed(text="serve 'x'%") == [web]
        assert listed(session_id="s", dialect="shell", label="w", text="now", before=other.run_id) == [web]
        assert listed(session_id="s", status="failed") == []

    def test_knows_which_are_over(self, store: RunStore, settle: Callable[[], None]) -> None:
        over = make_run(1, phase=Phase.ENDED, streams={"stdout": Stream(open=False)})
        store.put(over, "completed")
        store.put(make_run(2, phase=Phase.ENDED, streams={"stdout": Stream()}), "completed")
        store.put(make_run(3, phase=Phase.ENDED, survivors=[17]), "killed")
        store.put(make_run(4, phase=Phase.RUNNING), "running")
        settle()
        assert store.known_over() == {over.run_id}
        store.put(make_run(1), "queued")
        assert store.known_over() == set()

    def test_forgets_at_once_and_begins_anew(self, store: RunStore, settle: Callable[[], None]) -> None:
        run = make_run(1, key="k", labels=["l"])
        store.put(run, "running", [make_output(1), make_output(2)], Place(keeper_records=2))
        store.put(make_run(2), "running", [make_output(1)])
        settle()
        store.forget(run.run_id)
        for _ in range(2):
            assert store.get(run.run_id) is None
            assert store.find_key("k") is None
            assert store.place(run.run_id) is None
            assert store.items(run.run_id, 0, 100) == []
            assert asyncio.run(store.list(RunFilter(label="l"))) == []
            assert store.count() == 1
            settle()
        store.put(make_run(1), "queued", [make_output(2, "stderr")])
        settle()
        assert store.items(run.run_id, 0, 100) == [make_output(2, "stderr")]
        assert store.place(run.run_id) is None
        assert asyncio.run(store.list(RunFilter(label="l"))) == []
        assert store.items(make_run(2).run_id, 0, 100) == [make_output(1)]

    def test_keeps_a_tombstone(self, store: RunStore, settle: Callable[[], None]) -> None:
        for number in (2, 1):
            store.put(make_run(number, key="k"), "completed", [make_output(1)])
        settle()
        for number in (2, 1):
            store.tombstone(make_run(number).run_id, "k", "digest", 1000 + number)
        store.tombstone(make_run(3).run_id, None, None, 5)
        settle()
        stone = Tombstone(run_id=make_run(1).run_id, key="k", request_digest="digest", pruned_at=1001)
        assert store.find_tombstone(run_id=stone.run_id) == stone
        assert store.find_tombstone(key="k") == stone
        assert store.find_tombstone(run_id=make_run(3).run_id) is not None
        assert store.find_tombstone(run_id=make_run(4).run_id) is None
        assert store.find_tombstone(key="other") is None
        assert store.get(stone.run_id) is None
        assert store.find_key("k") is None
        assert store.items(stone.run_id, 0, 100) == []
        assert store.count() == 0

    def test_is_empty_when_cleared(self, store: RunStore, settle: Callable[[], None]) -> None:
        run = make_run(1, key="k", phase=Phase.ENDED)
        store.put(run, "completed", [make_output(1)], Place())
        store.tombstone(make_run(2).run_id, "old", None, 1)
        settle()
        store.clear()
        for _ in range(2):
            assert store.count() == 0
            assert store.get(run.run_id) is None
            assert store.find_key("k") is None
            assert store.items(run.run_id, 0, 100) == []
            assert store.find_tombstone(key="old") is None
            assert store.known_over() == set()
            settle()
        store.put(run, "completed", [make_output(1)])
        settle()
        assert asyncio.run(store.list(RunFilter())) == [run]
        assert store.items(run.run_id, 0, 100) == [make_output(1)]

    def test_is_well(self, store: RunStore) -> None:
        store.put(make_run(1), "running")
        store.flush()
        assert store.trouble is None
        assert not store.needs_rebuild
        store.close()
        store.close()
