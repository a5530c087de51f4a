"""The durable runtime as a library: takes what is to run, keeps it in sight, lets callers find, wait and steer."""

import asyncio
import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Final

import msgspec

from limpet.config import Config
from limpet.engine import adoption, cgroups, steering
from limpet.engine.ask import Ask, start_request, submitted
from limpet.engine.durable import Durable
from limpet.engine.home import Home
from limpet.engine.link import KeeperLink, Reply
from limpet.engine.live_run import LiveRun
from limpet.engine.nursery import Nursery
from limpet.model.errors import Refusal
from limpet.model.ids import check_id, is_made_id, made_at_ms, make_id
from limpet.model.run import Run
from limpet.model.status import status_of
from limpet.store.run_directory import SCRIPT, START_REQUEST, RunDirectory
from limpet.store.runs import RunFilter, RunStore
from limpet.store.sqlite import SqliteRunStore

# How long an engine that starts waits for the keepers it finds; later ones are taken over when they answer.
HELLO_WITHIN_S: Final = 1.0
# How soon an end that could not be recorded is tried again.
SETTLE_AGAIN_S: Final = 0.5


class Engine:
    """One for each home. `async with Engine(path) as engine`."""

    def __init__(self, path: Path, config: Config | None = None) -> None:
        self.home = Home(path)
        self._given_config = config
        self.config = config or Config()
        self.started_at_ms = time.time_ns() // 1_000_000
        # Set by whoever wants this engine's process to end; the value says whether runs are to end with it.
        self.stop_asked = asyncio.Event()
        self.stop_kills_runs = False
        self._live: dict[str, LiveRun] = {}
        self._starting: dict[str, asyncio.Future[LiveRun]] = {}
        self._serial = itertools.count(int.from_bytes(os.urandom(2)))
        self._tasks: set[asyncio.Task[None]] = set()
        self._store: RunStore
        self._nursery: Nursery
        self._durable: Durable
        self._open: AsyncExitStack

    async def __aenter__(self) -> "Engine":
        async with AsyncExitStack() as stack:
            stack.callback(self.home.close)
            self.home.open()
            self.config = self._given_config or Config.load(self.home.config)
            self._store = SqliteRunStore(self.home.database)
            stack.push_async_callback(asyncio.to_thread, self._store.close)
            self._durable = Durable(self.home.runs)
            stack.callback(self._durable.close)
            stack.callback(self._detach_all)
            self._nursery = Nursery(self.home.nursery, cgroups.find_parent("limpet"))
            stack.push_async_callback(self._nursery.close)
            self._nursery.open()
            stack.push_async_callback(self._end_tasks)
            await self._adopt_all()
            self._open = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.stop_kills_runs:
            await self._end_all()
        await self._open.aclose()

    def _detach_all(self) -> None:
        for live in self._live.values():
            live.detach()
        self._live.clear()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Runs of an earlier engine.

    async def _adopt_all(self) -> None:
        """All at once: each waits for its keeper's word, and none for another's."""
        over = await asyncio.to_thread(self._store.known_over)
        found = (path.name for path in sorted(self.home.runs.iterdir()) if is_made_id(path.name))
        await asyncio.gather(*(self._adopt(run_id) for run_id in found if run_id not in over))

    async def _adopt(self, run_id: str) -> None:
        live = LiveRun(Run(run_id=run_id), RunDirectory(self.home.run(run_id)), self._on_change)
        live.recall()
        calling = adoption.call_keeper(live)
        if adoption.is_preparation(live):
            if calling is not None:
                await adoption.hang_up(calling)
            shutil.rmtree(live.directory.path, ignore_errors=True)
            live.detach()
            return
        self._live[run_id] = live
        if calling is None:
            self._settle(live)
            return
        adoption.note_damage(live, self._known(run_id))
        self._on_change(live)
        attaching = self.later(lambda: self._attach(live, calling))
        await asyncio.wait({attaching}, timeout=0 if live.is_unresponsive() else HELLO_WITHIN_S)

    async def _attach(self, live: LiveRun, calling: "asyncio.Task[KeeperLink]") -> None:
        """The run is heard from when its keeper answers: one that is stopped does once it goes on."""
        try:
            link = await calling
        except (OSError, Refusal):
            self._on_keeper_gone(live)
            return
        live.attach(link, self._on_keeper_gone)
        live.catch_up()
        self._on_change(live)

    def _known(self, run_id: str) -> Run:
        """What the database still knows of a run, or that it was."""
        least = self.config.run.max_output_bytes
        unknown = Run(run_id=run_id, session_id=run_id, max_output_bytes=least, created_at=made_at_ms(run_id))
        return self._store.get(run_id) or unknown

    def _on_change(self, live: LiveRun) -> None:
        if live.run.created_at is not None:
            self._store.put(live.run, status_of(live.run))
        if live.run.is_over:
            # Behind those who wait for the end: they do not wait for the disk.
            asyncio.get_running_loop().call_soon(live.directory.remove, START_REQUEST)

    def _on_keeper_gone(self, live: LiveRun) -> None:
        live.link = None
        live.catch_up()
        if live.run.sealed:
            self._forget(live)
        else:
            self._settle(live)

    def _settle(self, live: LiveRun) -> None:
        """The run has no keeper any more: what is known of its end is recorded, as soon as the disk takes it."""
        if self._live.get(live.run.run_id) is not live:
            return
        try:
            adoption.note_damage(live, self._known(live.run.run_id))
            self._on_change(live)
            adoption.settle_dead(live)
        except OSError:
            asyncio.get_running_loop().call_later(SETTLE_AGAIN_S, self._settle, live)
            return
        self._forget(live)

    def _forget(self, live: LiveRun) -> None:
        """The run is over and nothing holds it: from here on its row and its files answer."""
        self._live.pop(live.run.run_id, None)
        live.detach()
        live.wake_all()

    # Starting.

    async def submit(self, ask: Ask) -> LiveRun:
        """Starts a run, once for each key; returns when its record is on disk and it runs, or could not start."""
        if ask.key is None:
            return await self._start(ask)
        check_id("key", ask.key)
        starting = self._starting.get(ask.key)
        if starting is None:
            known = self._store.find_key(ask.key)
            if known is not None:
                return self._same(self._live_or_past(known), ask)
            starting = asyncio.ensure_future(self._start(ask))
            self._starting[ask.key] = starting
            starting.add_done_callback(lambda _: self._starting.pop(ask.key or "", None))
        return self._same(await asyncio.shield(starting), ask)

    def _same(self, live: LiveRun, ask: Ask) -> LiveRun:
        if live.run.request_digest != ask.request_digest:
            message = f"the key {ask.key} was used for another request (run {live.run.run_id}): take a new key"
            raise Refusal("conflict", message, reason="key_reused", run_id=live.run.run_id)
        return live

    async def _start(self, ask: Ask) -> LiveRun:
        """From the claim to the task that sees it through nothing is awaited: it cannot be cut in half."""
        self._check_room()
        idle = await self._nursery.take()
        run_id = make_id(time.time_ns() // 1_000_000, next(self._serial))
        try:
            idle.claim(self.home.run(run_id))
        except OSError as error:
            idle.let_go()
            raise Refusal("unavailable", f"the run's directory could not be made: {error.strerror}") from error
        live = LiveRun(Run(run_id=run_id), RunDirectory(self.home.run(run_id)), self._on_change)
        request = self._record(live, idle.link, ask)
        # The frame leaves before the disk is asked for anything; with a key only when the record is on it.
        started = None if ask.key is not None else idle.link.begin("start", **request)[1]
        return await asyncio.shield(asyncio.ensure_future(self._see_started(live, idle.link, request, started)))

    def _record(self, live: LiveRun, link: KeeperLink, ask: Ask) -> dict[str, Any]:
        """From here on the run exists; what its keeper is to be told."""
        if ask.script is not None:
            ask = msgspec.structs.replace(ask, argv=[*ask.argv, str(live.directory.path / SCRIPT)])
        try:
            if ask.script is not None:
                live.directory.write_private(SCRIPT, ask.script.encode())
            live.ask(lambda n, at, after: submitted(live.run.run_id, ask, self.config, n, at, after))
        except OSError as error:
            link.close()
            live.detach()
            shutil.rmtree(live.directory.path, ignore_errors=True)
            message = f"the run could not be recorded, so it was not started: {error.strerror}; make room on its disk"
            raise Refusal("unavailable", message, reason="storage_full") from error
        self._live[live.run.run_id] = live
        live.attach(link, self._on_keeper_gone)
        return start_request(live.run.run_id, ask, self.config)

    async def _see_started(
        self, live: LiveRun, link: KeeperLink, request: dict[str, Any], started: asyncio.Future[Reply] | None
    ) -> LiveRun:
        on_disk = self._durable.begin(live.daemon_journal)
        if started is None:
            await on_disk  # at most once holds across a power cut too
            _, started = link.begin("start", **request)
        with contextlib.suppress(OSError):  # without it the run can only not be started again after a reboot
            live.directory.write_private(START_REQUEST, msgspec.json.encode(request))
        with contextlib.suppress(ConnectionResetError):  # what became of it is found where its end is noticed
            await started
        await on_disk
        live.catch_up()
        return live

    def _check_room(self) -> None:
        least = self.config.store.min_free_bytes
        free = shutil.disk_usage(self.home.path).free
        if free < least:
            message = f"only {free} bytes are free and store.min_free_bytes is {least}: make room, or prune"
            raise Refusal("unavailable", message, reason="storage_full")

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
            raise Refusal("not_found", f"there is no run {run_id}: see runs.list for those there are")
        return self._live_or_past(past)

    def _live_or_past(self, run: Run) -> LiveRun:
        live = self._live.get(run.run_id)
        return live or LiveRun(run, RunDirectory(self.home.run(run.run_id)), self._on_change)

    async def list(self, wanted: RunFilter) -> list[Run]:
        """The newest first; the living ones as they are now."""
        found = await self._store.list(wanted)
        return [self._live[run.run_id].run if run.run_id in self._live else run for run in found]

    def is_unresponsive(self, run_id: str) -> bool:
        """Whether the run's keeper stands still."""
        live = self._live.get(run_id)
        return live is not None and live.is_unresponsive()

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
        living = [live for live in self._live.values() if live.link is not None]
        for live in living:
            with contextlib.suppress(Refusal):  # one that does not answer is left to go on
                await steering.kill(live, "SIGTERM")
        within_s = self.config.run.kill_grace_ms / 1000 + 5
        await asyncio.gather(*(live.wait_until(lambda run: run.is_over, within_s) for live in living))


async def _as_task(work: Callable[[], Awaitable[None]]) -> None:
    await work()
