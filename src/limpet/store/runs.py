"""What the engine asks of a store of runs; every store answers alike (limpet.testing.run_store says how)."""

from collections.abc import Iterable
from typing import Protocol

import msgspec

from limpet.model.items import Item, Place
from limpet.model.run import Run
from limpet.model.tombstone import Tombstone


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs a list is about; what is None does not narrow."""

    session_id: str | None = None
    status: str | None = None
    dialect: str | None = None
    label: str | None = None
    text: str | None = None
    before: str | None = None
    limit: int = 100


class RunStore(Protocol):
    """A projection of the runs' files: it can be lost, and is then filled again from them.

    Nothing here waits for a disk but `flush` and `close`; every read sees what was put, committed or not. Where the
    storage cannot answer, a read is refused as `unavailable` with a reason: `store_busy`, `storage_full`,
    `store_failing`, `store_damaged`.
    """

    @property
    def trouble(self) -> str | None:
        """Why what is put cannot be committed at present; it stays in memory, and is tried again by itself."""
        ...

    @property
    def needs_rebuild(self) -> bool:
        """Whether the storage was found damaged and is set aside.

        Until `clear`, which begins the new one, reads are refused and what is put is dropped: take in every run from
        its first record then.
        """
        ...

    def put(self, run: Run, status: str, items: Iterable[Item] = (), place: Place | None = None) -> None:
        """Remembers the run as it is now, its new items and how far its journals were taken in: all or nothing of it.

        An item whose seq is there already is the same item. Without a place, the one that is known stays.
        """
        ...

    def get(self, run_id: str) -> Run | None: ...

    def find_key(self, key: str) -> Run | None:
        """The run that was started with this key; the oldest, if files tell of several."""
        ...

    async def list(self, wanted: RunFilter) -> list[Run]:
        """The newest first."""
        ...

    def place(self, run_id: str) -> Place | None:
        """How far the run's journals were taken in."""
        ...

    def items(self, run_id: str, after_seq: int, limit: int, stream: str | None = None) -> "list[Item]":
        """The first items behind `after_seq`, in order; with a stream, its output alone.

        What this costs does not depend on how many items there are, nor on how many of others lie between.
        """
        ...

    def hits(self, after: tuple[str, int], limit: int) -> "list[tuple[str, Item]]":
        """The first items of watchers behind a run's id and a seq, over all runs, in this order. May take a while."""
        ...

    def known_over(self) -> set[str]:
        """The ids of all runs that need no looking after any more."""
        ...

    def count(self) -> int: ...

    def forget(self, run_id: str) -> None:
        """Takes away the run with its items, key and place; a later `put` of that id begins anew."""
        ...

    def tombstone(self, run_id: str, key: str | None, request_digest: str | None, pruned_at: int) -> None:
        """Forgets the run, and keeps in its place what is to be known of it, at once."""
        ...

    def find_tombstone(self, run_id: str | None = None, key: str | None = None) -> Tombstone | None:
        """The tombstone of that run or, with a key, of the oldest run that was started with it."""
        ...

    def clear(self) -> None:
        """Empties it, tombstones too, to be filled again."""
        ...

    def flush(self) -> None:
        """Returns once everything that was put before is committed; refused when that cannot be for long."""
        ...

    def close(self) -> None:
        """Writes what is still to be written, if that can be done in the time of a flush."""
        ...


def is_settled(run: Run) -> bool:
    """Whether the run needs no looking after any more."""
    return run.is_over and not run.output_open and not run.survivors and (run.sealed or run.keeper is None)


def fits(run: Run, status: str, wanted: RunFilter) -> bool:
    """Whether the run is among those wanted; the limit aside."""
    return (
        wanted.session_id in (None, run.session_id)
        and wanted.status in (None, status)
        and wanted.dialect in (None, run.dialect)
        and (wanted.label is None or wanted.label in run.labels)
        and (wanted.text is None or wanted.text in run.command)
        and (wanted.before is None or run.run_id < wanted.before)
    )
