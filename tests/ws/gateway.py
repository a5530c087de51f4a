"""A gateway on a real server in this loop, a feed to publish on, and a client who writes frames by hand."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limpet.engine.feed import Feed
from limpet.model.operation import Caller
from limpet.surfaces.http.calls import Calls
from limpet.surfaces.http.doors import Door, Upgraded, Wire
from limpet.surfaces.ws.gateway import PATH, Gateway
from tests.http.rows import ROWS
from tests.http.serving import TOKEN, Place, serving

NAMES = ("exec.started", "exec.output", "exec.completed")
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


@dataclass
class Stage:
    """The server, its feed and its gateway."""

    place: Place
    feed: Feed
    gateway: Gateway

    def say(self, name: str = "exec.completed", run_id: str = "r1", offset: int = 0, size: int = 10) -> None:
        """Publishes one event."""
        place = ("stdout", offset) if name == "exec.output" else None
        payload = {"execId": run_id, "output": "x" * size}
        self.feed.publish(name, payload, run_id=run_id, sessions=("s1",), place=place)


@asynccontextmanager
async def stage(home: Path) -> AsyncGenerator[Stage]:
    """On `<home>/daemon.sock` and on a port."""
    feed = Feed(NAMES)
    door: list[Gateway] = []

    def upgrade(head: bytes, caller: Caller, wire: Wire) -> Upgraded:
        return door[0].upgrade(head, caller, wire)

    async with serving(home, doors=[Door(PATH, upgrade=upgrade)]) as place:
        calls: Calls = place.app.calls
        door.append(Gateway(feed, [row.name for row in ROWS], calls.answer))
        yield Stage(place, feed, door[0])


def frame(
    data: bytes, opcode: int = TEXT, *, fin: bool = True, mask: bool = True, rsv: int = 0, length: int | None = None
) -> bytes:
    """A client's frame, whatever is wrong with it."""
    size = len(data) if length is None else length
    head = bytes([(fin << 7) | (rsv << 4) | opcode])
    bit = 0x80 if mask else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 1 << 16:
        head += bytes([bit | 126]) + struct.pack("!H", size)
    else:
        head += bytes([bit | 127]) + struct.pack("!Q", size)
    if not mask:
        return head + data
    key = os.urandom(4)
    return head + key + bytes(byte ^ key[place % 4] for place, byte in enumerate(data))


@dataclass
class Frame:
    """A server's frame."""

    opcode: int
    data: bytes

    def json(self) -> dict[str, Any]:
        assert self.opcode == TEXT, self
        found: dict[str, Any] = json.loads(self.data)
        return found

    @property
    def code(self) -> int:
        """Why it closes."""
        assert self.opcode == CLOSE, self
        return int.from_bytes(self.data[:2], "big")


class Client:
    """One connection, every byte of it under the test's control."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.head = b""

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def shake_hands(self, more: str = "", host: str = "localhost", version: str = "13") -> bytes:
        """The server's head."""
        self.send(
            f"GET /ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: {version}\r\n{more}\r\n".encode()
        )
        self.head = await self.reader.readuntil(b"\r\n\r\n")
        return self.head

    async def frame(self) -> Frame:
        first, second = await self.reader.readexactly(2)
        size = second & 0x7F
        if size == 126:
            size = int.from_bytes(await self.reader.readexactly(2), "big")
        elif size == 127:
            size = int.from_bytes(await self.reader.readexactly(8), "big")
        return Frame(first & 0xF, await self.reader.readexactly(size))

    def request(self, method: str, request_id: int = 1) -> None:
        """Asks, and leaves the answer to be read."""
        self.send(frame(json.dumps({"type": "req", "id": request_id, "method": method}).encode()))

    async def ask(self, method: str, params: dict[str, Any] | None = None, request_id: Any = 1) -> dict[str, Any]:
        """The next frame, which is the answer."""
        request: dict[str, Any] = {"type": "req", "id": request_id, "method": method, "params": params or {}}
        self.send(frame(json.dumps(request).encode()))
        return (await self.frame()).json()

    async def is_closed(self) -> bool:
        """Waits for the server to end the connection; what it still sends is thrown away."""
        try:
            while await self.reader.read(1 << 16):
                pass
        except ConnectionError:
            pass
        return True


@asynccontextmanager
async def connected(
    stage: Stage, *, tcp: bool = False, receive_bytes: int | None = None, shake: bool = True
) -> AsyncGenerator[Client]:
    """A client that was said hello to; with `receive_bytes` one whose system keeps little for it."""
    family = socket.AF_INET if tcp else socket.AF_UNIX
    connection = socket.socket(family, socket.SOCK_STREAM)
    if receive_bytes is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    connection.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(connection, ("127.0.0.1", stage.place.port) if tcp else str(stage.place.socket))
    reader, writer = await asyncio.open_connection(sock=connection, limit=1 << 16)
    client = Client(reader, writer)
    try:
        if shake:
            token = f"Authorization: Bearer {TOKEN}\r\n" if tcp else ""
            await client.shake_hands(token, f"127.0.0.1:{stage.place.port}" if tcp else "localhost")
            assert (await client.frame()).json()["type"] == "hello"
        yield client
    finally:
        writer.close()
