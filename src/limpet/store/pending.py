"""Runs and items in memory: what waits for its commit, layer over layer, and all there is in a store without a disk."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from limpet.model.items import Item, Place, is_hit
from limpet.model.run import Run
from limpet.model.tombstone import Tombstone

_SEQ: Final = attrgetter("seq")


class ItemList:
    """Items of one run in order, found by seq, also those of one stream."""

    def __init__(self) -> None:
        self._all: list[Item] = []
        self._outputs: dict[str, list[Item]] = {}
        self._hits: list[Item] = []

    def add(self, item: Item) -> None:
        if not _insert(self._all, item) or item.stream is None:
            return
        if item.kind == "output":
            _insert(self._outputs.setdefault(item.stream, []), item)
        elif is_hit(item):
            _insert(self._hits, item)

    def behind(self, after_seq: int, limit: int, stream: str | None) -> list[Item]:
        """The first `limit` behind `after_seq`; with a stream, its output alone."""
        among = self._all if stream is None else self._outputs.get(stream, [])
        first = bisect_right(among, after_seq, key=_SEQ)
        return among[first : first + limit]

    def hits(self) -> Sequence[Item]:
        """Those of watchers."""
        return self._hits

    def __iter__(self) -> Iterator[Item]:
        return iter(self._all)


def _insert(among: list[Item], item: Item) -> bool:
    """Whether it was not there yet."""
    if not among or item.seq > among[-1].seq:
        among.append(item)
        return True
    place = bisect_left(among, item.seq, key=_SEQ)
    if among[place].seq == item.seq:
        return False
    among.insert(place, item)
    return True


class Change:
    """What is new of one run. Without a run: it is forgotten."""

    __slots__ = ("is_anew", "items", "place", "run", "status")

    def __init__(self) -> None:
        self.run: Run | None = None
        self.status = ""
        self.place: Place | None = None
        self.items = ItemList()
        # Whether nothing of what lies below counts.
        self.is_anew = False


class Pending:
    """A layer of changes, which are committed together."""

    def __init__(self) -> None:
        self.changes: dict[str, Change] = {}
        self.stones: dict[str, Tombstone] = {}
        # Whether nothing that lies below counts.
        self.is_cleared = False
        self._runs_by_key: dict[str, set[str]] = {}
        self._stones_by_key: dict[str, set[str]] = {}

    def __bool__(self) -> bool:
        return bool(self.changes or self.stones or self.is_cleared)

    def put(self, run: Run, status: str, items: Iterable[Item], place: Place | None) -> None:
        change = self.changes.get(run.run_id)
        if change is None:
            change = self.changes[run.run_id] = Change()
        change.run, change.status = run, status
        for item in items:
            change.items.add(item)
        if place is not None:
            change.place = place
        if run.key is not None:
            self._runs_by_key.setdefault(run.key, set()).add(run.run_id)

    def forget(self, run_id: str) -> None:
        before = self.changes.get(run_id)
        if before is not None and before.run is not None and before.run.key is not None:
            self._runs_by_key[before.run.key].discard(run_id)
        change = self.changes[run_id] = Change()
        change.is_anew = True

    def bury(self, stone: Tombstone) -> None:
        self.forget(stone.run_id)
        self.stones[stone.run_id] = stone
        if stone.key is not None:
            self._stones_by_key.setdefault(stone.key, set()).add(stone.run_id)

    def parts(self) -> "Iterator[Pending]":
        """The same, each run by itself behind what is no run's."""
        first = Pending()
        first.is_cleared, first.stones = self.is_cleared, self.stones
        yield first
        for run_id, change in self.changes.items():
            part = Pending()
            part.changes[run_id] = change
            yield part

    def runs_with(self, key: str) -> set[str]:
        return self._runs_by_key.get(key, set())

    def stones_with(self, key: str) -> set[str]:
        return self._stones_by_key.get(key, set())


class Sight(NamedTuple):
    """What layers say of one run; `is_whole`: what lies below them has nothing to add."""

    run: Run | None
    place: Place | None
    items: list[ItemList]
    is_whole: bool


def look(layers: Sequence[Pending], run_id: str) -> Sight:
    """One run through all layers, the newest first; its items the oldest first."""
    run: Run | None = None
    place: Place | None = None
    items: list[ItemList] = []
    for layer in layers:
        change = layer.changes.get(run_id)
        if change is not None:
            run = run or change.run
            place = place or change.place
            items.insert(0, change.items)
            if change.is_anew:
                return Sight(run, place, items, True)
        if layer.is_cleared:
            return Sight(run, place, items, True)
    return Sight(run, place, items, False)


def hits(layers: Sequence[Pending], after: tuple[str, int]) -> tuple[dict[tuple[str, int], Item], set[str], bool]:
    """The items of watchers behind that place, the runs for which nothing below counts, and whether the rest does."""
    found: dict[tuple[str, int], Item] = {}
    hidden: set[str] = set()
    newest, is_below = changed(layers)
    for run_id in newest:
        sight = look(layers, run_id)
        for kept in sight.items[::-1]:  # the oldest last: what was there first counts
            found |= {(run_id, item.seq): item for item in kept.hits() if (run_id, item.seq) > after}
        if sight.is_whole:
            hidden.add(run_id)
    return found, hidden, is_below


def changed(layers: Sequence[Pending]) -> tuple[dict[str, Change], bool]:
    """The newest change of every run, and whether what lies below all layers counts."""
    newest: dict[str, Change] = {}
    for layer in layers:
        newest = layer.changes | newest
        if layer.is_cleared:
            return newest, False
    return newest, True
