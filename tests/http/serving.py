"""A real server over the rows that only try things, and a caller who writes HTTP by hand."""

import asyncio
import json
import threading
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from limpet.surfaces.http.app import App, build
from limpet.surfaces.http.doors import Door
from limpet.surfaces.http.serve import Server, listen
from limpet.surfaces.http.tcp import listen_tcp

from .rows import ROWS, Engine

TOKEN = "the-token-of-these-tests-0123456789"


@dataclass
class Place:
    """A server and its engine."""

    socket: Path
    engine: Engine
    server: Server
    app: App
    port: int


@asynccontextmanager
async def serving(home: Path, engine: Engine | None = None, doors: Sequence[Door] = ()) -> AsyncGenerator[Place]:
    """A server in this loop, on `<home>/daemon.sock` and on a port of 127.0.0.1."""
    engine = engine or Engine()
    socket = home / "daemon.sock"
    app = build(
        ROWS, engine, doors=doors, token=TOKEN, hosts=["listed.example:8080"], origins=["https://listed.example"]
    )
    with listen(socket) as listener, listen_tcp("127.0.0.1", 0) as remote:
        server = Server(app, listener, remote)
        await server.start()
        try:
            yield Place(socket, engine, server, app, remote.getsockname()[1])
        finally:
            await server.close()


@dataclass
class Reply:
    """One answer."""

    status: int
    headers: dict[str, str]
    body: bytes = field(repr=False)

    def json(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(self.body)
        return answer


class Caller:
    """One connection, every byte of it under the test's control."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def reply(self) -> Reply:
        """The next answer; 100 Continue is passed over."""
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        status = int(head.split()[1])
        if status == 100:
            return await self.reply()
        lines = [line.partition(":") for line in head.split("\r\n")[1:] if line]
        headers = {name.lower(): value.strip() for name, _, value in lines}
        return Reply(status, headers, await self.reader.readexactly(int(headers["content-length"])))

    async def is_closed(self) -> bool:
        """Waits for the server to end the connection."""
        try:
            return await self.reader.read(1) == b""
        except ConnectionError:
            return True


@asynccontextmanager
async def calling(place: Place, *, tcp: bool = False) -> AsyncGenerator[Caller]:
    """A connection."""
    if tcp:
        reader, writer = await asyncio.open_connection("127.0.0.1", place.port)
    else:
        reader, writer = await asyncio.open_unix_connection(place.socket)
    try:
        yield Caller(reader, writer)
    finally:
        writer.close()


def post(
    operation: str, body: bytes = b"{}", headers: str = "Content-Type: application/json\r\n", length: int | None = None
) -> bytes:
    """A call's bytes."""
    size = len(body) if length is None else length
    head = f"POST /v1/call/{operation} HTTP/1.1\r\nHost: limpet\r\n{headers}Content-Length: {size}\r\n\r\n"
    return head.encode() + body


async def ask(place: Place, request: bytes, *, tcp: bool = False) -> Reply:
    """One request on a connection of its own."""
    async with calling(place, tcp=tcp) as caller:
        caller.send(request)
        return await caller.reply()


@contextmanager
def served(home: Path) -> Generator[Place]:
    """A server in a thread of its own, for callers who have no loop."""
    ready = threading.Event()
    running: list[tuple[Place, asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with serving(home) as place:
            done = asyncio.Event()
            running.append((place, asyncio.get_running_loop(), done))
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    assert ready.wait(20)
    place, loop, done = running[0]
    try:
        yield place
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(20)
