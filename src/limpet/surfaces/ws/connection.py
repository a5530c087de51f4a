"""One WebSocket: its frames, its requests under way, and how far behind it is."""

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Final

from websockets.frames import CloseCode, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN
from websockets.server import ServerProtocol

from limpet.engine.feed import Event, Wanted
from limpet.model.errors import Refusal
from limpet.model.operation import Caller
from limpet.model.version import VERSION
from limpet.surfaces.ws.messages import (
    SUBSCRIBE,
    Req,
    answered,
    encode,
    id_of,
    refused,
    request_of,
    subscription_of,
    text_frame,
)
from limpet.surfaces.ws.slow import Behind
from limpet.surfaces.ws.wire import Wire

if TYPE_CHECKING:
    from collections.abc import Sequence

    from websockets.typing import Subprotocol

    from limpet.surfaces.ws.gateway import Gateway

MESSAGE_MAX_BYTES: Final = 16 << 20
FRAGMENTS_MAX: Final = 1024
REQUESTS_MAX: Final = 64
CLOSE_WITHIN_S: Final = 2.0
SUBPROTOCOL: Final = "limpet"
_HANDSHAKE: Final = (b"host:", b"connection:", b"upgrade:", b"sec-websocket-")


class Connection:
    """What goes on on one connection after the upgrade. The server's side of `limpet.surfaces.http.doors`."""

    def __init__(self, gateway: "Gateway", head: bytes, caller: Caller, wire: Wire) -> None:
        self.wanted: Wanted = gateway.all
        self.flows = True
        self.write: Final = wire.write
        self.wire: Final = wire
        self._gateway: Final = gateway
        self._caller: Final = caller
        self._loop: Final = asyncio.get_running_loop()
        self._protocol: Final = ServerProtocol(select_subprotocol=_subprotocol, max_size=MESSAGE_MAX_BYTES)
        self._behind: Final = Behind()
        self._parts: list[bytes | bytearray | memoryview] = []
        self._under_way: Final[set[asyncio.Task[None]]] = set()
        self._unread: Final[deque[bytes]] = deque()
        self._is_paused = False
        self._is_ending = False
        self._cut: asyncio.TimerHandle | None = None
        self._shake_hands(head)

    def _shake_hands(self, head: bytes) -> None:
        """Takes the few headers of the handshake: the rest was for the gate, and may be long."""
        first, *lines = head.split(b"\r\n")
        kept = [first, *(line for line in lines if line.lower().startswith(_HANDSHAKE)), b"", b""]
        self._protocol.receive_data(b"\r\n".join(kept))
        for request in self._protocol.events_received():
            assert isinstance(request, Request)
            response = self._protocol.accept(request)
            response.headers["Server"] = f"limpet/{VERSION}"
            self._protocol.send_response(response)
        self._flush()
        if self._protocol.state is OPEN:
            self.send(self._gateway.hello)
            self._gateway.join(self)
        else:
            self._end()

    # What comes in.

    def data_received(self, data: bytes) -> None:
        """Frames, cut anywhere."""
        if self._is_ending:
            return
        self._protocol.receive_data(data)
        if self._protocol.state is OPEN:
            self._flush()
        for frame in self._protocol.events_received():
            assert isinstance(frame, Frame)
            if frame.opcode in (Opcode.TEXT, Opcode.CONT):
                self._take(frame)
            elif frame.opcode is Opcode.BINARY:
                self._protocol.fail(CloseCode.UNSUPPORTED_DATA, "frames of text, please")
            if self._protocol.state is not OPEN:
                break
        self._flush()

    def eof_received(self) -> bool | None:
        """A client that sends no more gets no more."""
        return None

    def _take(self, frame: Frame) -> None:
        self._parts.append(frame.data)
        if not frame.fin:
            if len(self._parts) >= FRAGMENTS_MAX:
                self._protocol.fail(CloseCode.MESSAGE_TOO_BIG, f"more than {FRAGMENTS_MAX} fragments")
            return
        data = b"".join(self._parts)
        self._parts.clear()
        try:
            data.decode()
        except UnicodeDecodeError:
            self._protocol.fail(CloseCode.INVALID_DATA, "text is UTF-8")
            return
        self._unread.append(data)
        self._begin_requests()

    def _begin_requests(self) -> None:
        """As many at once as may be; what comes beyond is not read before one is answered."""
        while self._unread and len(self._under_way) < REQUESTS_MAX and not self._is_ending:
            data = self._unread.popleft()
            try:
                request = request_of(data)
                if request.method == SUBSCRIBE:
                    self._subscribe(request)
                    continue
            except Refusal as refusal:
                self.send(refused(id_of(data), refusal))
                continue
            task = self._loop.create_task(self._answer(request))
            self._under_way.add(task)
            task.add_done_callback(self._answered)
        self._mind_reading()

    def _mind_reading(self) -> None:
        """Whoever asks faster than is answered, or than it reads, is not read."""
        pause = not self._is_ending and (bool(self._unread) or not self.flows)
        if pause != self._is_paused:
            self._is_paused = pause
            if pause:
                self.wire.pause_reading()
            elif not self._is_ending:
                self.wire.resume_reading()

    async def _answer(self, request: Req) -> None:
        status, answer = await self._gateway.answer(request.method, bytes(request.params), self._caller)
        if status == 200 and isinstance(answer, bytes):
            self.send(answered(request.id, answer))
        else:
            assert isinstance(answer, dict)
            self.send(refused(request.id, answer))

    def _answered(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()
        if self._is_ending and not self._under_way:
            self._say_goodbye()
        else:
            self._begin_requests()

    def _subscribe(self, request: Req) -> None:
        asked, feed = subscription_of(bytes(request.params)), self._gateway.feed
        if asked.after is not None:
            feed.check(asked.after)
        self.wanted = feed.wanted(asked.events, asked.session)
        kept, missed = feed.after(feed.last_seq if asked.after is None else asked.after)
        told = {"ok": True, "events": sorted(self.wanted.names), "seq": feed.last_seq, "missed": missed}
        self.send(answered(request.id, encode(told)))
        for event in kept:
            if self.wanted.holds(event):
                self.tell(event, text_frame(event.frame))

    # What goes out.

    def send(self, data: bytes) -> None:
        """What the client is owed."""
        self._owe(text_frame(data))

    def tell(self, event: Event, frame: bytes) -> None:
        """One event, unless the client is behind and it is of the kind that may be lost."""
        if self.flows:
            self.write(frame)
        elif event.hint:
            self._behind.lose(event)
        else:
            self._owe(frame)

    def _owe(self, frame: bytes) -> None:
        if self._protocol.state is not OPEN:
            return
        if self.flows:
            self.write(frame)
        elif not self._behind.hold(frame):
            self._protocol.fail(CloseCode.TRY_AGAIN_LATER, "you read too slowly: connect again")
            self._flush()

    def pause_writing(self) -> None:
        """The client reads too slowly."""
        self.flows = False
        self._mind_reading()

    def resume_writing(self) -> None:
        """It has caught up; what it was owed may make it fall behind again."""
        self.flows = True
        while self._behind and self.flows and self._protocol.state is OPEN:
            self.write(self._behind.next())
        if self.flows:
            self._mind_reading()

    def ping(self) -> None:
        """Sends something, so that a network which is gone is noticed."""
        if self._protocol.state is OPEN and self.flows:
            self._protocol.send_ping(b"")
            self._flush()

    def _flush(self) -> None:
        """Sends what the protocol has to say for itself: pongs, and a close with its reason."""
        for data in self._protocol.data_to_send():
            if data:
                self.write(data)
            else:
                self._end()

    # The end.

    def shutdown(self) -> None:
        """The server stops: what is under way is answered, then the client is told to connect anew."""
        self._is_ending = True
        self._gateway.leave(self)
        self._cut = self._cut or self._loop.call_later(CLOSE_WITHIN_S, self.wire.abort)
        if not self._under_way:
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        if self._protocol.state is OPEN:
            self._protocol.fail(CloseCode.SERVICE_RESTART, "the daemon stops: runs go on")
            self._flush()

    def _end(self) -> None:
        """Says no more, and lets go when the client has, or soon: a close at once could overtake its own reason."""
        self._is_ending = True
        self._gateway.leave(self)
        self._mind_reading()
        self.wire.write_eof()
        self._cut = self._cut or self._loop.call_later(CLOSE_WITHIN_S, self.wire.abort)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """It is gone: what waits for it lets go."""
        self._is_ending = True
        self._gateway.leave(self)
        if self._cut is not None:
            self._cut.cancel()
        for task in self._under_way:
            task.cancel()
        self._unread.clear()


def _subprotocol(_protocol: ServerProtocol, offered: "Sequence[Subprotocol]") -> "Subprotocol | None":
    """Ours where it is offered: a browser that offers some wants one of them back. The token's never comes here."""
    return next((each for each in offered if each == SUBPROTOCOL), None)
