"""The ASGI application: every route of the HTTP surface, as any ASGI server can serve it."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from limpet.model.errors import CODES, Refusal
from limpet.model.operation import Operation
from limpet.model.version import VERSION
from limpet.surfaces.http.calls import Calls, incident
from limpet.surfaces.http.head import BODY_MAX_BYTES, CALL, TOO_LARGE, judge
from limpet.surfaces.http.problem import MEDIA_TYPE, problem

_CODE_OF_STATUS: Final = {404: "not_found", 405: "invalid_argument"}


class App:
    """The routes over some rows. `calls` is there for a server that answers the hot route itself, and to stop them."""

    def __init__(self, calls: Calls, is_ready: Callable[[], bool], *, local: bool) -> None:
        self.calls: Final = calls
        self.local: Final = local
        self._is_ready: Final = is_ready
        self._routes: Final = Starlette(
            routes=[
                Route("/healthz", self._healthy, methods=["GET"]),
                Route("/readyz", self._ready, methods=["GET"]),
                Route("/v1/operations", self._operations, methods=["GET"]),
                Route(CALL + "{name}", self._call, methods=["POST"]),
            ],
            exception_handlers={HTTPException: _refused, Exception: _failed},
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._routes(scope, receive, send)

    async def _call(self, request: Request) -> Response:
        try:
            who = judge(request.headers.raw, local=self.local)
            body = await _body(request)
        except Refusal as refusal:
            return _json(CODES[refusal.code], refusal.answer(), {"connection": "close"})
        status, answer = await self.calls.answer(request.path_params["name"], body, who)
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


def build(
    rows: Iterable[Operation[Any, Any]],
    engine: Any,
    *,
    is_ready: Callable[[], bool] = lambda: True,
    local: bool = True,
) -> App:
    """The application over these rows; `local` says that only a Unix socket leads here, so its callers are believed."""
    return App(Calls(rows, engine), is_ready, local=local)


async def _body(request: Request) -> bytearray:
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_MAX_BYTES:
                raise TOO_LARGE
    except ClientDisconnect:
        raise Refusal("invalid_argument", "the body ended too early: send all of it") from None
    return body


def _json(status: int, answer: bytes | dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    if isinstance(answer, bytes):
        return Response(answer, status, headers, media_type="application/json")
    if status < 400:
        return Response(msgspec.json.encode(answer), status, headers, media_type="application/json")
    return Response(problem(status, answer), status, headers, media_type=MEDIA_TYPE)


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
    return _json(500, incident(f"{request.method} {request.url.path[:80]!r}", error))
