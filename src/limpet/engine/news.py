"""Where a run's new items fan out: to the backlog of its session, and to every sink."""

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from limpet.config import Config, webhook_name
from limpet.engine import clock
from limpet.engine.backlog import Backlog, Taken
from limpet.engine.home import Home
from limpet.engine.live_run import LiveRun
from limpet.engine.messages import hit_id, words_of
from limpet.engine.sinks import ExecEventSink, Pump, SinkState
from limpet.model.errors import Refusal
from limpet.model.ids import check_id
from limpet.model.items import Item, is_hit
from limpet.store.acks import Acks, Mark, Record
from limpet.store.blobs import BlobStore
from limpet.store.runs import RunStore

_log: Final = logging.getLogger("limpet.engine")

_PAGE: Final = 1000
# How soon a store that could not be read is asked again.
_AGAIN_S: Final = 0.5


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """One hit as the backlog hands it out; `id` stays the same however often that is."""

    id: str
    ts: int
    run_id: str
    event: str
    text: str
    snippet: str


class News:
    """Hears of every item once it is in the store. Nothing here waits for a disk, a sink, or a reader."""

    def __init__(
        self, home: Home, config: Config, store: RunStore, blobs: BlobStore, sinks: Sequence[ExecEventSink]
    ) -> None:
        self._home = home
        self._config = config
        self._store = store
        self._blobs = blobs
        self._disk = ThreadPoolExecutor(1, "limpet-acks")
        self._acks = Acks(home.acks / "backlog.journal")
        self.backlog = Backlog(self._acks, config.backlog, self._disk)
        named = named_sinks(sinks)
        if config.sinks.webhook:
            from limpet.engine.webhook import WebhookSink  # its modules are of no use to others

            named += [(webhook_name(each), WebhookSink(each)) for each in config.sinks.webhook]
        self._pumps: list[Pump] = []
        self._sink_acks: dict[str, Acks] = {}
        self._new_sinks: list[Acks] = []
        for name, sink in named:
            if name in self._sink_acks:
                message = f"two sinks are named {name}: give each a `name` of its own"
                raise Refusal("invalid_argument", message, field="sinks")
            acks = self._sink_acks[name] = Acks(home.acks / f"sink-{name}.journal")
            self._pumps.append(Pump(name, sink, acks, store, blobs, config.sinks.queue))

    def open(self, known: Collection[str]) -> None:
        """Takes in what was acked of the runs that are there. May take a while."""
        kept = set(known)
        self._acks.open(kept.__contains__)
        self.backlog.recall()
        self._new_sinks = [acks for acks in self._sink_acks.values() if not acks.open(kept.__contains__)]

    def meet(self, known: Collection[str]) -> None:
        """Sinks that were not there before are told of what comes from now on, not of what was. May take a while."""
        if not self._new_sinks:
            return
        living = set(known) - self._store.known_over()
        runs = [run for run_id in living if (run := self._store.get(run_id)) is not None]
        record = Record(
            at=clock.now_ms(),
            marks={run.run_id: Mark(run.last_seq) for run in runs},
            since=max(known, default=""),
        )
        for acks in self._new_sinks:
            try:
                acks.put(record, sync=True)
            except OSError as error:
                _log.warning("%s: %s: after a restart its sink is met anew", acks.path, error)
                acks.assume(record)

    async def load(self) -> None:
        """Fills the backlog with the hits that were there before, once all living runs are taken over."""
        for pump in self._pumps:
            pump.begin()
        place = ("", 0)
        while True:
            try:
                page = await asyncio.to_thread(self._page, place)
            except Refusal as refusal:  # it is busy, or is being filled again
                _log.warning("the backlog waits for the database: %s", refusal)
                await asyncio.sleep(_AGAIN_S)
                continue
            if page is None:
                break
            place, hits = page
            for session_id, run_id, seq in hits:
                self.backlog.put(session_id, run_id, seq)
        self.backlog.is_loaded.set()

    def _page(self, place: tuple[str, int]) -> tuple[tuple[str, int], list[tuple[str, str, int]]] | None:
        """The hits of the next page that are not acked, with their sessions, and where it ended."""
        page = self._store.hits(place, _PAGE)
        if not page:
            return None
        sessions: dict[str, str | None] = {}
        hits: list[tuple[str, str, int]] = []
        for run_id, item in page:
            if self._acks.holds(run_id, item.seq):
                continue
            if run_id not in sessions:
                run = self._store.get(run_id)
                sessions[run_id] = run.session_id if run is not None else None
            session_id = sessions[run_id]
            if session_id is not None:
                hits.append((session_id, run_id, item.seq))
        return (page[-1][0], page[-1][1].seq), hits

    def hear(self, live: LiveRun, items: Sequence[Item], *, is_recalled: bool = False) -> None:
        """New items of a run, which are in the store. Of those that a rebuild brings up again, only hits are news."""
        for item in items:
            if is_hit(item):
                self.backlog.put(live.run.session_id, live.run.run_id, item.seq)
        if not self._pumps or not items:
            return
        is_old = is_recalled and items[0].seq == 1
        for item in items:
            if not is_old or is_hit(item):
                for pump in self._pumps:
                    pump.hear(live.run, item)

    async def take(self, session_id: str, most: int, wait_ms: int) -> tuple[Taken, list[Message]]:
        """The session's oldest free messages, under a lease."""
        taken = await self.backlog.take(session_id, most, wait_ms)
        return taken, await asyncio.to_thread(self._messages, taken) if taken.hits else []

    def _messages(self, taken: Taken) -> list[Message]:
        return [message for run_id, seq in taken.hits if (message := self._message(run_id, seq)) is not None]

    def _message(self, run_id: str, seq: int) -> Message | None:
        """None for one whose run was pruned this moment."""
        run = self._store.get(run_id)
        item = next(iter(self._store.items(run_id, seq - 1, 1)), None)
        if run is None or item is None or item.seq != seq:
            return None
        words = words_of(run, item, self._blobs)
        return Message(
            id=hit_id(run_id, seq),
            ts=item.ts,
            run_id=run_id,
            event=item.event or "",
            text=words.text,
            snippet=words.snippet,
        )

    async def will_prune(self, run_ids: Iterable[str]) -> None:
        """These are about to be removed: what is lost with them is put on disk first."""
        await self.backlog.will_prune(run_ids)

    def pruned(self, run_ids: Iterable[str]) -> None:
        """They are removed."""
        run_ids = list(run_ids)
        self.backlog.pruned(run_ids)
        for acks in self._sink_acks.values():
            acks.forget(run_ids)

    def standings(self) -> list[SinkState]:
        """How it goes with each sink."""
        return [pump.standing() for pump in self._pumps]

    async def close(self) -> None:
        """Lets sinks end what they are at, for a moment; what was not delivered is with the next engine."""
        for pump in self._pumps:
            pump.stop()
        await asyncio.gather(*(asyncio.to_thread(pump.leave) for pump in self._pumps))
        await asyncio.to_thread(self._disk.shutdown)


def named_sinks(sinks: Sequence[ExecEventSink]) -> list[tuple[str, ExecEventSink]]:
    """By its name the place of each is remembered: its `name`, else its class's, counted from the second on."""
    named: list[tuple[str, ExecEventSink]] = []
    counts: dict[str, int] = {}
    for sink in sinks:
        given = getattr(sink, "name", None)
        name = str(given or type(sink).__name__)
        if given is None:
            counts[name] = counts.get(name, 0) + 1
            name = name if counts[name] == 1 else f"{name}-{counts[name]}"
        named.append((check_id("name", name), sink))
    return named
