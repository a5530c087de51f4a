"""The screens that somebody looked at: each is kept for a while, so that the next look replays only what came since."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from limpet.engine.screens.replay import STREAM, Replay
from limpet.model.errors import Refusal
from limpet.model.screen import Format, Shown, show

if TYPE_CHECKING:
    from limpet.engine.engine import Engine
    from limpet.engine.live_run import LiveRun
    from limpet.model.run import Run
    from limpet.store.run_directory import RunDirectory

KEPT: Final = 4
REPLAY_BYTES: Final = 64 << 20
"""How far before the end a replay begins, unless a caller says otherwise: under a second of what scrolls fastest."""


class Screens:
    """One thread replays: the event loop never waits for it, and no more than one core is taken."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread: Final = ThreadPoolExecutor(1, "limpet-screens")
        self._kept: dict[str, Replay] = {}

    async def look(self, live: LiveRun, format: Format, replay_bytes: int) -> tuple[Shown, int]:  # noqa: A002
        """The screen as it is by now, and how far in the stream that is. A refusal where there is no terminal."""
        run = live.run
        if run.rows is None:
            raise Refusal("conflict", f"the run {run.run_id} has no terminal: it was started without `pty`")
        if STREAM not in run.streams:
            message = f"the run {run.run_id} has not begun: there is no screen yet"
            raise Refusal("conflict", message, reason="not_running")
        look = partial(self._look, run, live.directory, format, replay_bytes)
        return await asyncio.get_running_loop().run_in_executor(self._thread, look)

    def _look(self, run: Run, directory: RunDirectory, format: Format, replay_bytes: int) -> tuple[Shown, int]:  # noqa: A002
        replay = self.replayed(run, directory, replay_bytes)
        shown = show(replay.emulator.picture(), format, replayed_from=replay.first, complete=replay.is_complete)
        return shown, replay.position

    async def reply(self, live: LiveRun, end: int, replay_bytes: int) -> bytes:
        """What a terminal answers to what was said up to `end`."""

        def answer() -> bytes:
            return self.replayed(live.run, live.directory, replay_bytes).answers.pop(end, b"")

        return await asyncio.get_running_loop().run_in_executor(self._thread, answer)

    def replayed(self, run: Run, directory: RunDirectory, replay_bytes: int) -> Replay:
        """The run's screen up to now. In this object's thread only."""
        replay = self._kept.pop(run.run_id, None)
        if replay is not None and not _serves(replay, run, replay_bytes):
            replay.close()
            replay = None
        if replay is None:
            replay = Replay(run, self._engine.blobs, directory, replay_bytes)
        try:
            replay.go_on(run)
        except BaseException:
            replay.close()
            raise
        self._kept[run.run_id] = replay
        while len(self._kept) > KEPT:
            self._kept.pop(next(iter(self._kept))).close()
        return replay

    def close(self) -> None:
        """Forgets all screens, once the one that is looked at is done."""
        self._thread.shutdown(cancel_futures=True)
        for replay in self._kept.values():
            replay.close()
        self._kept.clear()


def _serves(replay: Replay, run: Run, replay_bytes: int) -> bool:
    """Whether to go on from there is as good as to begin anew, and no longer a way."""
    stream = run.streams[STREAM]
    if replay.attempt != len(stream.parts) or replay.position < stream.kept_from:
        return False
    begins_early = replay.is_complete or replay.first <= stream.bytes - replay_bytes
    return begins_early and stream.bytes - replay.position <= replay_bytes
