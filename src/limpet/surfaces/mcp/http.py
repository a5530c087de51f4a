"""`/mcp` of the daemon: streamable HTTP. The SDK is imported at the first request, in a thread."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

import msgspec

from limpet.model.errors import Refusal
from limpet.model.misfit import explain_encoding
from limpet.model.operation import Caller
from limpet.surfaces.mcp.calling import ROOM_BYTES, Answer, Calling, undressed
from limpet.surfaces.mcp.chosen import DEFAULT, Rows
from limpet.surfaces.mcp.tools import Tools

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

MCP_PATH: Final = "/mcp"
MCP_METHODS: Final = ("GET", "POST", "DELETE")
BODY_MAX_BYTES: Final = 16 * 1024 * 1024
SESSIONS_MAX: Final = 256
_LAST_ANSWERS_S: Final = 1.5
_log: Final = logging.getLogger("limpet.mcp")
_caller: Final = ContextVar[Caller]("limpet-mcp-caller")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Call = Callable[[str, bytes, Caller], Awaitable[tuple[int, bytes | dict[str, Any]]]]


class McpOverHttp:
    """An ASGI application. `?tools=` chooses as `limpet mcp --tools` does; who calls stands in the scope."""

    def __init__(self, rows: Rows, call: Call, stop: asyncio.Event, caller_in_scope: str) -> None:
        self._rows: Final = rows
        self._backend: Final = _Backend(call)
        self._stop: Final = stop
        self._caller_in_scope: Final = caller_in_scope
        self._managers: Final[dict[tuple[str, ...], asyncio.Task[StreamableHTTPSessionManager]]] = {}
        self._serving: Final[set[asyncio.Task[None]]] = set()
        self._posts = 0
        self._no_posts: Final = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            tools = Tools(self._rows, _tools_in(scope["query_string"]))
        except Refusal as refusal:
            await _refuse(refusal, send)
            return
        chosen = tuple(tool.row.name for tool in tools.every)
        starting = self._managers.get(chosen)
        if starting is None or (starting.done() and starting.exception() is not None):
            starting = self._managers[chosen] = asyncio.ensure_future(self._start(tools))
        manager = await asyncio.shield(starting)
        _caller.set(_as_mcp(scope[self._caller_in_scope]))
        is_post = scope["method"] == "POST"
        self._posts += is_post
        try:
            await manager.handle_request(scope, receive, send)
        finally:
            self._posts -= is_post
            if not self._posts:
                self._no_posts.set()

    async def _start(self, tools: Tools) -> "StreamableHTTPSessionManager":
        build: Any = (await asyncio.to_thread(import_module, "limpet.surfaces.mcp.server")).build
        module: Any = await asyncio.to_thread(import_module, "mcp.server.streamable_http_manager")
        # whatever anybody sends it has a word for: the log is for what goes wrong here
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        calling = Calling(tools, self._backend, self._stop.is_set)
        manager: StreamableHTTPSessionManager = module.StreamableHTTPSessionManager(
            build(calling), max_request_body_size=BODY_MAX_BYTES, max_sessions=SESSIONS_MAX
        )
        started = asyncio.Event()
        task = asyncio.ensure_future(self._serve(manager, calling, started))
        self._serving.add(task)
        task.add_done_callback(self._ended)
        await started.wait()
        return manager

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._serving.discard(task)
        if not task.cancelled() and task.exception() is not None:
            _log.error("%s has ended: %r", MCP_PATH, task.exception())

    async def _serve(self, manager: "StreamableHTTPSessionManager", calling: Calling, started: asyncio.Event) -> None:
        """Until the daemon stops: then what is under way is answered, and streams that wait for news end."""
        async with manager.run():
            started.set()
            await self._stop.wait()
            await calling.settle()
            if self._posts:
                self._no_posts.clear()
                await asyncio.wait((asyncio.ensure_future(self._no_posts.wait()),), timeout=_LAST_ANSWERS_S)


class _Backend:
    """Calls the rows of this daemon, for the caller of the request."""

    def __init__(self, call: Call) -> None:
        self._call: Final = call

    async def call(self, operation: str, params: Mapping[str, Any], wait: str | None = None) -> Answer:
        del wait  # nothing is lost on the way
        try:
            body = msgspec.json.encode(params)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise explain_encoding(error) from None
        _, answer = await self._call(operation, body, _caller.get())
        told: Answer = msgspec.json.decode(answer) if isinstance(answer, bytes) else answer
        return undressed(told)


def _as_mcp(caller: Caller) -> Caller:
    """The caller as this surface calls for it."""
    return msgspec.structs.replace(caller, surface="mcp", stays=False, room_bytes=ROOM_BYTES)


def _tools_in(query: bytes) -> str:
    named = parse_qs(query.decode("latin-1"), keep_blank_values=True).get("tools", [DEFAULT])
    return ",".join(named)


async def _refuse(refusal: Refusal, send: Send) -> None:
    body = msgspec.json.encode(refusal.answer())
    headers = [(b"content-type", b"application/problem+json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
