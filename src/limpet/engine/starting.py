"""From what is asked for to a command that runs: now, or when its turn has come."""

import asyncio
import contextlib
import errno
from collections.abc import Callable, Coroutine
from typing import Any, Final

import msgspec

from limpet.config import Config
from limpet.engine import clock
from limpet.engine.ask import Ask, start_request, submitted
from limpet.engine.durable import Durable
from limpet.engine.home import Home
from limpet.engine.limits import Limits, limits_of
from limpet.engine.link import KeeperLink, Reply
from limpet.engine.live_run import LiveRun
from limpet.engine.nursery import IdleKeeper, Nursery
from limpet.engine.queue import Queue
from limpet.engine.steering import withdraw
from limpet.model.errors import Refusal
from limpet.model.ids import IdMaker
from limpet.model.run import Phase, Run
from limpet.store import disk
from limpet.store.run_directory import SCRIPT, START_REQUEST, RunDirectory

# How soon a run whose turn it is looks again for room on its disk.
ROOM_AGAIN_S: Final = 1.0
# When a run that goes on is one that a power cut shall not lose.
KEPT_AFTER_S: Final = 1.0
TOO_LONG_MESSAGE: Final = "it waited in its queue for as long as it might: it was not started"
NOT_KEPT_MESSAGE: Final = "what it was to be started with is not there any more: it was not started"


class Starter:
    """Every start goes through here. `new_run` makes a run known to the engine, `on_undone` unknown again."""

    def __init__(
        self,
        home: Home,
        config: Config,
        nursery: Nursery,
        durable: Durable,
        ids: IdMaker,
        new_run: Callable[[Run], LiveRun],
        on_keeper_gone: Callable[[LiveRun], None],
        on_undone: Callable[[LiveRun], None],
    ) -> None:
        self.queue = Queue(config.run.max_parallel)
        self._home = home
        self._config = config
        self._nursery = nursery
        self._durable = durable
        self._ids = ids
        self._new_run = new_run
        self._on_keeper_gone = on_keeper_gone
        self._on_undone = on_undone
        # Runs in the queue, and the timers that end their waiting.
        self._queued: dict[str, LiveRun] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._keeping = asyncio.Lock()
        self._limits = Limits(config.run.cgroup_root)

    async def start(self, ask: Ask) -> LiveRun:
        """Returns when the run's record is on disk, and it runs, waits for its turn, or could not start."""
        self._check_room()
        await self._limits.check(limits_of(ask.limits, self._config.run))
        run_id = self._ids.make(clock.now_ms())
        if ask.serial and not self.queue.enter(run_id, ask.session_id or run_id):
            return await _to_its_end(self._enqueue(run_id, ask))
        try:
            idle = await self._nursery.take()
            # From the claim to the task that sees it through nothing is awaited: it cannot be cut in half.
            live, request = self._claim(run_id, idle, ask)
        except BaseException:
            self.leave(run_id)
            raise
        # The frame leaves before the disk is asked for anything; with a key only when the record is on it.
        started = None if ask.key is not None else idle.link.begin("start", **request)[1]
        return await _to_its_end(self._see_started(live, idle.link, request, started))

    def _check_room(self) -> None:
        least = self._config.store.min_free_bytes
        free = disk.free_bytes(self._home.path)
        if free < least:
            message = f"only {free} bytes are free and store.min_free_bytes is {least}: make room, or prune"
            raise Refusal("unavailable", message, reason="storage_full")

    # At once.

    def _claim(self, run_id: str, idle: IdleKeeper, ask: Ask) -> tuple[LiveRun, dict[str, Any]]:
        """From here on the run exists, with a keeper; what that is to be told."""
        try:
            idle.claim(self._home.run(run_id))
        except OSError as error:
            idle.let_go()
            raise _refusal("the run's directory could not be made", error) from error
        live = self._new_run(Run(run_id=run_id))
        try:
            request = self._record(live, ask)
        except Refusal:
            idle.link.close()
            raise
        live.attach(idle.link, self._on_keeper_gone)
        return live, request

    async def _see_started(
        self, live: LiveRun, link: KeeperLink, request: dict[str, Any], started: asyncio.Future[Reply] | None
    ) -> LiveRun:
        on_disk = self._durable.begin(live.daemon_journal)
        try:
            if started is None:
                await on_disk  # at most once holds across a power cut too
                _, started = link.begin("start", **request)
            with contextlib.suppress(ConnectionResetError):  # what became of it is found where its end is noticed
                await started
            await on_disk
        except OSError as error:
            if live.run.is_over and not live.directory.path.exists():
                message = f"the run {live.run.run_id} was over, and pruned, before this could be answered"
                raise Refusal("gone", message, reason="pruned", run_id=live.run.run_id) from error
            if started is None:
                self._undo(live)
                raise _refusal("the run could not be put on disk, so it was not started", error) from error
            message = "the run goes on, but its record is not known to be on disk"
            raise _refusal(message, error, run_id=live.run.run_id) from error
        live.hear()
        if live.run.on_lost == "requeue":
            asyncio.get_running_loop().call_later(KEPT_AFTER_S, self._keep_request, live)
        return live

    def _keep_request(self, live: LiveRun) -> None:
        """What a run could be started again with is put on disk once it has gone on for a while: most never need it."""
        if live.run.is_over or live.link is None:
            return
        task = asyncio.ensure_future(self._sync_request(live))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _sync_request(self, live: LiveRun) -> None:
        """One after the other: starts that wait for the disk come first."""
        async with self._keeping:
            if not live.run.is_over:
                with contextlib.suppress(OSError):  # it ended, or the disk fails: a power cut can lose it then
                    await asyncio.to_thread(live.directory.sync, START_REQUEST)

    def _undo(self, live: LiveRun) -> None:
        """Takes back a run of which nothing has begun."""
        live.detach()
        self._on_undone(live)
        disk.remove_tree(live.directory.path)
        self.leave(live.run.run_id)

    def _record(self, live: LiveRun, ask: Ask) -> dict[str, Any]:
        """Writes down what is to be started, then that it was asked for: who finds the record can start it."""
        run_id, directory = live.run.run_id, live.directory
        if ask.script is not None:
            ask = msgspec.structs.replace(ask, argv=[*ask.argv, str(directory.path / SCRIPT)])
        limits = limits_of(ask.limits, self._config.run)
        request = start_request(run_id, ask, self._config) | self._limits.frame(_group(live.run), limits)
        if ask.shells:
            request["shells"] = str(directory.kept)
        try:
            if ask.script is not None:
                directory.write_private(SCRIPT, ask.script.encode())
            directory.write_private(START_REQUEST, msgspec.json.encode(request))
            live.ask(lambda n, at, after: submitted(run_id, ask, self._config, n, at, after))
        except OSError as error:
            self._undo(live)
            raise _refusal("the run could not be recorded, so it was not started", error) from error
        return request

    # In its turn.

    async def _enqueue(self, run_id: str, ask: Ask) -> LiveRun:
        directory = RunDirectory(self._home.run(run_id))
        try:
            await asyncio.to_thread(directory.lay_out)
            live = self._new_run(Run(run_id=run_id))
            self._record(live, ask)
        except OSError as error:
            disk.remove_tree(directory.path)
            self.leave(run_id)
            raise _refusal("the run's directory could not be made", error) from error
        except Refusal:
            self.leave(run_id)
            raise
        try:
            await asyncio.to_thread(directory.sync, START_REQUEST)
            await self._durable.begin(live.daemon_journal)
        except OSError as error:
            self._undo(live)
            raise _refusal("the run could not be put on disk, so it was not queued", error) from error
        self._await_turn(live)
        return live

    def _await_turn(self, live: LiveRun) -> None:
        run = live.run
        if run.is_over:
            return
        self._queued[run.run_id] = live
        if run.queue_timeout_ms is not None:
            waited_ms = clock.now_ms() - (run.created_at or 0) if run.attempt == 1 else 0
            left_s = max(0, run.queue_timeout_ms - max(0, waited_ms)) / 1000
            timer = asyncio.get_running_loop().call_later(left_s, self._give_up, live, "timeout", TOO_LONG_MESSAGE)
            self._timers[run.run_id] = timer
        if not self.queue.is_waiting(run.run_id):
            self._begin_turn(live)

    def take_over(self, lives: list[LiveRun], unsettled: list[LiveRun]) -> None:
        """For runs of an earlier engine, in the order in which they were asked for: who goes on, and who waits.

        Of those that are `unsettled` it cannot be recorded yet what becomes of them: their sessions wait for them.
        """
        for live in (*unsettled, *lives):
            if live.run.serial and (live in unsettled or live.run.phase is not Phase.QUEUED) and not live.run.is_over:
                self.queue.enter_started(live.run.run_id, live.run.session_id)
        waiting = [live for live in lives if live.run.phase is Phase.QUEUED]
        for live in waiting:
            if live.run.serial and not self.queue.holds(live.run.run_id):
                self.queue.enter(live.run.run_id, live.run.session_id)
        for live in waiting:
            self._await_turn(live)

    def leave(self, run_id: str) -> None:
        """The run is over, or will never be: whose turn it is now begins."""
        self._stop_waiting(run_id)
        for following in self.queue.leave(run_id):
            if following in self._queued:
                self._begin_turn(self._queued[following])

    def _stop_waiting(self, run_id: str) -> None:
        self._queued.pop(run_id, None)
        timer = self._timers.pop(run_id, None)
        if timer is not None:
            timer.cancel()

    def _begin_turn(self, live: LiveRun) -> None:
        task = asyncio.ensure_future(self._launch(live))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _give_up(self, live: LiveRun, by: str, message: str) -> None:
        """The run will not be started; recorded as soon as the disk takes it."""
        try:
            withdraw(live, by, message)
        except OSError:
            asyncio.get_running_loop().call_later(ROOM_AGAIN_S, self._give_up, live, by, message)

    async def _launch(self, live: LiveRun) -> None:
        request = _request_of(live)
        if request is None:
            self._give_up(live, "lost", NOT_KEPT_MESSAGE)
            return
        try:
            # Where it is held to its limits can be another place than when it was asked for.
            await self._limits.check(live.run.limits)
        except Refusal as refusal:
            withdraw(live, "self", refusal.message)
            return
        request |= self._limits.frame(_group(live.run), live.run.limits)
        while not live.run.is_over:
            try:
                idle = await self._nursery.take()
            except Refusal as refusal:
                if refusal.reason != "storage_full":
                    self._give_up(live, "self", refusal.message)
                    return
                await asyncio.sleep(ROOM_AGAIN_S)
                continue
            if live.run.is_over:
                self._nursery.give_back(idle)
                return
            self._stop_waiting(live.run.run_id)
            try:
                idle.claim_attempt(RunDirectory(live.directory.path, live.run.attempt))
                # Who finds it after a power cut is to see that it may have begun.
                await asyncio.to_thread(live.directory.sync_records)
            except OSError as error:
                idle.let_go()
                self._give_up(
                    live, "self", f"could not start: its keeper's directory could not be had: {error.strerror}"
                )
                return
            if live.run.is_over:
                idle.let_go()
                return
            live.begin_attempt()
            live.attach(idle.link, self._on_keeper_gone)
            with contextlib.suppress(ConnectionResetError):
                await idle.link.begin("start", **request)[1]
            live.catch_up()
            return

    async def close(self) -> None:
        """Those that wait go on waiting: the next engine finds them."""
        for timer in self._timers.values():
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def _to_its_end(start: Coroutine[Any, Any, LiveRun]) -> LiveRun:
    """What it comes to. It goes on to there when whoever asked for it has gone."""
    task = asyncio.ensure_future(start)
    task.add_done_callback(heard)
    return await asyncio.shield(task)


def heard(done: "asyncio.Future[LiveRun]") -> None:
    """A refusal that whoever asked for it did not wait for is nobody's: it is not to be complained of."""
    if not done.cancelled():
        done.exception()


def _refusal(what: str, error: OSError, **extra: str) -> Refusal:
    """What could not be done, why, and what to do."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason, todo = "storage_full", "make room on its disk"
    elif error.errno in (errno.EMFILE, errno.ENFILE):
        reason, todo = "too_many_files", "close connections, or raise the limit of open files"
    else:
        reason, todo = "not_durable", "look at its disk"
    return Refusal("unavailable", f"{what}: {error.strerror}; {todo}", reason=reason, **extra)


def _group(run: Run) -> str:
    """The name of the cgroups that hold it to its limits: no attempt is taken for another."""
    return f"limpet-{run.run_id}-{run.attempt}"


def _request_of(live: LiveRun) -> dict[str, Any] | None:
    """The start frame as it was written down, for the attempt that is due."""
    try:
        written = msgspec.json.decode((live.directory.path / START_REQUEST).read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError):
        return None
    # The head is what came first over all attempts.
    return written | {"head_bytes": max(0, live.run.max_output_bytes - live.run.output_bytes)}
