"""The durable runtime as a library: takes what is to run, keeps it in sight, lets callers find, wait and steer."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from limpet.config import Config
from limpet.engine import clock, doctor, steering
from limpet.engine.ask import Ask
from limpet.engine.conversations.conversations import Conversations
from limpet.engine.doctor import Check
from limpet.engine.durable import Durable
from limpet.engine.feed import Feed
from limpet.engine.ground import Ground
from limpet.engine.home import Home
from limpet.engine.live_run import LiveRun
from limpet.engine.matching import MatchType, Pattern, compile_pattern, known_pattern
from limpet.engine.news import News
from limpet.engine.recovery import Recovery
from limpet.engine.retention import DAY_MS, Pruned, Retention
from limpet.engine.screens.answering import Answering
from limpet.engine.screens.screens import Screens
from limpet.engine.sinks import ExecEventSink
from limpet.engine.starting import Starter, heard
from limpet.model.context import current_context
from limpet.model.errors import Refusal
from limpet.model.ids import IdMaker, check_id, is_made_id
from limpet.model.items import Item
from limpet.model.run import Run
from limpet.model.secrets import REDACTED
from limpet.model.status import status_of
from limpet.model.tombstone import Tombstone
from limpet.store.file_blobs import FileBlobs
from limpet.store.run_directory import RunDirectory
from limpet.store.runs import RunFilter, RunStore
from limpet.store.verify_home import Report, verify_home

_log: Final = logging.getLogger("limpet.engine")

# How soon the secrets of a run that is over are removed.
TIDY_AFTER_S: Final = 0.02


class Engine:
    """One for each home. `async with Engine(path) as engine`."""

    def __init__(
        self,
        path: Path,
        config: Config | None = None,
        sinks: Sequence[ExecEventSink] = (),
        ground: Ground | None = None,
    ) -> None:
        self.home = Home(path)
        self._ground = ground or Ground()
        self._given_config = config
        self._sinks = sinks
        self.config = config or Config()
        self.clock = clock.Steady()
        # Set by whoever wants this engine's process to end; the value says whether runs are to end with it.
        self.stop_asked = asyncio.Event()
        self.stop_kills_runs = False
        # Where this engine can be reached over TCP, as whoever listens there says.
        self.url: str | None = None
        self._live: dict[str, LiveRun] = {}
        self._starting: dict[str, asyncio.Future[LiveRun]] = {}
        # Runs that are over and whose secrets are still there.
        self._untidy: list[LiveRun] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.blobs: FileBlobs
        # Where patterns are compiled and long output is looked through.
        self.thread: Final = ThreadPoolExecutor(1, "limpet-matching")
        # What whoever listens just now is told, and who is to hear of each run before its row is written.
        self.feed: Final = Feed()
        self.follow: Callable[[LiveRun], None] = _nobody
        self.news: News
        self.durable: Durable
        self.conversations: Final = Conversations(self)
        # Where the output of runs is looked through, for whoever asks.
        self.search_threads: Final = ThreadPoolExecutor(2, "limpet-search")
        self.screens: Final = Screens(self)
        self.answering: Final = Answering(self)
        self._store: RunStore
        self._starter: Starter
        self._retention: Retention
        self._recovery: Recovery
        self._loop: asyncio.AbstractEventLoop
        self._open: AsyncExitStack

    async def __aenter__(self) -> "Engine":
        async with AsyncExitStack() as stack:
            stack.callback(self.home.close)
            self.home.open()
            self.config = self._given_config or Config.load(self.home.config)
            self.blobs = FileBlobs(self.home.path)
            stack.callback(self.blobs.close)
            stack.callback(self.screens.close)
            stack.callback(self.search_threads.shutdown, wait=False, cancel_futures=True)
            self._loop = asyncio.get_running_loop()
            self._store = self._ground.open_store(self.home, self._hear_of_store)
            stack.push_async_callback(asyncio.to_thread, self._store.close)
            self._recovery = Recovery(
                self.home, self.config, self._store, self.blobs, self.thread, self._live, self._on_change, self.later
            )
            stack.callback(self.thread.shutdown, cancel_futures=True)
            self.news = News(self.home, self.config, self._store, self.blobs, self._sinks)
            stack.push_async_callback(self.news.close)
            self.durable = durable = self._ground.open_durable(self.home)
            stack.callback(durable.close)
            stack.callback(self._detach_all)
            stack.callback(self._tidy)
            nursery = self._ground.open_nursery(self.home, self.config)
            stack.push_async_callback(nursery.close)
            nursery.open()
            self._retention = Retention(
                self.home, self._store, self._live.__contains__, self.news.will_prune, self._pruned
            )
            pruned = await asyncio.to_thread(self._retention.recall)
            known = sorted(path.name for path in self.home.runs.iterdir() if is_made_id(path.name))
            ids = IdMaker(self._ground.serial(), known[-1] if known else "")
            known = [run_id for run_id in known if run_id not in pruned]
            await asyncio.to_thread(self.news.open, known)
            keeper_gone = self._recovery.on_keeper_gone
            self._starter = Starter(
                self.home, self.config, nursery, durable, ids, self._new_run, keeper_gone, self._on_undone
            )
            stack.push_async_callback(self._starter.close)
            stack.push_async_callback(self._end_tasks)
            await self._recovery.adopt_all(known, self._starter.take_over)
            await asyncio.to_thread(self.news.meet, known)
            self.later(self.news.load)
            self.later(self._prune_now_and_then)
            self.later(self.conversations.resume)
            stack.push_async_callback(self.conversations.transcripts.close)
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.stop_kills_runs:
            await self._end_all()
        await self._open.aclose()

    def _pruned(self, run_ids: list[str]) -> None:
        self.news.pruned(run_ids)
        self.later(partial(self.conversations.transcripts.pruned, run_ids))

    def _detach_all(self) -> None:
        for live in self._live.values():
            live.detach()
        self._live.clear()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _hear_of_store(self) -> None:
        """Called in any thread."""
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is nobody to tell
            self._loop.call_soon_threadsafe(self._look_after_store)

    def _look_after_store(self) -> None:
        if self._store.trouble is not None:
            _log.warning("the database: %r", self._store.trouble)
        if self._store.needs_rebuild and not self._recovery.is_rebuilding:
            self._recovery.is_rebuilding = True
            self.later(lambda: self._recovery.rebuild(self._retention.tell_store))

    def _on_change(self, live: LiveRun, items: Sequence[Item]) -> None:
        if live.run.created_at is not None:
            if live.is_followed:
                self.follow(live)
            self._store.put(live.run, status_of(live.run), items, live.place())
            if live.run.watch:
                self._recovery.follow(live)
            if live.questions:
                self.answering.hear(live)
            self.news.hear(live, items, is_recalled=self._recovery.is_adopting)
        if live.run.is_over:
            self._tidy_later(live)
            self._starter.leave(live.run.run_id)
            if live.run.keeper is None:
                self._recovery.let_go(live)

    def unfollow(self) -> None:
        """Nobody follows runs any more."""
        self.follow = _nobody

    def living(self) -> Sequence[LiveRun]:
        """The runs that are not settled."""
        return [live for live in self._live.values() if live.run.created_at is not None]

    def _tidy_later(self, live: LiveRun) -> None:
        """Behind those who wait for the end and read what it left: they do not wait for the disk."""
        if not self._untidy:
            asyncio.get_running_loop().call_later(TIDY_AFTER_S, self._tidy)
        self._untidy.append(live)

    def _tidy(self) -> None:
        for live in self._untidy:
            try:
                live.directory.remove_start(with_script=REDACTED in live.run.command)
            except OSError as error:
                _log.warning("what %s was started with could not be removed: %r", live.run.run_id, str(error))
        self._untidy.clear()

    def _on_undone(self, live: LiveRun) -> None:
        self._live.pop(live.run.run_id, None)
        self._store.forget(live.run.run_id)

    # Starting.

    async def submit(self, ask: Ask) -> LiveRun:
        """Starts a run, once for each key; returns when that is on disk and it runs, waits, or could not start."""
        if context := current_context():
            ask = msgspec.structs.replace(ask, context=context | ask.context)
        if ask.key is None:
            return await self._starter.start(ask)
        check_id("key", ask.key)
        starting = self._starting.get(ask.key)
        if starting is None:
            self.check_key_is_kept(ask.key)
            known = self._store.find_key(ask.key)
            if known is not None:
                return self._same(self._live_or_past(known), ask)
            self._recovery.check_store_is_whole()
            starting = asyncio.ensure_future(self._starter.start(ask))
            self._starting[ask.key] = starting
            starting.add_done_callback(lambda _: self._starting.pop(ask.key or "", None))
            starting.add_done_callback(heard)
        return self._same(await asyncio.shield(starting), ask)

    def _same(self, live: LiveRun, ask: Ask) -> LiveRun:
        if live.run.request_digest != ask.request_digest:
            message = f"the key {ask.key} was used for another request (run {live.run.run_id}): take a new key"
            raise Refusal("conflict", message, reason="key_reused", run_id=live.run.run_id)
        return live

    def check_key_is_kept(self, key: str) -> None:
        """Refuses a key whose run was pruned: it started something once, and does not again."""
        stone = self._store.find_tombstone(key=key)
        if stone is not None:
            raise _pruned(stone)

    def _new_run(self, run: Run) -> LiveRun:
        live = LiveRun(run, RunDirectory(self.home.run(run.run_id)), self._on_change)
        self._live[run.run_id] = live
        return live

    def waits_for(self, run_id: str) -> str | None:
        """The run that a queued one waits behind."""
        return self._starter.queue.waits_for(run_id)

    # Looking.

    def find(self, run_id: str) -> LiveRun:
        """The run, living or past; a refusal when there is none."""
        check_id("run_id", run_id)
        live = self._live.get(run_id)
        if live is not None and live.run.created_at is not None:
            live.catch_up()
            return live
        past = self._store.get(run_id)
        if past is None:
            stone = self._store.find_tombstone(run_id)
            if stone is not None:
                raise _pruned(stone)
            self._recovery.check_store_is_whole()
            raise Refusal("not_found", f"there is no run {run_id}: see runs.list for those there are")
        return self._live_or_past(past)

    def _live_or_past(self, run: Run) -> LiveRun:
        live = self._live.get(run.run_id)
        return live or LiveRun(run, RunDirectory(self.home.run(run.run_id), run.attempt), self._on_change)

    async def list(self, wanted: RunFilter) -> list[Run]:
        """The newest first; the living ones as they are now."""
        found = await self._store.list(wanted)
        return [self._live[run.run_id].run if run.run_id in self._live else run for run in found]

    def items(self, live: LiveRun, after_seq: int, limit: int, stream: str | None = None) -> Sequence[Item]:
        """What is shown of the run behind `after_seq`."""
        return self._store.items(live.run.run_id, after_seq, limit, stream)

    def is_unresponsive(self, run_id: str) -> bool:
        """Whether the run's keeper stands still."""
        live = self._live.get(run_id)
        return live is not None and live.is_unresponsive()

    async def compile(self, pattern: str, match_type: MatchType, field: str) -> Pattern:
        """The pattern ready to look for, or a refusal that names the field; without a wait where it is known."""
        known = known_pattern(pattern, match_type, field=field)
        return known or await self._loop.run_in_executor(
            self.thread, partial(compile_pattern, pattern, match_type, field=field)
        )

    # Upkeep.

    async def prune(self, older_than_ms: int | None, keep_bytes: int | None, *, dry_run: bool) -> Pruned:
        """Removes runs that are over; without bounds, as the configuration has it."""
        if older_than_ms is None and keep_bytes is None:
            older_than_ms, keep_bytes = self._configured_bounds()
        try:
            return await self._retention.prune(self.clock.now_ms(), older_than_ms, keep_bytes, dry_run=dry_run)
        except OSError as error:
            message = (
                f"what is to go could not be recorded, so it stays: {error.strerror}; make a little room on its disk"
            )
            raise Refusal("unavailable", message, reason="storage_full") from error

    def _configured_bounds(self) -> tuple[int | None, int | None]:
        bounds = self.config.retention
        return (bounds.max_age_days * DAY_MS or None), (bounds.max_bytes or None)

    async def _prune_now_and_then(self) -> None:
        """By a clock that cannot jump while this engine lives."""
        while True:
            await asyncio.sleep(self.config.retention.check_s)
            try:
                await self._retention.prune(self.clock.now_ms(), *self._configured_bounds(), dry_run=False)
            except (OSError, Refusal) as error:
                _log.warning("nothing was pruned this time: %r", str(error))

    async def verify(self, run_id: str | None) -> Report:
        """Compares what is kept with what was written; beside everything else."""
        await asyncio.to_thread(self._store.flush)
        return await asyncio.to_thread(verify_home, self.home.runs, self.home.database, run_id)

    def examine(self) -> Sequence[Check]:
        """What limpet stands on, and how it stands."""
        held_up = {
            "unresponsive": sum(live.is_unresponsive() for live in self._live.values()),
            "stalled": sum(live.run.stalled is not None for live in self._live.values()),
        }
        return [*doctor.examine(self.home.path), *doctor.examine_running(self.counts() | held_up, self._store.trouble)]

    def counts(self) -> dict[str, int]:
        running = sum(1 for live in self._live.values() if not live.run.is_over)
        return {"running": running, "total": self._store.count()}

    def later(self, work: Callable[[], Awaitable[None]]) -> asyncio.Task[None]:
        """Does something beside the caller, and is not forgotten before it is done."""
        task = asyncio.ensure_future(_as_task(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _end_all(self) -> None:
        # Those that wait first: none is to begin because another ends.
        living = sorted(self._live.values(), key=lambda live: live.link is not None)
        for live in living:
            with contextlib.suppress(Refusal):  # one that does not answer is left to go on
                await steering.kill(live, "SIGTERM")
        within_s = self.config.run.kill_grace_ms / 1000 + 5
        await asyncio.gather(*(live.wait_until(lambda run: run.is_over, within_s) for live in living))


def _pruned(stone: Tombstone) -> Refusal:
    message = f"the run {stone.run_id} was pruned: nothing of it is kept but that it was"
    return Refusal("gone", message, reason="pruned", run_id=stone.run_id, pruned_at=stone.pruned_at)


def _nobody(_live: LiveRun) -> None:
    """Who comes later looks at all runs that live then."""


async def _as_task(work: Callable[[], Awaitable[None]]) -> None:
    await work()
