"""One HTTP connection: whose it is, the gate before all else, and the hot route taken out of uvicorn's hands."""

import asyncio
import logging
import os
import socket
import struct
from typing import Any, Final, cast

import httptools
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from limpet.model.errors import Refusal
from limpet.model.operation import Caller
from limpet.surfaces.http.app import App
from limpet.surfaces.http.doors import CALLER, Upgrade, Upgraded
from limpet.surfaces.http.gate import Names
from limpet.surfaces.http.head import CALL, without_token
from limpet.surfaces.http.hot import Hot
from limpet.surfaces.http.names import request_id_of
from limpet.surfaces.http.problem import MEDIA_TYPE, problem
from limpet.surfaces.http.seats import FEW_DESCRIPTORS, LAST_DESCRIPTORS, Seats
from limpet.surfaces.http.slow import Deadlines

LOCAL_HEAD_MAX_BYTES: Final = 4 * 1024 * 1024
"""On the Unix socket a caller's whole environment travels in the head."""
REMOTE_HEAD_MAX_BYTES: Final = 32 * 1024
REMOTE_IDLE_S: Final = 75
_CROWDED: Final = Refusal(
    "unavailable",
    "too many connections: close some and ask again, or raise the limit of open files (and `http.max_connections`)",
    reason="too_many_connections",
)
_CALL: Final = CALL.encode()
_PEER: Final = struct.Struct("3i")
_log: Final = logging.getLogger("limpet.http")


class Connection(HttpToolsProtocol):
    """uvicorn's protocol, but that the gate comes first, and that a call is answered by `Hot`: no scope, one write."""

    cycle: Any  # uvicorn's own, or a Hot

    def __init__(self, app: App, config: Config, state: ServerState, deadlines: Deadlines, seats: Seats) -> None:
        super().__init__(config, state, {})
        self.gone: Final[asyncio.Future[None]] = self.loop.create_future()
        self._app: Final = app
        self._calls: Final = app.calls
        self._deadlines: Final = deadlines
        self._seats: Final = seats
        self._names: Names = frozenset()
        self._is_remote = False
        self._head_max_bytes = REMOTE_HEAD_MAX_BYTES
        self._in_head = False
        self._head_bytes = 0
        self._chunk_bytes = 0
        self._slow = False
        self._is_crowded = False
        self._in_body = False
        self._is_over = False
        self._lingers = False
        self._running: Hot | None = None
        self._upgrade: tuple[Upgrade, Caller] | None = None
        self._upgraded: Upgraded | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Lets in who may come in: on a Unix socket the daemon's own user, and root."""
        super().connection_made(transport)
        peer: socket.socket = transport.get_extra_info("socket")
        self._is_remote = is_remote = peer.family != socket.AF_UNIX
        self._calls.tally.connections["tcp" if is_remote else "socket"] += 1
        if is_remote:
            self._names = self._app.gate.names(peer.getsockname())
            self.timeout_keep_alive = REMOTE_IDLE_S
            self._slow = True  # one that connects and says nothing has no more time than one that says it slowly
            self._deadlines.head(self)
        has_seat = not is_remote or self._seats.take_remote(peer)
        left = self._seats.left_after(peer)
        if left <= FEW_DESCRIPTORS:
            self._is_crowded = True
            self._deadlines.head(self)
        if left <= LAST_DESCRIPTORS:
            self._say(503, _CROWDED)
            transport.close()
        elif not has_seat:
            self._in_head = True  # one may be on its way, and would take the answer along
            self._end(503, _CROWDED)
        elif not is_remote:
            self._names = None
            self._head_max_bytes = LOCAL_HEAD_MAX_BYTES
            _, uid, _ = _PEER.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
            if uid not in (os.geteuid(), 0):
                _log.warning("refused a connection of uid %d", uid)
                transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """The caller has gone: what waits for it lets go."""
        super().connection_lost(exc)
        self._deadlines.whole(self)
        self._calls.tally.connections["tcp" if self._is_remote else "socket"] -= 1
        if self._is_remote:
            self._seats.leave_remote()
        if self._running is not None and self._running.task is not None:
            self._running.disconnected = True
            self._running.task.cancel()
        self.pipeline.clear()
        self.gone.set_result(None)
        if self._upgraded is not None:
            self._upgraded.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parses; a message that is not whole yet gets a deadline, a head a limit."""
        if self._upgraded is not None:
            self._upgraded.data_received(data)
            return
        if self._is_over:
            return
        self._chunk_bytes = len(data)
        self._parse(data)
        if self._is_over:
            pass
        elif self._in_head:
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

    def eof_received(self) -> bool | None:  # type: ignore[override]
        """The caller writes no more: the connection ends, unless who has taken it over goes on."""
        return None if self._upgraded is None else self._upgraded.eof_received()

    def pause_writing(self) -> None:
        """The caller reads too slowly."""
        super().pause_writing()
        if self._upgraded is not None:
            self._upgraded.pause_writing()

    def resume_writing(self) -> None:
        """It has caught up."""
        super().resume_writing()
        if self._upgraded is not None:
            self._upgraded.resume_writing()

    def shutdown(self) -> None:
        """The server stops."""
        if self._upgraded is not None:
            self._upgraded.shutdown()
        else:
            super().shutdown()

    def on_message_begin(self) -> None:
        """Nothing yet but the head's beginnings: a scope is made only for what needs one."""
        self.url = b""
        self.headers = []
        self.expect_100_continue = False
        self._in_head = True
        self._head_bytes = 0

    def on_headers_complete(self) -> None:
        """The gate; then the hot route, an upgrade, or uvicorn and the application."""
        self._in_head, self._in_body = False, True
        if self._is_over:
            return
        if self._head_bytes + self._chunk_bytes > self._head_max_bytes and self._head_is_too_large():
            self._end(431, self._head_too_large())
            return
        if self._is_crowded:
            self._end(503, _CROWDED)
            return
        assert self.parser is not None
        if self.parser.get_http_version() not in ("1.1", "1.0"):
            self.send_400_response("")
            return
        method, upgrade = self.parser.get_method(), self.parser.should_upgrade()
        try:
            caller = self._app.gate.admit(method, self.url, self.headers, self._names, upgrade=upgrade)
            if upgrade:
                self._prepare_upgrade(caller)
                return
        except Refusal as refusal:
            self._calls.tally.refused[refusal.reason or refusal.code] += 1
            given = next((value for name, value in self.headers if name == b"x-request-id"), b"")
            self._call(b"", Caller("http", request_id=request_id_of(given)), refusal)
            return
        if method == b"POST" and self.url.startswith(_CALL) and b"%" not in self.url and b"?" not in self.url:
            self._call(self.url[len(_CALL) :], caller)
        else:
            self._hand_to_uvicorn(caller)

    def on_body(self, body: bytes) -> None:
        """A piece of a body, to whom it belongs."""
        cycle = self.cycle
        if not isinstance(cycle, Hot):
            if self._upgrade is None and not self._is_over:
                super().on_body(body)
        elif cycle.more_body:
            cycle.take(body)

    def on_message_complete(self) -> None:
        """The body is whole; what is to be upgraded has none."""
        self._in_body = False
        if self._lingers:
            self.transport.close()
        elif self._upgrade is None and not self._is_over:
            super().on_message_complete()

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

    def hang_up(self) -> None:
        """Ends the connection once all is written; who is still sending is let finish, or the answer would be lost."""
        if not self._in_body and not self._in_head:
            self.transport.close()
        elif not self.transport.is_closing():
            self._is_over = self._lingers = True
            self.transport.write_eof()
            self.flow.resume_reading()
            self._deadlines.linger(self)

    def give_up(self) -> None:
        """The message took too long."""
        if self._is_over:
            self.transport.abort()
            return
        self._end(408, Refusal("invalid_argument", "the request took too long to arrive: send it at once"))

    def _parse(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            assert self.parser is not None
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as end:
            if self._upgrade is not None:  # refused otherwise: the answer is on its way
                self._begin_upgrade(*self._upgrade, data[end.args[0] :])
        except httptools.HttpParserError:
            self.send_400_response("")

    def _call(self, name: bytes, caller: Caller, refusal: Refusal | None = None, status: int | None = None) -> None:
        """Answers on the hot route, or refuses there: in its turn, and without waiting for the body."""
        before = self.cycle
        cycle = Hot(self, name.decode("latin-1"), caller)
        self.cycle = cycle
        assert self.parser is not None
        cycle.keep_alive = self.parser.should_keep_alive() and self.parser.get_http_version() == "1.1"
        if refusal is not None:
            cycle.refuse(refusal, status)
        elif self.expect_100_continue:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        if before is None or before.response_complete:
            self._start_asgi_task(cycle, None)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cast("Any", cycle), cast("Any", None)))

    def _hand_to_uvicorn(self, caller: Caller) -> None:
        url, headers, expect = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url = url
        self.headers.extend(without_token(headers))
        self.expect_100_continue = expect
        cast("dict[str, Any]", self.scope)[CALLER] = caller
        super().on_headers_complete()

    def _prepare_upgrade(self, caller: Caller) -> None:
        path = self.url.partition(b"?")[0]
        upgrade = self._app.upgrades.get(path)
        if upgrade is None:
            raise Refusal("invalid_argument", f"there is nothing to upgrade to at {path[:80].decode('latin-1')!r}")
        if self.cycle is not None and not self.cycle.response_complete:
            raise Refusal(
                "invalid_argument", "an upgrade cannot stand in a pipeline: send it on a connection of its own"
            )
        self._upgrade = upgrade, caller

    def _begin_upgrade(self, upgrade: Upgrade, caller: Caller, rest: bytes) -> None:
        lines = [b"GET %b HTTP/1.1" % self.url]
        lines += [b"%b: %b" % header for header in without_token(self.headers)]
        self.parser = None
        self._upgraded = upgrade(b"\r\n".join((*lines, b"", b"")), caller, self.transport)
        if rest:
            self._upgraded.data_received(rest)

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
        """No more is taken from this connection, and it is told why: in its turn, behind what it had asked before."""
        if self.transport.is_closing() or self._is_over:
            return
        self._deadlines.whole(self)
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self._say(status, refusal)
            self.hang_up()
        elif not cycle.more_body:
            self._is_over = True
            self._call(b"", Caller("http", request_id=request_id_of(b"")), refusal, status)
        elif isinstance(cycle, Hot):
            cycle.refuse(refusal, status)
        elif self.pipeline or cycle.response_started:
            self.transport.abort()  # no answer could stand where this one belongs
        else:
            self._say(status, refusal)
            self.hang_up()

    def _say(self, status: int, refusal: Refusal) -> None:
        body = problem(status, refusal.answer())
        head = f"HTTP/1.1 {status} -\r\ncontent-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
        head += f"x-request-id: {request_id_of(b'')}\r\n"
        self.transport.write(f"{head}connection: close\r\n\r\n".encode() + body)
