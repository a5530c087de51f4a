"""The connection to one keeper: requests and replies by number, wakeups as they come. See docs/formats/keeper.md."""

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from limpet.model.errors import Refusal
from limpet.store.run_directory import CONTROL_SOCKET
from limpet_keeper import PROTOCOL

REPLY_WITHIN_S: Final = 30.0

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(dict[str, Any])

Reply = dict[str, Any]


class KeeperLink(asyncio.Protocol):
    """Open for as long as the keeper lives; `on_wake` is called after each wakeup, `on_lost` once, at the end."""

    def __init__(self) -> None:
        self.on_wake: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None
        self.is_open = False
        self.stalled: Reply | None = None
        self._transport: asyncio.Transport | None = None
        self._unread = b""
        self._last_id = 0
        self._waiting: dict[int, asyncio.Future[Reply]] = {}

    @classmethod
    async def connect(cls, directory: Path, wake: str, within_s: float | None = REPLY_WITHIN_S) -> "KeeperLink":
        """A link that has said hello and was answered. OSError when no keeper listens there."""
        connected = dial(directory)
        _, link = await asyncio.get_running_loop().create_unix_connection(cls, sock=connected)
        try:
            answer = await link.ask("hello", within_s=within_s, protocol=PROTOCOL, wake=wake)
        except BaseException:
            link.close()
            raise
        link.stalled = answer.get("stalled")
        return link

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self.is_open = True

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.is_open = False
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ConnectionResetError("the keeper is gone"))
        self._waiting.clear()
        self.on_lost()

    def data_received(self, data: bytes) -> None:
        *lines, self._unread = (self._unread + data).split(b"\n")
        woken = False
        for line in lines:
            frame = _decoder.decode(line)
            if "re" in frame:
                future = self._waiting.pop(frame["re"], None)
                if future is not None and not future.done():
                    future.set_result(frame)
            else:
                woken = True
                if "stalled" in frame:
                    self.stalled = frame["stalled"]
        if woken:
            self.on_wake()

    def post(self, do: str, **fields: Any) -> int:
        """Sends a request whose reply nobody waits for; its number."""
        if self._transport is None or not self.is_open:
            raise ConnectionResetError("the keeper is gone")
        self._last_id += 1
        self._transport.write(_encoder.encode({"do": do, "id": self._last_id, **fields}) + b"\n")
        return self._last_id

    def begin(self, do: str, **fields: Any) -> tuple[int, asyncio.Future[Reply]]:
        """Sends a request at once; its number, and its reply to come. Where the keeper is gone, the reply fails."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        try:
            number = self.post(do, **fields)
        except ConnectionResetError as gone:
            future.set_exception(gone)
            return self._last_id, future
        self._waiting[number] = future
        return number, future

    async def ask(self, do: str, *, within_s: float | None = REPLY_WITHIN_S, **fields: Any) -> Reply:
        """The reply to one request, `ok` or not. A keeper that does not answer in time is `unavailable`."""
        number, future = self.begin(do, **fields)
        try:
            async with asyncio.timeout(within_s):
                return await future
        except TimeoutError:
            message = "the run's keeper does not answer (stopped, perhaps): the run goes on; ask again"
            raise Refusal("unavailable", message, reason="unresponsive") from None
        except asyncio.CancelledError:
            if do == "write" and self.is_open:
                self.post("cancel", of=number)  # what the command has not read yet is not written for nobody
            raise
        finally:
            self._waiting.pop(number, None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


def dial(directory: Path) -> socket.socket:
    """A socket to the keeper in there. By descriptor: a directory may lie deeper than a socket's address is long."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    connected = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        by_handle = f"/proc/self/fd/{handle}/{CONTROL_SOCKET}"
        connected.connect(by_handle if os.path.exists("/proc/self/fd") else str(directory / CONTROL_SOCKET))  # noqa: PTH110
    except OSError:
        connected.close()
        raise
    finally:
        os.close(handle)
    connected.setblocking(False)
    return connected
