"""Ends connections that take too long over a message; costs a quick one nothing."""

import asyncio
from typing import Final, Protocol

HEAD_S: Final = 10.0
BODY_S: Final = 30.0
LINGER_S: Final = 2.0


class Slow(Protocol):
    """A connection in the middle of a message."""

    def give_up(self) -> None:
        """Ends it."""
        ...


class Deadlines:
    """Only connections whose message did not come in one piece are here, so mostly none, and then no timer runs."""

    def __init__(self) -> None:
        self._deadlines: Final[dict[Slow, float]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def head(self, connection: Slow) -> None:
        """A head has begun and is not whole: what trickles in does not win it time."""
        if connection not in self._deadlines:
            self._watch(connection, HEAD_S)

    def body(self, connection: Slow) -> None:
        """A body goes on: each piece wins it time."""
        self._watch(connection, BODY_S)

    def linger(self, connection: Slow) -> None:
        """It was answered before all of it had come: it may hear that, not for long."""
        self._watch(connection, LINGER_S)

    def whole(self, connection: Slow) -> None:
        """The message is there, or the connection has gone."""
        self._deadlines.pop(connection, None)

    def close(self) -> None:
        """Watches nothing more."""
        self._deadlines.clear()
        if self._timer is not None:
            self._timer.cancel()

    def _watch(self, connection: Slow, patience_s: float) -> None:
        loop = asyncio.get_running_loop()
        self._deadlines[connection] = loop.time() + patience_s
        if self._timer is None:
            self._timer = loop.call_later(1, self._look)

    def _look(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for connection in [late for late, deadline in self._deadlines.items() if deadline <= now]:
            del self._deadlines[connection]
            connection.give_up()
        self._timer = loop.call_later(1, self._look) if self._deadlines else None
