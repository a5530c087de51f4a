"""Answers what programs ask their terminal, where nobody looks at it: as a terminal of theirs would, once."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from typing import TYPE_CHECKING, Final

from limpet.engine import clock
from limpet.engine.screens.screens import REPLAY_BYTES
from limpet.model.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import Generator

    from limpet.engine.engine import Engine
    from limpet.engine.live_run import LiveRun

# A program that has waited so long for an answer waits no more: it would take it for keys.
STALE_MS: Final = 3000
# How long a terminal counts as there between two calls of its own.
STAYS_S: Final = 0.5
# How long those that looked when the daemon went are given to find the new one.
FIND_AGAIN_S: Final = 1.0


class Attendance:
    """The terminals that look at a run now; the first of them answers."""

    def __init__(self) -> None:
        # By run: each terminal that is there, and how often it says so at once.
        self._present: dict[str, dict[str, int]] = {}

    @contextlib.contextmanager
    def of(self, run_id: str, terminal: str) -> Generator[None]:
        """Meanwhile, and for a moment after, that terminal looks at the run."""
        there = self._present.setdefault(run_id, {})
        there[terminal] = there.get(terminal, 0) + 1
        try:
            yield
        finally:
            # It says so by one call after the other: between two it is not gone.
            asyncio.get_running_loop().call_later(STAYS_S, self._leave, run_id, terminal)

    def _leave(self, run_id: str, terminal: str) -> None:
        there = self._present[run_id]
        there[terminal] -= 1
        if not there[terminal]:
            del there[terminal]
        if not there:
            del self._present[run_id]

    def is_first(self, run_id: str, terminal: str) -> bool:
        """Whether it is the one that has been there longest."""
        return next(iter(self._present.get(run_id, ())), None) == terminal

    def count(self, run_id: str) -> int:
        return len(self._present.get(run_id, ()))


class Answering:
    """One for all runs of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.attendance = Attendance()
        self._busy: set[str] = set()
        self._since_s = clock.passed_s()

    def hear(self, live: LiveRun) -> None:
        """Sees to what was asked, unless that is under way."""
        if live.questions and live.run.run_id not in self._busy:
            self._busy.add(live.run.run_id)
            self._engine.later(lambda: self._answer_all(live))

    async def _answer_all(self, live: LiveRun) -> None:
        try:
            await asyncio.sleep(self._since_s + FIND_AGAIN_S - clock.passed_s())
            while live.questions:
                question = live.questions.pop(0)
                is_stale = clock.now_ms() - question.at > STALE_MS
                if live.link is None or is_stale or self.attendance.count(live.run.run_id):
                    continue
                with contextlib.suppress(Refusal, ConnectionResetError):  # nobody is there any more to be answered
                    await self._answer(live, question.end)
        finally:
            self._busy.discard(live.run.run_id)

    async def _answer(self, live: LiveRun, end: int) -> None:
        base = live.run.streams["pty"].parts[-1]
        data = await self._engine.screens.reply(live, base + end, REPLAY_BYTES)
        link = live.link
        if data and link is not None and not self.attendance.count(live.run.run_id):
            await link.ask("answer", data=base64.b64encode(data).decode(), of=end)
