"""A store of runs against a plain model of one, through any sequence of calls that Hypothesis comes upon."""

import asyncio
import tempfile
from pathlib import Path
from typing import ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from limpet.model.items import Item, Place, is_hit
from limpet.model.run import Phase, Run
from limpet.model.tombstone import Tombstone
from limpet.store.runs import RunFilter, RunStore, fits, is_settled
from limpet.testing.run_store import make_run

_NUMBERS = range(1, 5)
_KEYS = {1: "a", 2: None, 3: "b", 4: "a"}
_LAST_SEQ = 12

_filters = st.builds(
    RunFilter,
    session_id=st.sampled_from([None, "s0", "s1"]),
    status=st.sampled_from([None, "running", "completed"]),
    label=st.sampled_from([None, "odd", "l0"]),
    text=st.sampled_from([None, "echo", "echo 3"]),
    before=st.sampled_from([None, make_run(3).run_id]),
    limit=st.integers(1, 5),
)


class Known(msgspec.Struct):
    """What the model knows of one run."""

    run: Run
    status: str
    items: dict[int, Item]
    place: Place | None = None


class RunStoreModel(RuleBasedStateMachine):
    """Subclass it with an `open_store`, and let pytest find its `TestCase`; `persists`: can be opened again."""

    persists: ClassVar = False

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, Known] = {}
        self.stones: dict[str, Tombstone] = {}
        # Items of a run that began anew differ from those it had.
        self.beginnings = 0
        self.store: RunStore
        self._directory = tempfile.TemporaryDirectory(prefix="limpet-store-")

    def open_store(self, directory: Path) -> RunStore:
        """The store in that directory, as it was closed there if it was."""
        raise NotImplementedError

    @initialize()
    def begin(self) -> None:
        self.store = self.open_store(Path(self._directory.name))

    def teardown(self) -> None:
        self.store.close()
        self._directory.cleanup()

    @rule(
        number=st.sampled_from(_NUMBERS),
        is_over=st.booleans(),
        labels=st.sampled_from([[], ["odd"], ["odd", "l0"]]),
        seqs=st.sets(st.integers(1, _LAST_SEQ)),
        records=st.none() | st.integers(0, 99),
    )
    def put(self, number: int, is_over: bool, labels: list[str], seqs: set[int], records: int | None) -> None:
        phase = Phase.ENDED if is_over else Phase.RUNNING
        run = make_run(number, session_id=f"s{number % 2}", key=_KEYS[number], labels=labels, phase=phase)
        status = "completed" if is_over else "running"
        if run.run_id not in self.runs:
            self.beginnings += 1
        known = self.runs.setdefault(run.run_id, Known(run, status, {}))
        known.run, known.status = run, status
        items = [known.items.setdefault(seq, self._make_item(seq)) for seq in seqs]
        place = None if records is None else Place(keeper_records=records)
        known.place = place or known.place
        self.store.put(run, status, items, place)

    def _make_item(self, seq: int) -> Item:
        if seq % 4 == 0:
            return Item(seq=seq, ts=self.beginnings, kind="event", stream="stdout", event="hit", data={"n": seq})
        return Item(seq=seq, ts=self.beginnings, kind="output", stream=("stdout", "stderr")[seq % 2], start=0, end=seq)

    @rule(number=st.sampled_from(_NUMBERS))
    def forget(self, number: int) -> None:
        run_id = make_run(number).run_id
        self.runs.pop(run_id, None)
        self.store.forget(run_id)

    @rule(number=st.sampled_from(_NUMBERS), pruned_at=st.integers(0, 9))
    def bury(self, number: int, pruned_at: int) -> None:
        run_id, key = make_run(number).run_id, _KEYS[number]
        self.runs.pop(run_id, None)
        self.stones[run_id] = Tombstone(run_id=run_id, key=key, request_digest="d", pruned_at=pruned_at)
        self.store.tombstone(run_id, key, "d", pruned_at)

    @rule()
    def clear(self) -> None:
        self.runs.clear()
        self.stones.clear()
        self.store.clear()

    @rule()
    def flush(self) -> None:
        self.store.flush()

    @rule()
    def reopen(self) -> None:
        if self.persists:
            self.store.close()
            self.store = self.open_store(Path(self._directory.name))

    @rule(wanted=_filters)
    def compare_lists(self, wanted: RunFilter) -> None:
        fitting = [known.run for known in self.runs.values() if fits(known.run, known.status, wanted)]
        fitting.sort(key=lambda run: run.run_id, reverse=True)
        assert asyncio.run(self.store.list(wanted)) == fitting[: wanted.limit]

    @rule(
        number=st.sampled_from(_NUMBERS),
        after=st.integers(0, _LAST_SEQ),
        limit=st.integers(1, _LAST_SEQ),
        stream=st.sampled_from([None, "stdout", "stderr"]),
    )
    def compare_items(self, number: int, after: int, limit: int, stream: str | None) -> None:
        run_id = make_run(number).run_id
        known = self.runs[run_id].items if run_id in self.runs else {}
        behind = [known[seq] for seq in sorted(known) if seq > after]
        if stream is not None:
            behind = [item for item in behind if item.kind == "output" and item.stream == stream]
        assert self.store.items(run_id, after, limit, stream) == behind[:limit]

    @rule(number=st.sampled_from((0, *_NUMBERS)), after=st.integers(0, _LAST_SEQ), limit=st.integers(1, _LAST_SEQ))
    def compare_hits(self, number: int, after: int, limit: int) -> None:
        place = (make_run(number).run_id, after)
        known = ((run_id, item) for run_id, known in self.runs.items() for item in known.items.values() if is_hit(item))
        behind = sorted(
            (each for each in known if (each[0], each[1].seq) > place), key=lambda hit: (hit[0], hit[1].seq)
        )
        assert self.store.hits(place, limit) == behind[:limit]

    @invariant()
    def agrees(self) -> None:
        store = self.store
        for number in _NUMBERS:
            run_id = make_run(number).run_id
            known = self.runs.get(run_id)
            assert store.get(run_id) == (known.run if known else None)
            assert store.place(run_id) == (known.place if known else None)
            assert store.find_tombstone(run_id=run_id) == self.stones.get(run_id)
        for key in ("a", "b", "c"):
            named = [run_id for run_id, known in sorted(self.runs.items()) if known.run.key == key]
            assert store.find_key(key) == (self.runs[named[0]].run if named else None)
            buried = [stone for _, stone in sorted(self.stones.items()) if stone.key == key]
            assert store.find_tombstone(key=key) == (buried[0] if buried else None)
        assert store.count() == len(self.runs)
        assert store.known_over() == {run_id for run_id, known in self.runs.items() if is_settled(known.run)}
