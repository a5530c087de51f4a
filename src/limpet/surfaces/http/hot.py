"""One call on the hot route: its body as it comes in, its handler's task, and its answer in one write."""

import asyncio
from typing import TYPE_CHECKING, Final

from limpet.model.errors import CODES, Refusal
from limpet.model.operation import Caller
from limpet.model.version import VERSION
from limpet.surfaces.http.calls import Calls
from limpet.surfaces.http.head import BODY_MAX_BYTES, too_large
from limpet.surfaces.http.problem import MEDIA_TYPE, problem

if TYPE_CHECKING:
    from limpet.surfaces.http.connection import Connection

_TAIL: Final = f"\r\nserver: limpet/{VERSION}\r\n".encode()
_ASK_FOR_TOKEN: Final = b'www-authenticate: Bearer realm="limpet"\r\n'
_OK: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json" + _TAIL
_COPY_MAX_BYTES: Final = 64 * 1024


class Hot:
    """Stands in for uvicorn's own request cycle, whose public fields it has, without an ASGI scope and its messages."""

    __slots__ = (
        "body",
        "caller",
        "connection",
        "disconnected",
        "keep_alive",
        "message_event",
        "more_body",
        "name",
        "refusal",
        "response_complete",
        "status",
        "task",
    )

    def __init__(self, connection: "Connection", name: str, caller: Caller) -> None:
        self.connection = connection
        self.name = name
        self.caller = caller
        self.refusal: Refusal | None = None
        self.status: int | None = None
        self.task: asyncio.Task[None] | None = None
        self.body: bytes | bytearray = b""
        self.more_body = True
        self.message_event = asyncio.Event()
        self.response_complete = False
        self.disconnected = False
        self.keep_alive = True

    def take(self, data: bytes) -> None:
        """More of the body."""
        if not self.body:
            self.body = data
            return
        if len(self.body) + len(data) > BODY_MAX_BYTES:
            self.refuse(too_large())
            return
        if isinstance(self.body, bytes):
            self.body = bytearray(self.body)
        self.body += data

    def refuse(self, refusal: Refusal, status: int | None = None) -> None:
        """Answers without waiting for the rest, which nobody will read: the connection ends with the answer."""
        self.refusal = refusal
        self.status = status or CODES[refusal.code]
        self.keep_alive = False
        self.body = b""
        self.more_body = False
        self.message_event.set()

    async def run(self, calls: Calls) -> None:
        """Waits for the body if it is not all there, calls the row, and writes the answer."""
        while self.more_body:
            await self.message_event.wait()
            self.message_event.clear()
            if self.disconnected:
                return
        if self.connection.flow.write_paused:
            await self.connection.flow.drain()
        if self.refusal is None:
            status, answer = await calls.answer(self.name, self.body, self.caller)
        else:
            status, answer = self.status or 500, self.refusal.answer()
        self.body = b""
        if not self.disconnected:
            self._write(status, answer if isinstance(answer, bytes) else problem(status, answer))

    def _write(self, status: int, body: bytes) -> None:
        head = _OK if status == 200 else b"HTTP/1.1 %d -\r\ncontent-type: %b%b" % (status, MEDIA_TYPE.encode(), _TAIL)
        close = b"" if self.keep_alive else b"connection: close\r\n"
        if status == 401:
            close += _ASK_FOR_TOKEN
        request_id = self.caller.request_id.encode()
        head = b"%bcontent-length: %d\r\nx-request-id: %b\r\n%b\r\n" % (head, len(body), request_id, close)
        transport = self.connection.transport
        if len(body) < _COPY_MAX_BYTES:
            transport.write(head + body)
        else:
            transport.writelines((head, body))
        self.response_complete = True
        if not self.keep_alive:
            self.connection.hang_up()
        self.connection.on_response_complete()
