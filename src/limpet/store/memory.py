"""A store of runs in memory: for tests and simulation, and whoever needs no list after the process's end."""

from collections.abc import Iterable

from limpet.model.items import Item, Place
from limpet.model.run import Run
from limpet.model.tombstone import Tombstone
from limpet.store.pending import Pending, hits, look
from limpet.store.runs import RunFilter, fits, is_settled


class MemoryRunStore:
    """One layer that nothing lies below; never in trouble."""

    def __init__(self) -> None:
        self.trouble: str | None = None
        self.needs_rebuild = False
        self._kept = Pending()

    def put(self, run: Run, status: str, items: Iterable[Item] = (), place: Place | None = None) -> None:
        self._kept.put(run, status, items, place)

    def get(self, run_id: str) -> Run | None:
        return look((self._kept,), run_id).run

    def find_key(self, key: str) -> Run | None:
        return self.get(min(self._kept.runs_with(key), default=""))

    async def list(self, wanted: RunFilter) -> list[Run]:
        found = (
            change.run
            for _, change in sorted(self._kept.changes.items(), reverse=True)
            if change.run is not None and fits(change.run, change.status, wanted)
        )
        return [run for run, _ in zip(found, range(wanted.limit), strict=False)]

    def place(self, run_id: str) -> Place | None:
        return look((self._kept,), run_id).place

    def items(self, run_id: str, after_seq: int, limit: int, stream: str | None = None) -> "list[Item]":
        known = self._kept.changes.get(run_id)
        return known.items.behind(after_seq, limit, stream) if known else []

    def hits(self, after: tuple[str, int], limit: int) -> "list[tuple[str, Item]]":
        found, _, _ = hits((self._kept,), after)
        return [(place[0], found[place]) for place in sorted(found)[:limit]]

    def known_over(self) -> set[str]:
        runs = (change.run for change in self._kept.changes.values())
        return {run.run_id for run in runs if run is not None and is_settled(run)}

    def count(self) -> int:
        return len(self._kept.changes)

    def forget(self, run_id: str) -> None:
        self._kept.forget(run_id)
        del self._kept.changes[run_id]

    def tombstone(self, run_id: str, key: str | None, request_digest: str | None, pruned_at: int) -> None:
        self._kept.bury(Tombstone(run_id=run_id, key=key, request_digest=request_digest, pruned_at=pruned_at))
        del self._kept.changes[run_id]

    def find_tombstone(self, run_id: str | None = None, key: str | None = None) -> Tombstone | None:
        if run_id is None:
            run_id = min(self._kept.stones_with(key or ""), default="")
        return self._kept.stones.get(run_id)

    def clear(self) -> None:
        self._kept = Pending()

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass
