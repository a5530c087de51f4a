"""One HTTP connection: whose it is, what its heads may weigh, and the hot route taken out of uvicorn's hands."""

import asyncio
import logging
import os
import resource
import socket
import struct
from typing import Any, Final, cast

from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from limpet.model.errors import Refusal
from limpet.surfaces.http.app import App
from limpet.surfaces.http.head import CALL, judge
from limpet.surfaces.http.hot import Hot
from limpet.surfaces.http.problem import MEDIA_TYPE, problem
from limpet.surfaces.http.slow import Deadlines

LOCAL_HEAD_MAX_BYTES: Final = 4 * 1024 * 1024
"""On the Unix socket a caller's whole environment travels in the head."""
REMOTE_HEAD_MAX_BYTES: Final = 32 * 1024
# So few descriptors are left to runs: who comes now is told so as soon as it asks, and the last ones before that.
FEW_DESCRIPTORS: Final = 16
LAST_DESCRIPTORS: Final = 6
_CROWDED: Final = Refusal(
    "unavailable",
    "too many connections for the daemon's limit of open files: close some, ask again, or raise the limit",
    reason="too_many_connections",
)
_CALL: Final = CALL.encode()
_PEER: Final = struct.Struct("3i")
_log: Final = logging.getLogger("limpet.http")


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, but that a call is answered by `Hot`: no scope, no ASGI messages, one write."""

    cycle: Any  # uvicorn's own, or a Hot

    def __init__(self, app: App, config: Config, state: ServerState, deadlines: Deadlines) -> None:
        super().__init__(config, state, {})
        self.gone: Final[asyncio.Future[None]] = self.loop.create_future()
        self._calls: Final = app.calls
        self._local: Final = app.local
        self._head_max_bytes: Final = LOCAL_HEAD_MAX_BYTES if app.local else REMOTE_HEAD_MAX_BYTES
        self._deadlines: Final = deadlines
        self._in_head = False
        self._head_bytes = 0
        self._chunk_bytes = 0
        self._slow = False
        self._is_crowded = False
        self._running: Hot | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Lets in who may come in: on a Unix socket the daemon's own user, and root."""
        super().connection_made(transport)
        peer: socket.socket = transport.get_extra_info("socket")
        if peer.family != socket.AF_UNIX:
            return
        left = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - peer.fileno()
        if left <= FEW_DESCRIPTORS:
            self._is_crowded = True
            self._deadlines.head(self)
        if left <= LAST_DESCRIPTORS:
            self._end(503, _CROWDED)
            return
        _, uid, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        if uid not in (os.geteuid(), 0):
            _log.warning("refused a connection of uid %d", uid)
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller has gone: what waits for it lets go."""
        super().connection_lost(exc)
        self._deadlines.whole(self)
        if self._running is not None and self._running.task is not None:
            self._running.disconnected = True
            self._running.task.cancel()
        self.pipeline.clear()
        self.gone.set_result(None)

    def data_received(self, data: bytes) -> None:
        """Parses; a message that is not whole yet gets a deadline, a head a limit."""
        self._chunk_bytes = len(data)
        super().data_received(data)
        if self._in_head:
            if self._slow:  # the first piece may hold the end of another message, so it is not counted
                self._head_bytes += len(data)
            self._slow = True
            self._deadlines.head(self)
            if self._head_bytes > self._head_max_bytes:
                self._end(431, self._head_too_large())
        elif isinstance(self.cycle, Hot) and self.cycle.more_body:
            self._slow = True
            self._deadlines.body(self)
        elif self._slow:
            self._slow = False
            self._deadlines.whole(self)

    def on_message_begin(self) -> None:
        """Nothing yet but the head's beginnings: a scope is made only for what needs one."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """Takes the hot route, or leaves the rest to uvicorn and the application."""
        self._in_head = False
        if self._head_bytes + self._chunk_bytes > self._head_max_bytes and self._head_is_too_large():
            self._end(431, self._head_too_large())
        elif self._is_crowded:
            self._end(503, _CROWDED)
        elif self._is_hot():
            self._call()
        else:
            url, headers, expect = self.url, self.headers, self.expect_100_continue
            super().on_message_begin()
            self.url = url
            self.headers.extend(headers)
            self.expect_100_continue = expect
            super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """A piece of a body, to whom it belongs."""
        cycle = self.cycle
        if not isinstance(cycle, Hot):
            super().on_body(body)
        elif cycle.more_body:
            cycle.take(body)

    def on_response_complete(self) -> None:
        """The next request of a pipeline, if one waits."""
        if not isinstance(self.cycle, Hot):
            super().on_response_complete()
        elif not self.transport.is_closing():
            self.flow.resume_reading()
            if self.pipeline:
                self._start_asgi_task(*self.pipeline.pop())

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """What is no HTTP gets a problem and no second chance."""
        self._end(400, Refusal("invalid_argument", "this is no valid HTTP/1.1: see what sent it"))

    def give_up(self) -> None:
        """The message took too long."""
        self._end(408, Refusal("invalid_argument", "the request took too long to arrive: send it at once"))

    def _is_hot(self) -> bool:
        parser = self.parser
        assert parser is not None
        return (
            self.url.startswith(_CALL)
            and parser.get_method() == b"POST"
            and not parser.should_upgrade()
            and b"%" not in self.url
            and b"?" not in self.url
        )

    def _call(self) -> None:
        before = self.cycle
        cycle = Hot(self, self.url[len(_CALL) :].decode("latin-1"))
        self.cycle = cycle
        assert self.parser is not None
        cycle.keep_alive = self.parser.should_keep_alive() and self.parser.get_http_version() == "1.1"
        try:
            cycle.caller = judge(self.headers, local=self._local)
            if self.expect_100_continue:
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        except Refusal as refusal:
            cycle.refuse(refusal)
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, None)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cast("Any", cycle), cast("Any", None)))

    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        if not isinstance(cycle, Hot):
            super()._start_asgi_task(cycle, app)
            return
        self._running = cycle
        cycle.task = task = self.loop.create_task(cycle.run(self._calls))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def _head_is_too_large(self) -> bool:
        return sum(len(name) + len(value) + 4 for name, value in self.headers) + len(self.url) > self._head_max_bytes

    def _head_too_large(self) -> Refusal:
        return Refusal("too_large", f"the head is larger than {self._head_max_bytes} bytes: send less of it")

    def _end(self, status: int, refusal: Refusal) -> None:
        if self.transport.is_closing():
            return
        body = problem(status, refusal.answer())
        head = f"HTTP/1.1 {status} -\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
        self.transport.close()
