"""Serves the application on listening sockets, and stops so that no caller is left hanging."""

import asyncio
import os
import socket
from pathlib import Path
from typing import Final

import uvicorn
from uvicorn.server import ServerState

from limpet.model.version import VERSION
from limpet.surfaces.http.app import App
from limpet.surfaces.http.connection import Connection
from limpet.surfaces.http.seats import Seats
from limpet.surfaces.http.slow import Deadlines

GRACE_S: Final = 2.0
BACKLOG: Final = 4096
MAX_REMOTE: Final = 1000


class Server:
    """Listening sockets and their connections: uvicorn's protocol, not its loop, which wakes ten times a second."""

    def __init__(self, app: App, *listeners: socket.socket, max_remote: int = MAX_REMOTE) -> None:
        self._app: Final = app
        self._listeners: Final = listeners
        self._state: Final = ServerState()
        self._config: Final = uvicorn.Config(
            app,
            http=Connection,
            ws="none",
            interface="asgi3",
            lifespan="off",
            headers=[("server", f"limpet/{VERSION}")],
            log_config=None,
            log_level="error",  # a line for each piece of garbage would let anybody fill the log
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=24 * 3600,  # clients keep idle connections: one that closes under them costs a call
        )
        self._servers: list[asyncio.Server] = []
        self._deadlines: Final = Deadlines()
        self._seats: Final = Seats(max_remote)

    async def start(self) -> None:
        """Begins to accept."""
        self._config.load()
        self._state.default_headers = self._config.encoded_headers
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            listener.setblocking(False)
            create = loop.create_unix_server if listener.family == socket.AF_UNIX else loop.create_server
            self._servers.append(await create(self._connection, sock=listener, backlog=BACKLOG))

    async def close(self, grace_s: float = GRACE_S) -> None:
        """Accepts no more, cuts what waits (its callers are told `unavailable`), and closes every connection."""
        if not self._servers:
            return
        # asyncio's own server, once closed, loses what it has accepted and not begun: open, and served by nobody.
        for listener in self._listeners:
            asyncio.get_running_loop().remove_reader(listener)
        for _ in range(3):
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()
        self._app.calls.stop()
        for connection in tuple(self._state.connections):
            connection.shutdown()
        if self._state.tasks:
            await asyncio.wait(tuple(self._state.tasks), timeout=grace_s)
        gone = [connection.gone for connection in self._open() if not connection.gone.done()]
        if gone:
            await asyncio.wait(gone, timeout=grace_s)
        for connection in self._open():
            connection.transport.abort()
        self._deadlines.close()
        self._servers = []

    def _connection(self) -> Connection:
        return Connection(self._app, self._config, self._state, self._deadlines, self._seats)

    def _open(self) -> list[Connection]:
        return [connection for connection in self._state.connections if isinstance(connection, Connection)]


def listen(path: Path) -> socket.socket:
    """A listening Unix socket that only its owner may open; what another daemon left at the path is removed.

    Whoever calls it holds the home: nobody else listens there.
    """
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        os.fchmod(listener.fileno(), 0o600)  # bind gives the path this mode, whatever the umask takes from it
        listener.bind(os.fspath(path))
        path.chmod(0o600)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener


async def serve(
    app: App, *listeners: socket.socket, stop: asyncio.Event | None = None, max_remote: int = MAX_REMOTE
) -> None:
    """Serves until `stop` is set, or until it is cancelled; either way callers are told before it returns.

    On TCP not more than `max_remote` connections are open at once.
    """
    server = Server(app, *listeners, max_remote=max_remote)
    await server.start()
    try:
        await (stop or asyncio.Event()).wait()
    finally:
        await server.close()
