"""`client.backlog`: the operations `backlog.*`."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Unpack, cast

from limpet.client.methods.asking import Ask, AskNow, named
from limpet.client.types.backlog import BacklogAckAnswer, BacklogAckParams, BacklogTakeAnswer, BacklogTakeParams


class AsyncBacklog:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def take(self, **params: Unpack[BacklogTakeParams]) -> BacklogTakeAnswer:
        """Hands out what a session's watchers found; what is not acked in time comes back."""
        return cast("BacklogTakeAnswer", await self._ask("backlog.take", named(params)))

    async def ack(self, **params: Unpack[BacklogAckParams]) -> BacklogAckAnswer:
        """Removes for good what a take handed out."""
        return cast("BacklogAckAnswer", await self._ask("backlog.ack", named(params)))


class SyncBacklog:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: AskNow) -> None:
        self._ask = ask

    def take(self, **params: Unpack[BacklogTakeParams]) -> BacklogTakeAnswer:
        """Hands out what a session's watchers found; what is not acked in time comes back."""
        return cast("BacklogTakeAnswer", self._ask("backlog.take", named(params)))

    def ack(self, **params: Unpack[BacklogAckParams]) -> BacklogAckAnswer:
        """Removes for good what a take handed out."""
        return cast("BacklogAckAnswer", self._ask("backlog.ack", named(params)))
