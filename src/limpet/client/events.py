"""Events as they happen, over any number of connections: what a client hears with `async for`."""

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from limpet.client.wire import LostError
from limpet.model.errors import Refusal

if TYPE_CHECKING:
    from limpet.client.websocket import WebSocket


class Events:
    """Frames of the gateway: `event`, and `dropped` where some output was lost because this reader is slow.

    `async with client.events(...) as events` listens from there on, `async for frame in client.events(...)` from its
    first step on. A connection that is lost is made anew, and goes on where it was; `{"type": "missed", "count"}` where
    the daemon has not kept all since.
    """

    def __init__(self, connect: "Callable[[], Awaitable[WebSocket]]", subscription: dict[str, Any]) -> None:
        self._connect = connect
        self._subscription = subscription
        self._socket: WebSocket | None = None
        self._missed = 0

    async def __aenter__(self) -> Self:
        await self._listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> dict[str, Any]:
        while True:
            try:
                socket = self._socket or await self._listen()
                if self._missed:
                    missed, self._missed = self._missed, 0
                    return {"type": "missed", "count": missed}
                frame = await socket.next()
            except LostError:
                self.close()
                continue
            if frame["type"] == "event":
                self._subscription["after"] = frame["seq"]
            return frame

    def close(self) -> None:
        """Listens no more."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _listen(self) -> "WebSocket":
        while True:
            socket = await self._connect()
            try:
                answer = await socket.subscribe(self._subscription)
            except LostError:
                continue
            except BaseException:
                socket.close()
                raise
            if answer.get("reason") == "cursor_ahead" and self._subscription["after"]:
                self._subscription["after"] = 0  # the home has begun to count anew
                socket.close()
                continue
            if not answer["ok"]:
                socket.close()
                raise Refusal(answer["error"], answer["message"], field=answer.get("field"))
            if "after" not in self._subscription:
                self._subscription["after"] = answer["seq"]
            self._missed, self._socket = answer["missed"], socket
            return socket
