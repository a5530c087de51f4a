"""Sinks: who is told of what runs do, each in a thread and at a pace of its own. None can slow a run or another."""

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

import msgspec

from limpet.engine import clock
from limpet.engine.messages import hit_id, words_of
from limpet.engine.reading import read_exactly
from limpet.engine.shown import item_text, snippet
from limpet.model.errors import Refusal
from limpet.model.items import Item, is_hit
from limpet.model.run import Run
from limpet.store.acks import Acks, Mark, Record
from limpet.store.blobs import BlobStore
from limpet.store.runs import RunStore

_log: Final = logging.getLogger("limpet.engine")

# How long a sink that raised for a hit is left alone before it gets the hit again: at first, and at most.
_AGAIN_S: Final = (0.5, 60.0)
# How long such a hit is tried in all.
GIVE_UP_S: Final = 86_400.0
# How long an engine that ends waits for a sink that is at work.
_LEAVE_WITHIN_S: Final = 1.0
_PAGE: Final = 500


class SinkEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What every event says: which item of which run it is (`id` names it for good), and what was said last."""

    id: str
    ts: int
    run_id: str
    session_id: str
    seq: int
    snippet: str


class StatusEvent(SinkEvent, frozen=True, kw_only=True, tag="status"):
    """A run's status is another now."""

    status: str
    exit_code: int | None = None
    signal: str | None = None
    ended_by: str | None = None


class WatchEvent(SinkEvent, frozen=True, kw_only=True, tag="watch"):
    """A watcher's pattern was found."""

    event: str
    text: str
    data: dict[str, Any]


class OutputEvent(SinkEvent, frozen=True, kw_only=True, tag="output"):
    """A run has said something: its bytes stand there in the stream."""

    stream: str
    start: int
    end: int
    text: str


class ExecEventSink(Protocol):
    """Somebody who is told. The three are called in one thread of the sink's own; `async` ones on a loop of its own.

    Each hit is given to `on_watch` at least once, also across restarts (for this the sink may have a `name`; its
    class's stands in), and again if it raises. Of status and output what does not fit into the queue is dropped.
    """

    def on_status(self, event: StatusEvent) -> object: ...

    def on_watch(self, event: WatchEvent) -> object: ...

    def on_output(self, event: OutputEvent) -> object: ...


class SinkState(msgspec.Struct, kw_only=True):
    """How it goes with one sink: what it was given, what was lost on the way, and why the last call failed."""

    name: str
    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    given_up: int = 0
    waiting: int = 0
    trouble: str | None = None


class Pump:
    """One sink's queue and thread. What is heard is put in by the event loop, without waiting for anything.

    Hits that do not fit are no more than remembered: they are fetched from the store when there is room.
    """

    def __init__(
        self, name: str, sink: ExecEventSink, acks: Acks, store: RunStore, blobs: BlobStore, queue: int
    ) -> None:
        self.state = SinkState(name=name)
        self._sink = sink
        self._acks = acks
        self._store = store
        self._blobs = blobs
        self._most = queue
        self._give_up_s = float(getattr(sink, "give_up_s", GIVE_UP_S))
        self._wants = frozenset(getattr(sink, "events", ("watch", "status", "output")))
        # With the number of each: the two are emptied in the order in which they were filled.
        self._hits: deque[tuple[int, Run, Item]] = deque()
        self._hints: deque[tuple[int, Run, Item]] = deque()
        self._number = 0
        # Whether the store may hold hits that are neither done nor in the queue; whether one came since last looked.
        self._is_behind = "watch" in self._wants
        self._has_missed = False
        self._said_dropped = 0
        self._turn = threading.Condition()
        self._stop = threading.Event()
        self._until_s = 0.0
        self._runner: asyncio.Runner | None = None
        self._thread = threading.Thread(target=self._run, name=f"limpet-sink-{name}", daemon=True)

    def begin(self) -> None:
        self._thread.start()

    def hear(self, run: Run, item: Item) -> None:
        """Takes an item in, if it is for this sink."""
        if is_hit(item):
            if "watch" not in self._wants:
                return
            with self._turn:
                if self._is_behind or len(self._hits) >= self._most:
                    self._is_behind = self._has_missed = True
                else:
                    self._hits.append((self._next_number(), run, item))
                self._turn.notify()
        elif item.kind != "event" and item.kind in self._wants:
            with self._turn:
                if len(self._hints) >= self._most:
                    self._hints.popleft()
                    self.state.dropped += 1
                self._hints.append((self._next_number(), run, item))
                self._turn.notify()

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def standing(self) -> SinkState:
        """How it goes with it now."""
        return msgspec.structs.replace(self.state, waiting=len(self._hits) + len(self._hints))

    def stop(self) -> None:
        """It gets what waits for it, if it is quick about that, and nothing more."""
        with self._turn:
            self._until_s = clock.passed_s() + _LEAVE_WITHIN_S
            self._stop.set()
            self._turn.notify()

    def leave(self) -> None:
        """Waits a moment for the thread's end; one that hangs is left behind."""
        if self._thread.ident is None:  # it never began
            return
        self._thread.join(2 * _LEAVE_WITHIN_S)
        if self._thread.is_alive():
            _log.warning("the sink %s does not come back from its last call: it is left behind", self.state.name)

    # In the sink's thread.

    def _run(self) -> None:
        try:
            while (entry := self._next()) is not None and self._give(*entry):
                pass
        except Exception:  # noqa: BLE001
            # Of the engine, not of the sink: what the sink raises is dealt with where it is called.
            self.state.trouble = "its thread has ended: see the log"
            _log.exception("the sink %s gets nothing any more", self.state.name)
        finally:
            if self._runner is not None:
                self._runner.close()

    def _next(self) -> tuple[Run, Item] | None:
        """What comes next, once there is something; None when it is over."""
        while not self._stop.is_set() or clock.passed_s() < self._until_s:
            with self._turn:
                if self._hits or self._hints:
                    is_hint_first = not self._hits or (self._hints and self._hints[0][0] < self._hits[0][0])
                    _, run, item = (self._hints if is_hint_first else self._hits).popleft()
                    return run, item
                if self._stop.is_set() and not self._is_behind:
                    return None
                if not self._is_behind:
                    self._turn.wait()
                    continue
            try:
                self._fetch()
            except (Refusal, OSError) as refusal:  # the store is busy, or is being filled again
                self.state.trouble = str(refusal)
                if self._stop.wait(_AGAIN_S[0]):
                    return None
        return None

    def _fetch(self) -> None:
        """Fills the queue with hits from the store that are not done."""
        with self._turn:
            self._has_missed = False
        found: list[tuple[Run, Item]] = []
        place = ("", 0)
        while page := self._store.hits(place, _PAGE):
            for run_id, item in page:
                if len(found) < self._most and not self._acks.holds(run_id, item.seq):
                    run = self._store.get(run_id)
                    if run is not None:
                        found.append((run, item))
            place = (page[-1][0], page[-1][1].seq)
            if len(found) == self._most:
                break
        with self._turn:
            self._hits.extend((self._next_number(), run, item) for run, item in found)
            # All there were are in the queue, and none came while they were looked for.
            self._is_behind = self._has_missed or len(found) == self._most

    def _give(self, run: Run, item: Item) -> bool:
        """False when the engine ends before the sink has taken a hit: that and all behind it are for the next one."""
        if self.state.dropped > self._said_dropped:
            _log.warning("the sink %s is slow: %d events were dropped so far", self.state.name, self.state.dropped)
            self._said_dropped = self.state.dropped
        if not is_hit(item):
            event = self._event_of(run, item)
            call: Callable[[Any], object] = self._sink.on_status if item.kind == "status" else self._sink.on_output
            if event is not None:
                self._try(call, event)
            return True
        if self._acks.holds(run.run_id, item.seq):
            return True
        words = words_of(run, item, self._blobs)
        event = WatchEvent(
            **_common(run, item), snippet=words.snippet, event=item.event or "", text=words.text, data=words.data
        )
        until_s, again_s = clock.passed_s() + self._give_up_s, _AGAIN_S[0]
        while not self._try(self._sink.on_watch, event):
            if clock.passed_s() >= until_s:
                self.state.given_up += 1
                _log.warning("the sink %s is not told of %s: it failed for too long", self.state.name, event.id)
                break
            if self._stop.wait(again_s):
                return False
            again_s = min(2 * again_s, _AGAIN_S[1])
        record = Record(at=clock.now_ms(), marks={run.run_id: Mark(item.seq)})
        try:
            self._acks.put(record, sync=False)
        except OSError as error:
            self.state.trouble = f"{event.id} may be told again after a restart: {error}"
        return True

    def _try(self, call: Callable[[Any], object], event: SinkEvent) -> bool:
        try:
            result = call(event)
            if inspect.isawaitable(result):
                self._runner = self._runner or asyncio.Runner()
                self._runner.run(_awaited(result))
        except BaseException as error:  # noqa: BLE001  (whatever somebody else's code raises)
            self.state.failed += 1
            trouble = f"{type(error).__name__}: {error}"
            if self.state.trouble != trouble:
                _log.warning("the sink %s failed for %s: %s", self.state.name, event.id, trouble)
            self.state.trouble = trouble
            return False
        self.state.delivered += 1
        self.state.trouble = None
        return True

    def _event_of(self, run: Run, item: Item) -> StatusEvent | OutputEvent | None:
        """None where the run is not there any more, or its bytes."""

        def read(name: str, start: int, end: int) -> bytes:
            return read_exactly(run, self._blobs, name, start, end)

        try:
            said = snippet(run, read)
            if item.kind == "status":
                return StatusEvent(**_common(run, item), snippet=said, **(item.data or {}))
            return OutputEvent(
                **_common(run, item),
                snippet=said,
                stream=item.stream or "",
                start=item.start or 0,
                end=item.end or 0,
                text=item_text(run, item, read),
            )
        except (Refusal, OSError) as error:
            with self._turn:
                self.state.dropped += 1
            self.state.trouble = str(error)
            return None


async def _awaited(result: Awaitable[object]) -> object:
    return await result


def _common(run: Run, item: Item) -> dict[str, Any]:
    return {
        "id": hit_id(run.run_id, item.seq),
        "ts": item.ts,
        "run_id": run.run_id,
        "session_id": run.session_id,
        "seq": item.seq,
    }
