"""Everybody who is connected over WebSocket: each event is made into bytes once, and given to whoever wants it."""

import asyncio
import socket
import struct
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final

from limpet.engine.feed import Event, Feed, Wanted
from limpet.model.operation import Caller
from limpet.surfaces.ws.connection import Connection
from limpet.surfaces.ws.messages import SUBSCRIBE, hello, text_frame
from limpet.surfaces.ws.wire import Wire

PATH: Final = "/ws"
PING_S: Final = 3.0
SILENT_MS: Final = 9000
"""So long may what was sent over TCP go without any acknowledgement. A reader that was stopped acknowledges."""
SEND_BUFFER_BYTES: Final = 256 << 10
Answer = Callable[[str, bytes, Caller], Awaitable[tuple[int, bytes | dict[str, Any]]]]
# Of Linux's struct tcp_info: what is not acknowledged, and how long ago the last acknowledgement came.
_TCP_INFO: Final = struct.Struct("=24xI28xI")


class Gateway:
    """One for each server. `answer` calls an operation by name, as on every surface."""

    def __init__(self, feed: Feed, methods: Iterable[str], answer: Answer) -> None:
        self.feed: Final = feed
        self.answer: Final = answer
        self.all: Final[Wanted] = feed.wanted()
        self.hello: Final = hello(list(feed.names), [*methods, SUBSCRIBE])
        self.clients: Final[dict[Connection, None]] = {}
        self._unlisten: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def upgrade(self, head: bytes, caller: Caller, wire: Wire) -> Connection:
        """Takes a connection over that has passed the gate."""
        return Connection(self, head, caller, wire)

    def join(self, client: Connection) -> None:
        """From now on it hears events; all of them, until it subscribes to some."""
        if not self.clients:
            self._unlisten = self.feed.listen(self._tell)
        self.clients[client] = None
        if not _is_tcp(client.wire):
            return
        # Left to itself the system keeps megabytes for one that does not read.
        client.wire.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PING_S, self._look)

    def leave(self, client: Connection) -> None:
        """It hears no more."""
        self.clients.pop(client, None)
        if not self.clients and self._unlisten is not None:
            self._unlisten()
            self._unlisten = None

    def _tell(self, event: Event) -> None:
        frame, name, sessions = text_frame(event.frame), event.name, event.sessions
        for client in tuple(self.clients):
            names, session = client.wanted
            if name in names and (session is None or session in sessions):
                if client.flows:
                    client.write(frame)
                else:
                    client.tell(event, frame)

    def _look(self) -> None:
        """Drops those whose network is gone. Runs only while somebody is connected over TCP."""
        remote = [client for client in self.clients if _is_tcp(client.wire)]
        for client in remote:
            if _is_silent(client.wire):
                client.wire.abort()
            else:
                client.ping()
        self._timer = asyncio.get_running_loop().call_later(PING_S, self._look) if remote else None


def _is_tcp(wire: Wire) -> bool:
    peer = wire.get_extra_info("socket")
    return peer is not None and peer.family in (socket.AF_INET, socket.AF_INET6)


def _is_silent(wire: Wire) -> bool:
    try:
        info = wire.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _TCP_INFO.size)
    except OSError:  # it was closed this moment
        return False
    unacknowledged, last_ack_ms = _TCP_INFO.unpack(info)
    return unacknowledged > 0 and last_ack_ms > SILENT_MS
