"""One WebSocket to the daemon: calls by their ids, and frames that come unasked, in order and never without bound."""

import asyncio
from collections import deque
from typing import Any, Final, Self, cast

from websockets.client import ClientProtocol
from websockets.frames import Frame, Opcode
from websockets.http11 import Response
from websockets.protocol import OPEN
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from limpet.client.codec import Codec
from limpet.client.wire import LostError, UnreachableError

HELLO_S: Final = 30.0
UNREAD_MAX: Final = 1000
"""So many frames wait for whoever listens; then the daemon has to wait, and drops output for this client."""


class WebSocket(asyncio.Protocol):
    """Ends with `LostError` for whoever still waits."""

    def __init__(self, codec: Codec) -> None:
        self.hello: dict[str, Any] = {}
        self._codec: Final = codec
        self._protocol: Final = ClientProtocol(
            parse_uri("ws://localhost/ws"), subprotocols=[Subprotocol("limpet")], max_size=None
        )
        self._transport: asyncio.Transport | None = None
        self._parts: list[bytes | bytearray | memoryview] = []
        self._unread: Final[deque[dict[str, Any]]] = deque()
        self._answers: Final[dict[int, asyncio.Future[dict[str, Any]]]] = {}
        self._last_id = 0
        self._forgets_at = 0
        self._is_lost = False
        self._is_paused = False
        self._news = asyncio.Event()

    @classmethod
    async def open(cls, path: str, codec: Codec) -> Self:
        """A connection that was said hello to."""
        try:
            _, opened = await asyncio.get_running_loop().create_unix_connection(lambda: cls(codec), path)
        except (FileNotFoundError, ConnectionError) as error:
            raise UnreachableError(str(error)) from None
        try:
            async with asyncio.timeout(HELLO_S):
                opened.hello = await opened.next()
        except BaseException:
            opened.close()
            raise
        return opened

    async def subscribe(self, subscription: dict[str, Any]) -> dict[str, Any]:
        """The answer. Frames that came before it are forgotten: they come again behind it, or are not wanted."""
        self._forgets_at = self._last_id + 1
        return await self.call("subscribe", subscription)

    async def call(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer, failures too."""
        if self._is_lost:
            raise LostError("the daemon ended the connection")
        self._last_id += 1
        request = {"type": "req", "id": self._last_id, "method": method, "params": params or {}}
        answer = self._answers[self._last_id] = asyncio.get_running_loop().create_future()
        self._protocol.send_text(self._codec.encode(request))
        self._flush()
        frame = await answer
        found: dict[str, Any] = frame["payload"] if frame["ok"] else frame["error"]
        return found

    async def next(self) -> dict[str, Any]:
        """The next frame that is no answer."""
        while not self._unread:
            if self._is_lost:
                raise LostError("the daemon ended the connection")
            self._news.clear()
            await self._news.wait()
        frame = self._unread.popleft()
        if self._is_paused and len(self._unread) < UNREAD_MAX // 2 and self._transport is not None:
            self._is_paused = False
            self._transport.resume_reading()
        return frame

    def close(self) -> None:
        """Ends it at once."""
        if self._transport is not None:
            self._transport.abort()

    # asyncio's side.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asks to be taken for a WebSocket."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from asyncio's
        self._protocol.send_request(self._protocol.connect())
        self._flush()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Whoever waits is told."""
        self._transport = None
        self._is_lost = True
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(LostError("the daemon ended the connection"))
        self._answers.clear()
        self._news.set()

    def data_received(self, data: bytes) -> None:
        """Frames, cut anywhere."""
        self._protocol.receive_data(data)
        for event in self._protocol.events_received():
            if isinstance(event, Response):
                if self._protocol.handshake_exc is not None:
                    self.close()
            elif isinstance(event, Frame) and event.opcode in (Opcode.TEXT, Opcode.CONT):
                self._parts.append(event.data)
                if event.fin:
                    self._take(b"".join(self._parts))
                    self._parts.clear()
        self._flush()
        if self._protocol.state is not OPEN:
            self.close()

    def _take(self, data: bytes) -> None:
        frame: dict[str, Any] = self._codec.decode(data)
        if frame["type"] == "res":
            if frame["id"] == self._forgets_at:
                self._unread.clear()
            answer = self._answers.pop(frame["id"], None)
            if answer is not None and not answer.done():
                answer.set_result(frame)
            return
        self._unread.append(frame)
        self._news.set()
        if len(self._unread) >= UNREAD_MAX and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()

    def _flush(self) -> None:
        for data in self._protocol.data_to_send():
            if data and self._transport is not None:
                self._transport.write(data)
