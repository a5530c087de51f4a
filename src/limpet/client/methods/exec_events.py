"""`client.exec_events`: the operations `exec_events.*`."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Unpack, cast

from limpet.client.methods.asking import Ask, AskNow, named
from limpet.client.types.exec_events import ExecEventsRecentAnswer, ExecEventsRecentParams


class AsyncExecEvents:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def recent(self, **params: Unpack[ExecEventsRecentParams]) -> ExecEventsRecentAnswer:
        """The latest events of runs of whitelisted programs, behind a number; waits for the next if asked to."""
        return cast("ExecEventsRecentAnswer", await self._ask("exec_events.recent", named(params)))


class SyncExecEvents:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: AskNow) -> None:
        self._ask = ask

    def recent(self, **params: Unpack[ExecEventsRecentParams]) -> ExecEventsRecentAnswer:
        """The latest events of runs of whitelisted programs, behind a number; waits for the next if asked to."""
        return cast("ExecEventsRecentAnswer", self._ask("exec_events.recent", named(params)))
