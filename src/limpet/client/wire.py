"""One connection to the daemon: a request is written whole, its reply comes back as a future."""

import asyncio
from typing import Final, NamedTuple, cast

import httptools

from limpet.model.errors import Refusal


class UnreachableError(ConnectionError):
    """Nobody listens: nothing was sent."""


class LostError(ConnectionError):
    """The connection ended between request and reply: nobody here knows whether it was done."""


class Reply(NamedTuple):
    """What came back."""

    status: int
    body: bytes | bytearray
    server: bytes


class Wire(asyncio.Protocol):
    """A persistent HTTP/1.1 connection that carries one exchange at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop: Final = loop
        self._parser: Final = httptools.HttpResponseParser(self)
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._body: bytes | bytearray = b""
        self._server = b""

    @property
    def is_open(self) -> bool:
        """Whether another request can be tried on it."""
        return self._transport is not None and not self._transport.is_closing()

    def ask(self, request: bytes) -> asyncio.Future[Reply]:
        """Writes a request; the future fails with `LostError` when the connection ends first."""
        if self._transport is None:
            raise UnreachableError("the daemon ended the connection before anything was asked")
        assert self._reply is None
        self._reply = reply = self._loop.create_future()
        self._transport.write(request)
        return reply

    def drop(self) -> None:
        """Ends it at once; a daemon that is at work for it sees that and lets go."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's word that it stands."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's does not inherit from asyncio's

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """asyncio's word that it is gone."""
        self._transport = None
        if self._reply is not None and not self._reply.done():
            self._reply.set_exception(LostError("the daemon ended the connection"))
        self._reply = None

    def data_received(self, data: bytes) -> None:
        """Bytes of the reply."""
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            self.drop()  # what speaks there is not limpet: as good as lost

    def on_header(self, name: bytes, value: bytes) -> None:
        """Of the head only the server's version is of use."""
        if len(name) == 6 and name.lower() == b"server":
            self._server = value

    def on_body(self, data: bytes) -> None:
        """A piece of the answer, mostly all of it."""
        if not self._body:
            self._body = data
            return
        if isinstance(self._body, bytes):
            self._body = bytearray(self._body)
        self._body += data

    def on_message_complete(self) -> None:
        """The answer is whole."""
        reply, self._reply = self._reply, None
        body, self._body = self._body, b""
        if not self._parser.should_keep_alive():
            assert self._transport is not None
            self._transport.close()
        if reply is not None and not reply.done():
            reply.set_result(Reply(self._parser.get_status_code(), body, self._server))


class Pool:
    """The connections of one client: as many as there are calls under way, and some kept for the next."""

    def __init__(self, path: str, keep: int = 64) -> None:
        self._path: Final = path
        self._keep: Final = keep
        self._idle: Final[list[Wire]] = []
        self._busy: Final[set[Wire]] = set()

    async def exchange(self, request: bytes) -> Reply:
        """One request and its reply. A cancelled caller takes the connection along, so that the daemon sees it."""
        wire = self._take() or await self._open()
        self._busy.add(wire)
        try:
            reply = await wire.ask(request)
        except BaseException:
            wire.drop()
            raise
        finally:
            self._busy.discard(wire)
        if wire.is_open:
            if len(self._idle) < self._keep:
                self._idle.append(wire)
            else:
                wire.drop()
        return reply

    async def probe(self) -> None:
        """Makes sure that somebody listens."""
        wire = self._take() or await self._open()
        self._idle.append(wire)

    def close(self) -> None:
        """Ends them all; calls under way fail with `LostError`."""
        for wire in (*self._idle, *self._busy):
            wire.drop()
        self._idle.clear()

    def _take(self) -> Wire | None:
        while self._idle:
            wire = self._idle.pop()
            if wire.is_open:
                return wire
        return None

    async def _open(self) -> Wire:
        loop = asyncio.get_running_loop()
        try:
            _, wire = await loop.create_unix_connection(lambda: Wire(loop), self._path)
        except (FileNotFoundError, ConnectionError) as error:
            raise UnreachableError(str(error)) from None
        except OSError as error:
            code = "unauthorized" if isinstance(error, PermissionError) else "unavailable"
            raise Refusal(code, f"cannot connect to {self._path}: {error.strerror}", reason="cannot_connect") from None
        return wire
