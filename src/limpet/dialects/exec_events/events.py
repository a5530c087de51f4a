"""Tells of an engine's runs: whom to follow, each in a task that is a cursor in the run, and where to go on."""

import asyncio
import contextlib
import logging
from collections.abc import Generator
from functools import partial
from types import TracebackType
from typing import Final, Self

from limpet.dialects.exec_events.telling import NAMES, Telling
from limpet.engine import clock
from limpet.engine.engine import Engine
from limpet.engine.live_run import LiveRun
from limpet.engine.reading import read_exactly
from limpet.model.errors import Refusal
from limpet.model.naming import Names, might_name, names_in, names_of
from limpet.model.run import Run
from limpet.store.run_directory import SCRIPT
from limpet.store.told import Told, ToldJournal

_log: Final = logging.getLogger("limpet.events")
# Longer commands are looked at in a thread alone.
_SHORT_CHARS: Final = 4096


class ExecEvents:
    """`async with ExecEvents(engine)`: tells of its runs, those of an earlier daemon too, and nothing twice."""

    def __init__(self, engine: Engine) -> None:
        self._engine: Final = engine
        self._config: Final = engine.config.hooks.exec
        self._whitelist: Final = frozenset(
            name.rpartition("/")[2].casefold() for name in self._config.command_whitelist
        )
        self._journal: Final = ToldJournal(engine.home.acks / "events.journal")
        self._tasks: Final[dict[str, asyncio.Task[None]]] = {}

    async def __aenter__(self) -> Self:
        feed = self._engine.feed
        feed.names = NAMES
        is_known = self._journal.open()
        feed.last_seq = max(feed.last_seq, self._journal.feed)
        self._engine.follow = self.hear
        for run_id in tuple(self._journal.begun):
            try:
                self.hear(self._engine.find(run_id))
            except Refusal:  # it is gone, or nothing of it was ever there
                self._journal.end(run_id, feed.last_seq)
        for live in self._engine.living():
            if is_known:
                self.hear(live)
            else:  # what was told of it, if anything was, is not known
                live.is_followed = False
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._engine.unfollow()
        tasks = tuple(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._journal.close()

    def hear(self, live: LiveRun) -> None:
        """A run that is seen for the first time: whether it is told of is settled here, for good."""
        live.is_followed = False
        run_id = live.run.run_id
        if run_id in self._tasks or not self._may_tell(live.run):
            return
        if run_id not in self._journal.begun:
            # Before its row can say that it is over: a daemon that is killed here is followed by one that tells of it.
            self._journal.tell(run_id, Told(), self._engine.feed.last_seq)
        self._tasks[run_id] = task = asyncio.ensure_future(self._tell(live))
        task.add_done_callback(lambda _: self._tasks.pop(run_id, None))

    def _may_tell(self, run: Run) -> bool:
        """Cheap: most runs end here."""
        if run.run_id in self._journal.begun:
            return True
        if not self._config.emit_events or run.is_over or run.dialect == "pty" or self._journal.is_done(run.run_id):
            return False
        if len(run.command) > _SHORT_CHARS:
            return True
        return might_name("\0".join((*run.argv, run.command)), self._whitelist)

    async def _name_of(self, run: Run) -> str | None:
        """The whitelisted name that the run goes by."""
        if not self._config.emit_events:
            return None
        if len(run.command) <= _SHORT_CHARS:
            return _names(run).first_of(self._whitelist)
        return (await asyncio.to_thread(_names, run)).first_of(self._whitelist)

    async def _tell(self, live: LiveRun) -> None:
        run_id = live.run.run_id
        try:
            name = await self._name_of(live.run)
            if name is not None:
                await self._follow(live, Telling(name, self._config, self._journal.begun.get(run_id, Told())))
            self._journal.end(run_id, self._engine.feed.last_seq)
        except Exception:  # noqa: BLE001  (one run's trouble is no other's)
            _log.exception("nothing more is told of %s", run_id)

    async def _follow(self, live: LiveRun, telling: Telling) -> None:
        feed, run_id = self._engine.feed, live.run.run_id
        with _heard(live):
            while True:
                with live.next_change() as change:
                    run = live.run
                    read = partial(read_exactly, run, self._engine.blobs)
                    notes = telling.step(run, clock.now_ms(), clock.passed_s(), read)
                    if notes:
                        self._journal.tell(run_id, telling.told, feed.last_seq + len(notes))
                    sessions = (run.session_id, run.context.get("sessionKey", run.session_id))
                    for note in notes:
                        feed.publish(note.name, note.payload, run_id=run_id, sessions=sessions, place=note.place)
                    if telling.is_done:
                        return
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(telling.wait_s(run, clock.passed_s())):
                            await change


@contextlib.contextmanager
def _heard(live: LiveRun) -> Generator[None]:
    """Hears of output too. A keeper that goes away just now is noticed where its end is."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ConnectionResetError, OSError):
            stack.enter_context(live.heard())
        yield


def _names(run: Run) -> Names:
    """The programs that it runs. A command too long for an argv is in a file, whose path is the last word there."""
    is_script = bool(run.argv) and run.argv[-1].endswith(f"/{run.run_id}/{SCRIPT}")
    return names_in(run.command) if is_script else names_of(run.argv)
