"""An asyncio loop on the world's clock: no threads and no waiting; callbacks in the order that asyncio promises."""

import asyncio
import socket
from asyncio import base_events
from collections.abc import Callable
from typing import Any

from limpet.testing.simulation.world import World


class Crash(SystemExit):
    """The daemon's process ends here: raised through everything, at once."""


class Dead(BaseException):
    """What a process meets that is no more: its last callbacks reach nothing."""


class VirtualLoop(base_events.BaseEventLoop):
    """The daemon's loop. What threads would do happens in between, in one piece; `is_alive` until its process ends."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self.world = world
        self.is_alive = True
        self.transports: list[SocketTransport] = []
        self.readers: dict[int, Callable[[], object]] = {}
        self._clock_resolution = 1e-9
        self._selector = self

    # What asyncio's own loop asks of a selector.

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None or timeout > 0:
            self.world.step(None if timeout is None else self.world.now_s + timeout)
        return []

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def time(self) -> float:
        return self.world.now_s

    def after(self, delay_s: float | None, call: Callable[[], object]) -> None:
        """Has something happen later, unless the process has ended by then; None: as long as things take."""

        def happen() -> None:
            if self.is_alive:
                call()

        if delay_s is None:
            self.world.soon(happen)
        else:
            self.world.after(delay_s, happen)

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:  # noqa: ARG002
        future: asyncio.Future[Any] = self.create_future()

        def work() -> None:
            try:
                result, error = func(*args), None
            except Exception as failure:  # noqa: BLE001  (the future's, as in a real executor)
                result, error = None, failure
            self.after(None, lambda: answer(result, error))

        def answer(result: Any, error: Exception | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        self.after(None, work)
        return future

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Any = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if self.is_alive and not isinstance(error, Dead):
            raise self.world.violation(f"nobody caught it: {context.get('message')} {error!r}") from error

    def add_reader(self, fd: Any, callback: Any, *args: Any) -> None:
        self.readers[fd] = lambda: callback(*args)

    def remove_reader(self, fd: Any) -> bool:
        return self.readers.pop(fd, None) is not None

    def readable(self, fd: int) -> None:
        """Somebody wrote to that descriptor."""
        self.after(None, lambda: self.readers[fd]() if fd in self.readers else None)

    async def create_unix_connection(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, protocol_factory: Callable[[], asyncio.Protocol], *, sock: "ConnectedSocket"
    ) -> tuple[asyncio.BaseTransport, asyncio.BaseProtocol]:
        protocol = protocol_factory()
        transport = SocketTransport(self, sock, protocol)
        self.transports.append(transport)
        protocol.connection_made(transport)
        return transport, protocol

    def end(self) -> None:
        """What the tasks of an ended process would still do reaches nobody."""
        self.is_alive = False
        for transport in self.transports:
            transport.hang_up()
        self.readers.clear()
        for _ in range(100):
            tasks = asyncio.all_tasks(self)
            if not tasks:
                break
            for task in tasks:
                task.cancel()
            self.call_soon(self.stop)
            self.run_forever()
        self.close()


class ConnectedSocket(socket.socket):
    """The daemon's end of a connection to a keeper; `poke` lets the keeper look at its end."""

    poke: Callable[[], object]
    transport: "SocketTransport | None" = None


class SocketTransport(asyncio.Transport):
    """A connection to a keeper."""

    def __init__(self, loop: VirtualLoop, connected: ConnectedSocket, protocol: asyncio.Protocol) -> None:
        super().__init__()
        self._loop = loop
        self._socket = connected
        self._protocol = protocol
        self._is_awaited = False
        self._is_closing = False
        connected.transport = self

    def write(self, data: Any) -> None:
        if self._is_closing or not self._loop.is_alive:
            return
        try:
            self._socket.send(data)
        except OSError:
            self.arrive()
        else:
            self._socket.poke()

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing and self._loop.is_alive:
            self._lose()

    def _lose(self) -> None:
        self.hang_up()
        self._loop.call_soon(self._protocol.connection_lost, None)

    def hang_up(self) -> None:
        """The socket is closed, and nothing is said about it on this side."""
        if not self._is_closing:
            self._is_closing = True
            self._socket.close()
            self._socket.poke()

    def arrive(self) -> None:
        """Something may be there to be read."""
        if not (self._is_awaited or self._is_closing):
            self._is_awaited = True
            self._loop.after(None, self._receive)

    def _receive(self) -> None:
        self._is_awaited = False
        if self._is_closing:
            return
        try:
            data = self._socket.recv(1 << 16)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._lose()
            return
        # On the loop's own turn, as asyncio does it.
        self._loop.call_soon(self._protocol.data_received, data)
        self.arrive()
