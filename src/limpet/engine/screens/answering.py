"""Answers what programs ask their terminal, where nobody looks at it: as a terminal of theirs would, once."""

from __future__ import annotations

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


class Attendance:
    """The terminals that look at a run now, the first of which answers."""

    def __init__(self) -> None:
        self._present: dict[str, dict[object, None]] = {}

    @contextlib.contextmanager
    def of(self, run_id: str) -> Generator[object]:
        """Meanwhile one more terminal looks at the run."""
        who = object()
        self._present.setdefault(run_id, {})[who] = None
        try:
            yield who
        finally:
            self._present[run_id].pop(who)
            if not self._present[run_id]:
                del self._present[run_id]

    def is_any(self, run_id: str) -> bool:
        return run_id in self._present


class Answering:
    """One for all runs of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.attendance = Attendance()
        self._busy: set[str] = set()

    def hear(self, live: LiveRun) -> None:
        """Sees to what was asked, unless that is under way."""
        if live.questions and live.run.run_id not in self._busy:
            self._busy.add(live.run.run_id)
            self._engine.later(lambda: self._answer_all(live))

    async def _answer_all(self, live: LiveRun) -> None:
        try:
            while live.questions:
                question = live.questions.pop(0)
                is_stale = clock.now_ms() - question.at > STALE_MS
                if live.link is None or is_stale or self.attendance.is_any(live.run.run_id):
                    continue
                with contextlib.suppress(Refusal, ConnectionResetError):  # nobody is there any more to be answered
                    await self._answer(live, question.end)
        finally:
            self._busy.discard(live.run.run_id)

    async def _answer(self, live: LiveRun, end: int) -> None:
        base = live.run.streams["pty"].parts[-1]
        data = await self._engine.screens.reply(live, base + end, REPLAY_BYTES)
        link = live.link
        if data and link is not None and not self.attendance.is_any(live.run.run_id):
            await link.ask("answer", data=base64.b64encode(data).decode(), of=end)
