"""The durable runtime as a library: takes what is to run, keeps it in sight, lets callers find, wait and steer."""

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from limpet.config import Config
from limpet.engine import adoption, cgroups
from limpet.engine.durable import Durable
from limpet.engine.home import Home
from limpet.engine.live_run import LiveRun
from limpet.engine.nursery import Nursery
from limpet.model.errors import Refusal
from limpet.model.facts import InputAsked, InputTaken, StopAsked, Submitted
from limpet.model.ids import check_id, is_made_id, made_at_ms, make_id
from limpet.model.run import Phase, Run
from limpet.model.secrets import redact
from limpet.model.status import status_of
from limpet.store.run_directory import SCRIPT, START_REQUEST, RunDirectory
from limpet.store.runs import RunFilter, RunStore
from limpet.store.sqlite import SqliteRunStore

_encoder: Final = msgspec.json.Encoder()
# How long a repeated write waits for the first one to be taken.
INPUT_OUTCOME_WITHIN_S: Final = 30.0


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What a dialect wants run."""

    dialect: str
    command: str
    argv: list[str]
    # A command too long for a word of argv: argv gets the path of a file that holds it.
    script: str | None = None
    cwd: str
    env: dict[str, str]
    session_id: str | None = None
    # "null", "open", or text that is written and closed.
    stdin: str = "null"
    stdin_text: str | None = None
    size: tuple[int, int] | None = None
    timeout_ms: int | None = None
    max_output_bytes: int | None = None
    labels: list[str] = []
    context: dict[str, str] = {}
    key: str | None = None
    request_digest: str | None = None


class Once(msgspec.Struct, frozen=True):
    """A key under which something is done at most once, and the digest of what."""

    key: str
    digest: str


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

    async def __aenter__(self) -> "Engine":
        self.home.open()
        try:
            self.config = self._given_config or Config.load(self.home.config)
            self._store = SqliteRunStore(self.home.database)
            self._durable = Durable()
            self._nursery = Nursery(self.home.nursery, cgroups.find_parent("limpet"))
            self._nursery.open()
            await self._adopt_all()
        except BaseException:
            self.home.close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.stop_kills_runs:
            await self._end_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._nursery.close()
        for live in self._live.values():
            live.detach()
        await asyncio.to_thread(self._store.close)
        self._durable.close()
        self.home.close()

    # Runs of an earlier engine.

    async def _adopt_all(self) -> None:
        over = self._store.known_over()
        for path in sorted(self.home.runs.iterdir()):
            if is_made_id(path.name) and path.name not in over:
                await self._adopt(path.name)

    async def _adopt(self, run_id: str) -> None:
        live = LiveRun(Run(run_id=run_id), RunDirectory(self.home.run(run_id)), self._on_change)
        live.recall()
        link = await adoption.find_keeper(live)
        if adoption.is_preparation(live):  # its keeper, if there still is one, goes with us
            shutil.rmtree(live.directory.path, ignore_errors=True)
            live.detach()
            return
        adoption.note_damage(live, self._store.get(run_id) or self._unknown(run_id))
        self._live[run_id] = live
        if link is not None:
            live.attach(link, self._on_keeper_gone)
            live.catch_up()
            self._on_change(live)
        else:
            self._on_change(live)
            adoption.settle_dead(live)
            self._forget(live)

    def _unknown(self, run_id: str) -> Run:
        """A run of which nothing is known but that it was."""
        least = self.config.run.max_output_bytes
        return Run(run_id=run_id, session_id=run_id, max_output_bytes=least, created_at=made_at_ms(run_id))

    def _on_change(self, live: LiveRun) -> None:
        if live.run.created_at is not None:
            self._store.put(live.run, status_of(live.run))
        if live.run.is_over:
            # Behind those who wait for the end: they do not wait for the disk.
            asyncio.get_running_loop().call_soon(live.directory.remove, START_REQUEST)

    def _on_keeper_gone(self, live: LiveRun) -> None:
        live.link = None
        live.catch_up()
        if not live.run.sealed:
            adoption.settle_dead(live)
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
        self._check_room()
        idle = await self._nursery.take()
        run_id = make_id(time.time_ns() // 1_000_000, next(self._serial))
        try:
            idle.claim(self.home.run(run_id))
        except OSError as error:
            idle.let_go()
            raise Refusal("unavailable", f"the run's directory could not be made: {error.strerror}") from error
        live = LiveRun(Run(run_id=run_id), RunDirectory(self.home.run(run_id)), self._on_change)
        self._live[run_id] = live
        live.attach(idle.link, self._on_keeper_gone)
        task = asyncio.ensure_future(self._record_and_start(live, ask))
        return await asyncio.shield(task)

    async def _record_and_start(self, live: LiveRun, ask: Ask) -> LiveRun:
        """Not to be cut in half: from the first record on the run exists."""
        if ask.script is not None:
            ask = msgspec.structs.replace(ask, argv=[*ask.argv, str(live.directory.path / SCRIPT)])
        request = self._start_request(live.run.run_id, ask)
        try:
            if ask.script is not None:
                live.directory.write_private(SCRIPT, ask.script.encode())
            live.ask(lambda n, at, after: self._submitted(live.run.run_id, ask, n, at, after))
        except OSError as error:
            self._live.pop(live.run.run_id, None)
            live.detach()
            message = f"the run could not be recorded, so it was not started: {error.strerror}; make room on its disk"
            raise Refusal("unavailable", message, reason="storage_full") from error
        link = live.link
        assert link is not None
        on_disk = asyncio.ensure_future(self._durable.run(live.daemon_journal.sync))
        if ask.key is not None:
            await on_disk  # at most once holds across a power cut too
        with contextlib.suppress(ConnectionResetError):  # what became of it is found where its end is noticed
            _, started = link.begin("start", **request)
            with contextlib.suppress(OSError):  # without it the run can only not be started again after a reboot
                live.directory.write_private(START_REQUEST, _encoder.encode(request))
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

    def _start_request(self, run_id: str, ask: Ask) -> dict[str, Any]:
        stdin: Any = ask.stdin
        if ask.stdin_text is not None:
            stdin = {"data": base64.b64encode(ask.stdin_text.encode()).decode()}
        config = self.config.run
        return {
            "run": run_id,
            "argv": ask.argv,
            "cwd": ask.cwd,
            "env": ask.env,
            "pty": None if ask.size is None else {"rows": ask.size[0], "cols": ask.size[1]},
            "stdin": stdin,
            "timeout_ms": ask.timeout_ms,
            "kill_grace_ms": config.kill_grace_ms,
            "spool_max_bytes": config.spool_max_bytes,
            "head_bytes": self._head_bytes(ask),
            "min_free_bytes": self.config.store.min_free_bytes,
            "sync_ms": config.sync_ms,
        }

    def _head_bytes(self, ask: Ask) -> int:
        return self.config.run.max_output_bytes if ask.max_output_bytes is None else ask.max_output_bytes

    def _submitted(self, run_id: str, ask: Ask, n: int, at: int, after: int) -> Submitted:
        return Submitted(
            n=n,
            at=at,
            after=after,
            run_id=run_id,
            session_id=ask.session_id or run_id,
            dialect=ask.dialect,
            command=ask.command,
            argv=ask.argv,
            cwd=ask.cwd,
            env=redact(ask.env),
            stdin="data" if ask.stdin_text is not None else ask.stdin,
            rows=ask.size[0] if ask.size else None,
            cols=ask.size[1] if ask.size else None,
            timeout_ms=ask.timeout_ms,
            max_output_bytes=self._head_bytes(ask),
            labels=ask.labels,
            context=ask.context,
            key=ask.key,
            request_digest=ask.request_digest,
        )

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

    def counts(self) -> dict[str, int]:
        running = sum(1 for live in self._live.values() if not live.run.is_over)
        return {"running": running, "total": self._store.count()}

    # Steering.

    async def kill(self, run_id: str, signal_name: str) -> LiveRun:
        """Begins the kill ladder, or finds nothing left to end."""
        live = self.find(run_id)
        if live.link is None:
            return live
        if not live.run.is_over:
            live.ask(lambda n, at, after: StopAsked(n=n, at=at, after=after, signal=signal_name))
        with contextlib.suppress(ConnectionResetError):  # it has just ended: nothing is left to end
            self._accepted(live, await live.link.ask("kill", signal=signal_name))
        return live

    async def signal(self, run_id: str, signal_name: str) -> int:
        """Sends one signal to the terminal's foreground or to the main process; how many it reached."""
        live = self._running(run_id)
        reply = await self._tell(live, "signal", signal=signal_name)
        return int(reply["sent"])

    async def write(self, run_id: str, data: bytes, *, close: bool, secret: bool, once: Once | None = None) -> int:
        """Returns once the command's side has taken all of it; how many bytes that was."""
        if once is not None and (written := await self._written_before(self.find(run_id), once)) is not None:
            return written
        live = self._running(run_id)
        if once is not None:
            live.ask(lambda n, at, after: InputAsked(n=n, at=at, after=after, key=once.key, digest=once.digest))
        encoded = base64.b64encode(data).decode()
        reply = await self._tell(live, "write", None, data=encoded, close=close, secret=secret)
        written = int(reply["written"])
        if once is not None:
            live.ask(lambda n, at, after: InputTaken(n=n, at=at, after=after, key=once.key, written=written))
        return written

    async def _written_before(self, live: LiveRun, once: Once) -> int | None:
        """What an earlier write under this key came to; None when there was none."""
        if once.key not in live.run.inputs:
            return None
        if live.run.inputs[once.key][0] != once.digest:
            message = f"the key {once.key} was used for other input to this run: take a new key"
            raise Refusal("conflict", message, reason="key_reused")
        await live.wait_until(lambda run: run.inputs[once.key][1] is not None, INPUT_OUTCOME_WITHIN_S)
        written = live.run.inputs[once.key][1]
        if written is None:
            message = f"input under the key {once.key} was begun, and how much of it was taken is not known"
            raise Refusal("conflict", message, reason="outcome_unknown")
        return written

    def _running(self, run_id: str) -> LiveRun:
        live = self.find(run_id)
        if live.link is None or live.run.phase is not Phase.RUNNING:
            raise Refusal(
                "conflict", f"the run {run_id} is not running: it is {status_of(live.run)}", reason="not_running"
            )
        return live

    async def _tell(self, live: LiveRun, do: str, within_s: float | None = 30.0, **fields: Any) -> dict[str, Any]:
        """The keeper's reply; its refusals become ours."""
        if live.link is None:
            raise Refusal("conflict", f"the run {live.run.run_id} is over", reason="not_running")
        try:
            reply = await live.link.ask(do, within_s=within_s, **fields)
        except ConnectionResetError:
            raise Refusal("conflict", f"the run {live.run.run_id} has just ended", reason="not_running") from None
        return self._accepted(live, reply)

    def _accepted(self, live: LiveRun, reply: dict[str, Any]) -> dict[str, Any]:
        if not reply.get("ok"):
            code = str(reply.get("error"))
            extra = {name: reply[name] for name in ("written",) if name in reply}
            if code in ("conflict", "invalid_argument", "not_found"):
                raise Refusal(code, str(reply["message"]), **extra)
            raise Refusal("conflict", str(reply["message"]), reason=code, **extra)
        live.catch_up()
        return reply

    def later(self, work: Callable[[], Awaitable[None]]) -> None:
        """Does something beside the caller, and is not forgotten before it is done."""
        task = asyncio.ensure_future(_as_task(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _end_all(self) -> None:
        living = [live for live in self._live.values() if live.link is not None]
        for live in living:
            await self.kill(live.run.run_id, "SIGTERM")
        within_s = self.config.run.kill_grace_ms / 1000 + 5
        await asyncio.gather(*(live.wait_until(lambda run: run.is_over, within_s) for live in living))


async def _as_task(work: Callable[[], Awaitable[None]]) -> None:
    await work()
