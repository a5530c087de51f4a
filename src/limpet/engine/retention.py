"""What is kept, and for how long: old runs that are over are removed, and remembered by their ids and keys alone."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import msgspec

from limpet.engine.home import Home
from limpet.model.ids import is_made_id, made_at_ms
from limpet.model.tombstone import Tombstone
from limpet.store import disk
from limpet.store.pruned import PrunedJournal
from limpet.store.run_directory import sync_directory
from limpet.store.runs import RunStore

_log: Final = logging.getLogger("limpet.engine")

DAY_MS: Final = 86_400_000
# How many runs are removed before others have a turn.
_AT_ONCE: Final = 100


class Pruned(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs went, or would go, and how much room they took."""

    runs: list[str]
    bytes: int


class Retention:
    """Removes runs, oldest first: told in the journal, then out of sight by a rename, then gone."""

    def __init__(
        self,
        home: Home,
        store: RunStore,
        is_live: Callable[[str], bool],
        before: Callable[[list[str]], Awaitable[None]],
        after: Callable[[list[str]], None],
    ) -> None:
        """`before` and `after` hear of the runs that are removed; the first can still keep them by an error."""
        self._home = home
        self._before = before
        self._after = after
        self._store = store
        self._is_live = is_live
        self._journal = PrunedJournal(home.pruned)
        # What runs that are over take: it does not change any more.
        self._sizes: dict[str, int] = {}
        self._turn = asyncio.Lock()

    def recall(self) -> set[str]:
        """Ends what an earlier engine had begun, and tells the store what it does not know (any more).

        Runs that are pruned and whose files stay for now are named: the disk did not take the record that they were.
        """
        disk.remove_tree(self._home.trash)
        left = {run_id for stone in self.tell_store() if self._home.run(run_id := stone.run_id).exists()}
        if not left:
            return left
        try:
            self._journal.sync()
        except OSError:
            return left
        for run_id in left:
            disk.remove_tree(self._home.run(run_id))
        return set()

    def tell_store(self) -> list[Tombstone]:
        """All tombstones; the store has them too from then on."""
        stones = self._journal.read()
        if stones and self._store.find_tombstone(run_id=stones[-1].run_id) is None:
            for stone in stones:
                self._bury(stone)
        return stones

    async def prune(self, now_ms: int, older_than_ms: int | None, keep_bytes: int | None, *, dry_run: bool) -> Pruned:
        """Removes what ended so long ago, then the oldest until no more than `keep_bytes` are taken by all runs."""
        async with self._turn:
            over = sorted(await asyncio.to_thread(self._store.known_over))
            over = [run_id for run_id in over if not self._is_live(run_id)]
            sizes = await asyncio.to_thread(self._measure, set(over))
            chosen = self._choose(over, sizes, now_ms, older_than_ms, keep_bytes)
            if not dry_run:
                for start in range(0, len(chosen), _AT_ONCE):
                    await self._remove(chosen[start : start + _AT_ONCE], now_ms)
            return Pruned(runs=chosen, bytes=sum(sizes.get(run_id, 0) for run_id in chosen))

    def _choose(
        self, over: list[str], sizes: dict[str, int], now_ms: int, older_than_ms: int | None, keep_bytes: int | None
    ) -> list[str]:
        total = sum(sizes.values())
        chosen: list[str] = []
        for run_id in over:
            is_old = older_than_ms is not None and self._ended_before(run_id, now_ms - older_than_ms)
            if is_old or (keep_bytes is not None and total > keep_bytes):
                chosen.append(run_id)
                total -= sizes.get(run_id, 0)
        return chosen

    def _ended_before(self, run_id: str, at_ms: int) -> bool:
        if made_at_ms(run_id) > at_ms:
            return False
        run = self._store.get(run_id)
        return run is not None and (run.finished_at or 0) <= at_ms

    def _measure(self, over: set[str]) -> dict[str, int]:
        """What each run takes on disk."""
        sizes: dict[str, int] = {}
        for path in self._home.runs.iterdir():
            if is_made_id(path.name):
                known = self._sizes.get(path.name) if path.name in over else None
                sizes[path.name] = _room_of(path) if known is None else known
        self._sizes = {run_id: size for run_id, size in sizes.items() if run_id in over}
        return sizes

    async def _remove(self, run_ids: list[str], now_ms: int) -> None:
        await self._before(run_ids)
        stones = [self._stone(run_id, now_ms) for run_id in run_ids]
        await asyncio.to_thread(self._journal.append, stones)
        disk.make_directory(self._home.trash, exist_ok=True)
        for stone in stones:
            self._bury(stone)
            with contextlib.suppress(FileNotFoundError):
                disk.rename(self._home.run(stone.run_id), self._home.trash / stone.run_id)
            _log.info("pruned %s", stone.run_id)
        self._after(run_ids)
        await asyncio.to_thread(self._empty_trash)

    def _stone(self, run_id: str, now_ms: int) -> Tombstone:
        run = self._store.get(run_id)
        key, digest = (run.key, run.request_digest) if run is not None else (None, None)
        return Tombstone(run_id=run_id, key=key, request_digest=digest, pruned_at=now_ms)

    def _bury(self, stone: Tombstone) -> None:
        self._store.tombstone(stone.run_id, stone.key, stone.request_digest, stone.pruned_at)

    def _empty_trash(self) -> None:
        disk.remove_tree(self._home.trash)
        # What a power cut brings back goes at the next start: the journal is on disk.
        with contextlib.suppress(OSError):
            sync_directory(self._home.runs)


def _room_of(path: Path) -> int:
    """What a directory takes on disk; holes take nothing."""
    total = 0
    for root, _, names in os.walk(path):
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                total += os.lstat(os.path.join(root, name)).st_blocks * 512  # noqa: PTH118  (Path costs more than stat)
    return total
