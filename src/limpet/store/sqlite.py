"""The store of runs in SQLite: puts go into memory and are committed behind, reads go through both."""

import asyncio
import contextlib
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path

import apsw
import msgspec

from limpet.model.items import Item, Place
from limpet.model.run import Run
from limpet.model.tombstone import Tombstone
from limpet.store import rows
from limpet.store.commits import Commits, refusal
from limpet.store.database import DAMAGE, Database
from limpet.store.pending import Pending, changed, hits, look
from limpet.store.runs import RunFilter, fits, is_settled


class SqliteRunStore:
    """`<home>/memory/sessions.db`. A refusal `store_busy` when another process holds all of it at the opening.

    `on_news` is called, in any thread, whenever there is trouble, or is none any more, or `needs_rebuild` changes. It
    is not to raise, nor to ask the store for anything but these.
    """

    def __init__(
        self,
        path: Path,
        *,
        busy_timeout_s: float = 5.0,
        wal_limit_bytes: int = 256 << 20,
        on_news: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        try:
            self.database = Database(path, busy_timeout_s)
        except apsw.Error as error:
            raise refusal(error) from error
        self._commits = Commits(self.database, busy_timeout_s, wal_limit_bytes, on_news)

    @property
    def trouble(self) -> str | None:
        return self._commits.trouble

    @property
    def needs_rebuild(self) -> bool:
        return self._commits.needs_rebuild

    @property
    def set_aside_as(self) -> Path | None:
        """Where the last database is that was damaged or of another version, if this store met one."""
        return self.database.set_aside_as

    @property
    def wal_bytes(self) -> int:
        return self.database.wal_bytes

    # Writing.

    def put(self, run: Run, status: str, items: Iterable[Item] = (), place: Place | None = None) -> None:
        self._commits.change(lambda fresh: fresh.put(run, status, items, place))

    def forget(self, run_id: str) -> None:
        self._commits.change(lambda fresh: fresh.forget(run_id))

    def tombstone(self, run_id: str, key: str | None, request_digest: str | None, pruned_at: int) -> None:
        stone = Tombstone(run_id=run_id, key=key, request_digest=request_digest, pruned_at=pruned_at)
        self._commits.change(lambda fresh: fresh.bury(stone))

    def clear(self) -> None:
        self._commits.clear()

    def flush(self) -> None:
        self._commits.flush()

    def close(self) -> None:
        self._commits.close()
        self.database.close()

    # Reading: the layers first, then the database, but for what the layers hide.

    @contextlib.contextmanager
    def _reading(self) -> Generator[Database]:
        """What cannot be read is damage; whatever else goes wrong is a refusal."""
        opening = self.database.openings
        try:
            yield self.database
        except (*DAMAGE, msgspec.DecodeError, UnicodeDecodeError) as error:
            self._commits.report_damage(opening)
            raise self._commits.damaged() from error
        except apsw.Error as error:
            raise refusal(error) from error

    def get(self, run_id: str) -> Run | None:
        sight = self._commits.seen(lambda layers: look(layers, run_id))
        if sight.run is not None or sight.is_whole:
            return sight.run
        with self._reading() as database:
            for (state,) in database.look_up("SELECT state FROM exec_run_states WHERE run_id = ?", run_id):
                return rows.decode_run(state)
        return None

    def place(self, run_id: str) -> Place | None:
        sight = self._commits.seen(lambda layers: look(layers, run_id))
        if sight.place is not None or sight.is_whole:
            return sight.place
        with self._reading() as database:
            for (place,) in database.look_up("SELECT place FROM exec_run_states WHERE run_id = ?", run_id):
                return rows.decode_place(place) if place is not None else None
        return None

    def find_key(self, key: str) -> Run | None:
        found = self._commits.seen(lambda layers: {run_id for layer in layers for run_id in layer.runs_with(key)})
        with self._reading() as database:
            found |= {run_id for (run_id,) in database.look_up("SELECT run_id FROM exec_runs WHERE key = ?", key)}
        # Some of them may be forgotten since.
        return next((run for run_id in sorted(found) if (run := self.get(run_id)) is not None), None)

    def items(self, run_id: str, after_seq: int, limit: int, stream: str | None = None) -> "list[Item]":
        def in_layers(layers: Sequence[Pending]) -> tuple[dict[int, Item], bool]:
            sight = look(layers, run_id)
            # The oldest last: what was there first counts.
            fresh = {item.seq: item for kept in sight.items[::-1] for item in kept.behind(after_seq, limit, stream)}
            return fresh, sight.is_whole

        found, is_whole = self._commits.seen(in_layers)
        if not is_whole:
            query, bindings = (rows.ITEMS, ()) if stream is None else (rows.OUTPUTS, (stream,))
            with self._reading() as database:
                known = database.look_up(query, run_id, after_seq, *bindings, limit)
                found |= {item.seq: item for item in map(rows.item_of, known)}
        return [found[seq] for seq in sorted(found)[:limit]]

    def hits(self, after: tuple[str, int], limit: int) -> "list[tuple[str, Item]]":
        found, hidden, is_below = self._commits.seen(lambda layers: hits(layers, after))
        if is_below:
            with self._reading() as database:
                known = database.scan(rows.HITS, *after, rows.json_list(hidden), limit)
                found = {(run_id, row[0]): rows.item_of(tuple(row)) for run_id, *row in known} | found
        return [(place[0], found[place]) for place in sorted(found)[:limit]]

    async def list(self, wanted: RunFilter) -> list[Run]:
        return await asyncio.to_thread(self._list, wanted)

    def _list(self, wanted: RunFilter) -> "list[Run]":
        found, shadowed, is_below = self._commits.seen(
            lambda layers: _in_layers(layers, lambda run, status: run if fits(run, status, wanted) else None)
        )
        if is_below:
            query, bindings = rows.list_query(wanted, rows.json_list(shadowed) if shadowed else None)
            with self._reading() as database:
                found |= {run_id: rows.decode_run(state) for run_id, state in database.scan(query, *bindings)}
        return [found[run_id] for run_id in sorted(found, reverse=True)[: wanted.limit]]

    def known_over(self) -> set[str]:
        found, shadowed, is_below = self._commits.seen(
            lambda layers: _in_layers(layers, lambda run, _: run if is_settled(run) else None)
        )
        settled = set(found)
        if is_below:
            with self._reading() as database:
                known = database.scan("SELECT run_id FROM exec_runs WHERE is_settled")
            settled |= {run_id for (run_id,) in known} - shadowed
        return settled

    def count(self) -> int:
        found, shadowed, is_below = self._commits.seen(lambda layers: _in_layers(layers, lambda run, _: run))
        if not is_below:
            return len(found)
        with self._reading() as database:
            ((known,),) = database.scan(rows.COUNT, rows.json_list(shadowed))
        return len(found) + known

    def find_tombstone(self, run_id: str | None = None, key: str | None = None) -> Tombstone | None:
        def in_layers(layers: Sequence[Pending]) -> tuple[dict[str, Tombstone], bool]:
            stones: dict[str, Tombstone] = {}
            for layer in layers:
                named = layer.stones_with(key) if run_id is None and key is not None else {run_id}
                stones = {name: layer.stones[name] for name in named if name in layer.stones} | stones
                if layer.is_cleared:
                    return stones, True
            return stones, False

        found, is_whole = self._commits.seen(in_layers)
        if not is_whole:
            query, name = (rows.STONE, run_id) if run_id is not None else (rows.STONE_BY_KEY, key)
            with self._reading() as database:
                known = [rows.stone_of(row) for row in database.look_up(query, name)]
            found = {stone.run_id: stone for stone in known} | found
        return found[min(found)] if found else None


def _in_layers(
    layers: Sequence[Pending], choose: Callable[[Run, str], Run | None]
) -> tuple[dict[str, Run], set[str], bool]:
    """The runs that are chosen, the ids of all that the database is not to be asked for, and whether it counts."""
    newest, is_below = changed(layers)
    chosen = {
        run_id: run
        for run_id, change in newest.items()
        if change.run is not None and (run := choose(change.run, change.status)) is not None
    }
    return chosen, set(newest), is_below
