"""Runs of an earlier engine, and those whose keeper died: taken over, settled, or read anew from their files."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from limpet.config import Config
from limpet.engine import adoption, remains
from limpet.engine.home import Home
from limpet.engine.link import KeeperLink
from limpet.engine.live_run import LiveRun
from limpet.engine.watching import Watching
from limpet.model.errors import Refusal
from limpet.model.ids import is_made_id, made_at_ms
from limpet.model.items import Item
from limpet.model.run import Run
from limpet.model.status import status_of
from limpet.store import disk
from limpet.store.file_blobs import FileBlobs
from limpet.store.run_directory import RunDirectory
from limpet.store.runs import RunStore

_log: Final = logging.getLogger("limpet.engine")

# How long an engine that starts waits for the keepers it finds; later ones are taken over when they answer.
HELLO_WITHIN_S: Final = 1.0
# How soon an end that could not be recorded is tried again.
SETTLE_AGAIN_S: Final = 0.5

Later = Callable[[Callable[[], Awaitable[None]]], "asyncio.Task[None]"]
# Those of which it is known what becomes of them, and those of which it cannot be recorded yet.
TakeOver = Callable[[list[LiveRun], list[LiveRun]], None]


class Recovery:
    """Brings the runs of one engine back, from their files first; what those say goes before the database."""

    def __init__(
        self,
        home: Home,
        config: Config,
        store: RunStore,
        blobs: FileBlobs,
        thread: ThreadPoolExecutor,
        live: dict[str, LiveRun],
        on_change: Callable[[LiveRun, Sequence[Item]], None],
        later: Later,
    ) -> None:
        self._home = home
        self._config = config
        self._store = store
        self._blobs = blobs
        self._thread = thread
        # The engine's own, by id: all that are not over, or are looked after.
        self._live = live
        self._on_change = on_change
        self._later = later
        # Who is told of runs whose turn is to come; nobody while runs are adopted, as all are told of together then.
        self._take_over: TakeOver | None = None
        # Watchers that look on, by run.
        self._following: dict[str, asyncio.Task[None]] = {}
        # Runs whose keeper died and of which that could not be recorded yet: nobody starts them meanwhile, nor the next
        # of their sessions.
        self._unsettled: set[str] = set()
        self.is_rebuilding = False

    @property
    def is_adopting(self) -> bool:
        """Whether runs of an earlier engine are still being taken over."""
        return self._take_over is None

    async def adopt_all(self, found: Sequence[str], take_over: TakeOver) -> None:
        """All at once: each waits for its keeper's word, and none for another's. Then all queues go on."""
        is_new_boot = self._home.is_new_boot()
        trusted = await adoption.trusted(self._home, self._store, set(found), is_new_boot=is_new_boot)
        await asyncio.gather(*(self._adopt(run_id) for run_id in found if run_id not in trusted))
        self._take_over = take_over
        unsettled = sorted(self._unsettled & self._live.keys())
        settled = sorted(self._live.keys() - self._unsettled)
        take_over([self._live[run_id] for run_id in settled], [self._live[run_id] for run_id in unsettled])
        if is_new_boot:
            with contextlib.suppress(Refusal, OSError):  # else the next engine compares again
                await asyncio.to_thread(self._store.flush)
                self._home.know_boot()

    async def _adopt(self, run_id: str) -> None:
        live = LiveRun(Run(run_id=run_id), RunDirectory(self._home.run(run_id)), self._on_change)
        known = self._store.get(run_id)
        items = live.recall(known, self._store.place(run_id))
        if live.is_anew and live.run.created_at is not None:
            self._store.forget(run_id)  # the database can know more than a power cut left in the files
        calling = adoption.call_keeper(live)
        if known is None and adoption.is_preparation(live):
            if calling is not None:
                await adoption.hang_up(calling)
            disk.remove_tree(live.directory.path)
            live.detach()
            return
        self._live[run_id] = live
        if adoption.is_unstarted(live):
            if calling is not None:
                await adoption.hang_up(calling)
            await adoption.clear_unstarted(live)
            self._on_change(live, items)
        elif calling is None:
            self._on_change(live, items)
            await self._look_through(live)
            self._live[run_id] = live  # one that is over may have been let go already
            self._settle(live, may_requeue=True)
        else:
            self._on_change(live, items)
            self._note_damage(live)
            if adoption.is_idle(live):
                await adoption.hang_up(calling)
                await adoption.clear_unstarted(live)
                self._settle(live)
                return
            attaching = self._later(lambda: self._attach(live, calling))
            await asyncio.wait({attaching}, timeout=0 if live.is_unresponsive() else HELLO_WITHIN_S)

    async def _attach(self, live: LiveRun, calling: "asyncio.Task[KeeperLink]") -> None:
        """The run is heard from when its keeper answers: one that is stopped does once it goes on."""
        try:
            link = await calling
        except (OSError, Refusal):
            self.on_keeper_gone(live)
            return
        live.attach(link, self.on_keeper_gone)
        live.catch_up()

    def _note_damage(self, live: LiveRun) -> None:
        items = adoption.note_damage(live, self._known(live.run.run_id))
        if items is not None:
            self._store.forget(live.run.run_id)
            self._on_change(live, items)

    def _known(self, run_id: str) -> Run:
        """What the database still knows of a run, or that it was."""
        least = self._config.run.max_output_bytes
        unknown = Run(run_id=run_id, session_id=run_id, max_output_bytes=least, created_at=made_at_ms(run_id))
        return self._store.get(run_id) or unknown

    # Runs whose keeper died.

    def on_keeper_gone(self, live: LiveRun) -> None:
        """The connection to the run's keeper ended: it is over, or its keeper is dead."""
        live.link = None
        try:
            live.catch_up()
        except OSError:
            asyncio.get_running_loop().call_later(SETTLE_AGAIN_S, self.on_keeper_gone, live)
            return
        if live.run.sealed:
            self.let_go(live)
        elif live.run.awaits_watchers:
            self._later(lambda: self._look_through_and_settle(live))
        else:
            self._settle(live)

    async def _look_through_and_settle(self, live: LiveRun) -> None:
        await self._look_through(live)
        self._settle(live)

    async def _look_through(self, live: LiveRun) -> None:
        """The run's keeper is dead: its watchers see all that it wrote before an end is recorded."""
        following = self._following.get(live.run.run_id)
        if following is not None:
            following.cancel()
            await asyncio.wait({following})
        if live.run.awaits_watchers:
            # What is left of it would write to nobody.
            await asyncio.to_thread(remains.end_what_is_left, live.directory.keeper_journal)
            sizes = adoption.spool_sizes(live)
            await Watching(live, self._blobs, self._thread).look_through(sizes)
            live.catch_up()

    def follow(self, live: LiveRun) -> None:
        """Its watchers look on while it goes on."""
        run_id = live.run.run_id
        if live.run.awaits_watchers and run_id not in self._following:
            following = self._later(Watching(live, self._blobs, self._thread).follow)
            self._following[run_id] = following
            following.add_done_callback(lambda _: self._following.pop(run_id, None))

    def _settle(self, live: LiveRun, *, may_requeue: bool = False) -> None:
        """The run has no keeper any more: what becomes of it is recorded, as soon as the disk takes it."""
        if self._live.get(live.run.run_id) is not live:
            return
        try:
            live.catch_up()
            self._note_damage(live)
            if not live.run.sealed or adoption.has_less(live):
                adoption.settle_dead(live, may_requeue=may_requeue)
        except OSError:
            self._unsettled.add(live.run.run_id)
            again = partial(self._settle, live, may_requeue=may_requeue)
            asyncio.get_running_loop().call_later(SETTLE_AGAIN_S, again)
            return
        self._unsettled.discard(live.run.run_id)
        if live.run.is_over:
            self.let_go(live)
            return
        live.begin_attempt()
        if self._take_over is not None:
            self._take_over([live], [])

    def let_go(self, live: LiveRun) -> None:
        """The run is over and nothing holds it: from here on its row and its files answer."""
        self._live.pop(live.run.run_id, None)
        live.detach()
        live.wake_all()

    # The database.

    async def rebuild(self, tell_tombstones: Callable[[], object]) -> None:
        """Fills the store again from the files. Meanwhile nobody is told that a run is not there."""
        self.is_rebuilding = True
        _log.warning("the database was damaged, and set aside: it is filled again from the files")
        self._store.clear()
        await asyncio.to_thread(tell_tombstones)
        for run_id in sorted(path.name for path in self._home.runs.iterdir() if is_made_id(path.name)):
            live = self._live.get(run_id) or LiveRun(
                Run(run_id=run_id), RunDirectory(self._home.run(run_id)), self._on_change
            )
            items = live.recall()
            if live.run.created_at is not None:
                self._store.put(live.run, status_of(live.run), items, live.place())
            if run_id not in self._live:
                live.detach()
            await asyncio.sleep(0)
        self.is_rebuilding = False
        _log.warning("the database is whole again")

    def check_store_is_whole(self) -> None:
        """Refuses to say that something is not there while that is not known."""
        if self.is_rebuilding:
            message = "the database is being filled again from the files: ask again in a moment"
            raise Refusal("unavailable", message, reason="store_damaged")
