"""What the server says of itself: its description for programs and for people, and its numbers."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import request_response

from limpet.model.operation import Operation
from limpet.surfaces.http.doors import Door
from limpet.surfaces.http.metrics import Measures, Report, Tally


class About:
    """Made when first asked for: a daemon that nobody asks pays nothing."""

    def __init__(self, rows: Iterable[Operation[Any, Any]], tally: Tally, measures: Measures) -> None:
        self._rows: Final = tuple(rows)
        self._tally: Final = tally
        self._measures: Final = measures
        self._document: dict[str, Any] | None = None
        self.doors: Final = (
            Door("/openapi.json", serve=request_response(self._openapi)),
            Door("/docs", serve=request_response(self._docs)),
            Door("/metrics", serve=request_response(self._metrics)),
        )

    async def _openapi(self, _request: Request) -> Response:
        return Response(msgspec.json.encode(await self._described()), media_type="application/json")

    async def _docs(self, _request: Request) -> Response:
        from limpet.surfaces.http.page import SAFE_HEADERS, render

        return Response(render(await self._described()), headers=SAFE_HEADERS, media_type="text/html")

    async def _metrics(self, _request: Request) -> Response:
        report = Report(self._tally, self._measures())  # here: the numbers change in this thread
        text = await asyncio.to_thread(report.text)
        return Response(text, media_type="text/plain; version=1.0.0; charset=utf-8")

    async def _described(self) -> dict[str, Any]:
        if self._document is None:
            from limpet.surfaces.http.openapi import describe

            self._document = await asyncio.to_thread(describe, self._rows)
        return self._document
