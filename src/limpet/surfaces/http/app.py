"""The ASGI application: every route of the HTTP surface, behind the gate."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route, request_response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from limpet.model.errors import CODES, Refusal
from limpet.model.operation import Caller, Operation
from limpet.model.version import VERSION
from limpet.surfaces.http.about import About
from limpet.surfaces.http.calls import Calls, incident
from limpet.surfaces.http.doors import CALLER, Door
from limpet.surfaces.http.gate import Gate
from limpet.surfaces.http.head import BODY_MAX_BYTES, CALL, too_large
from limpet.surfaces.http.metrics import Measures
from limpet.surfaces.http.problem import MEDIA_TYPE, problem

_CODE_OF_STATUS: Final = {404: "not_found", 405: "invalid_argument"}


class App:
    """The doors over some rows. `calls` is there for a server that answers the hot route itself, and to stop them."""

    def __init__(
        self,
        calls: Calls,
        is_ready: Callable[[], bool],
        *,
        measures: Measures = tuple,
        doors: Iterable[Door] = (),
        token: str | None = None,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
    ) -> None:
        self.calls: Final = calls
        self._is_ready: Final = is_ready
        self.doors: Final = (
            Door("/healthz", serve=request_response(self._healthy), is_open=True),
            Door("/readyz", serve=request_response(self._ready), is_open=True),
            Door("/v1/operations", serve=request_response(self._operations)),
            Door(CALL + "{name}", ("POST",), serve=request_response(self._call)),
            *About(calls.rows.values(), calls.tally, measures).doors,
            *doors,
        )
        """All that is served, in the order in which paths are looked for."""
        self.upgrades: Final = {door.path.encode(): door.upgrade for door in self.doors if door.upgrade is not None}
        self.gate: Final = Gate(
            token=token, hosts=hosts, origins=origins, open_paths=[door.path for door in self.doors if door.is_open]
        )
        self._routes: Final = Starlette(
            routes=[Route(door.path, _Served(door), methods=list(door.methods)) for door in self.doors],
            exception_handlers={HTTPException: _refused, Exception: _failed},
        )
        self._routes.router.redirect_slashes = False

    @property
    def paths(self) -> list[str]:
        """The paths that are really looked for: those of the doors, and no other."""
        return [route.path if isinstance(route, Route) else repr(route) for route in self._routes.routes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves what the gate has let in. Another server's scope has not passed it, and gets nothing."""
        caller = scope.get(CALLER)
        if not isinstance(caller, Caller):
            raise PermissionError(
                "this request has not passed the gate: limpet is served by limpet.surfaces.http.serve"
            )
        added = ((b"x-request-id", caller.request_id.encode()), (b"x-content-type-options", b"nosniff"))

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *added]
            await send(message)

        await self._routes(scope, receive, send_named)

    async def _call(self, request: Request) -> Response:
        try:
            body = await _body(request)
        except Refusal as refusal:
            return _json(CODES[refusal.code], refusal.answer(), {"connection": "close"})
        status, answer = await self.calls.answer(request.path_params["name"], body, request.scope[CALLER])
        return _json(status, answer)

    async def _healthy(self, _request: Request) -> Response:
        return _json(200, {"ok": True})

    async def _ready(self, _request: Request) -> Response:
        if self._is_ready():
            return _json(200, {"ok": True, "version": VERSION})
        refusal = Refusal("unavailable", "the daemon is not ready: ask again in a moment", reason="starting")
        return _json(503, refusal.answer())

    async def _operations(self, _request: Request) -> Response:
        rows = [
            {
                "name": row.name,
                "summary": row.summary,
                "reads_only": row.reads_only,
                "repeatable": row.repeatable,
            }
            for row in self.calls.rows.values()
        ]
        return _json(200, {"ok": True, "version": VERSION, "operations": rows})


class _Served:
    """A door's application, as an object: Starlette takes functions for something else."""

    def __init__(self, door: Door) -> None:
        self.path: Final = door.path
        self._serve: Final[ASGIApp] = door.serve or request_response(_only_upgrades)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._serve(scope, receive, send)


def build(
    rows: Iterable[Operation[Any, Any]],
    engine: Any,
    *,
    is_ready: Callable[[], bool] = lambda: True,
    measures: Measures = tuple,
    doors: Iterable[Door] = (),
    token: str | None = None,
    hosts: Iterable[str] = (),
    origins: Iterable[str] = (),
) -> App:
    """The application over these rows, with the doors of other surfaces, behind one gate (`limpet.surfaces.http.gate`).

    `measures` are what `/metrics` shows beside the calls. Without `token` it can be served on a Unix socket only.
    """
    return App(Calls(rows, engine), is_ready, measures=measures, doors=doors, token=token, hosts=hosts, origins=origins)


async def _body(request: Request) -> bytearray:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_MAX_BYTES:
                raise too_large()
    except ClientDisconnect:
        raise Refusal("invalid_argument", "the body ended too early: send all of it") from None
    return body


def _json(status: int, answer: bytes | dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    if isinstance(answer, bytes):
        return Response(answer, status, headers, media_type="application/json")
    if status < 400:
        return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")
    return Response(problem(status, answer), status, headers, media_type=MEDIA_TYPE)


async def _only_upgrades(request: Request) -> Response:
    refusal = Refusal("invalid_argument", f"{request.url.path[:80]!r} is for WebSockets: ask to upgrade")
    return _json(426, refusal.answer(), {"upgrade": "websocket", "connection": "upgrade"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    path = request.url.path[:80]
    headers = dict(error.headers or {})
    message = {
        404: f"there is nothing at {path!r}: operations are at POST {CALL}NAME, GET /v1/operations lists them",
        405: f"{path!r} does not take {request.method}: use {headers.get('Allow', 'another method')}",
    }.get(error.status_code, error.detail)
    answer = Refusal(_CODE_OF_STATUS.get(error.status_code, "invalid_argument"), message).answer()
    return _json(error.status_code, answer, headers)


async def _failed(request: Request, error: Exception) -> Response:
    served = request.scope.get("endpoint")  # its own path, not the one asked for: who knows what stands in that
    path = served.path if isinstance(served, _Served) else ""
    return _json(500, incident(f"{request.method} {path}, request {request.scope[CALLER].request_id}", error))
