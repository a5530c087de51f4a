"""`runs.search`: text or a pattern, in the output of runs."""

import asyncio
import re
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Final, Literal

import msgspec

from limpet.dialects.runs.types import Count
from limpet.engine.engine import Engine
from limpet.engine.matching import compile_pattern
from limpet.engine.search import Found, Place, Search, Skipped
from limpet.model.errors import Refusal
from limpet.model.ids import check_id, is_made_id
from limpet.model.operation import Caller, Operation
from limpet.model.run import Run
from limpet.store.runs import RunFilter

# How long a search looks before it answers with where to go on.
WITHIN_S: Final = 10.0
_PAGE: Final = 100
_cursor: Final = re.compile(r"([0-9a-z]{13}):(stdout|stderr|pty):([0-9]{1,18})")


class SearchRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is looked for, and where; `cursor` is the answer's `next_cursor`."""

    query: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    regex: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    session_id: str | None = None
    run_id: str | None = None
    stream: Literal["stdout", "stderr", "pty"] | None = None
    limit: Count = 100
    cursor: str | None = None


class SearchResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What was found, in the newest runs first, and all that could not be looked at. More: from `next_cursor` on."""

    hits: list[Found]
    skipped: list[Skipped]
    skipped_more: int
    searched_bytes: int
    next_cursor: str | None
    has_more: bool


async def search(engine: Engine, request: SearchRequest, _caller: Caller) -> SearchResponse:
    if (request.query is None) == (request.regex is None):
        said = "`regex` cannot go with `query`" if request.query is not None else "`query` is missing"
        field = "regex" if request.query is not None else "query"
        raise Refusal("invalid_argument", f"{said}: give one of them", field=field)
    if request.session_id is not None:
        check_id("session_id", request.session_id)
    place = _place_of(request)
    compiling = (
        partial(compile_pattern, request.query, "substring", field="query")
        if request.query is not None
        else partial(compile_pattern, request.regex or "", "regex", field="regex")
    )
    pattern = await asyncio.get_running_loop().run_in_executor(engine.search_threads, compiling)
    found = Search(pattern, engine.blobs, request.stream, request.limit, WITHIN_S)
    await found.go(engine.search_threads, _runs(engine, request, place), place)
    stop = found.stopped_at
    return SearchResponse(
        hits=found.hits,
        skipped=found.skipped,
        skipped_more=found.skipped_more,
        searched_bytes=found.searched_bytes,
        next_cursor=None if stop is None else f"{stop.run_id}:{stop.stream}:{stop.offset}",
        has_more=stop is not None,
    )


def _place_of(request: SearchRequest) -> Place | None:
    if request.cursor is None:
        return None
    known = _cursor.fullmatch(request.cursor)
    if known is None or not is_made_id(known[1]) or request.run_id not in (None, known[1]):
        message = "`cursor` is none that was given out for this search: pass it on as it came"
        raise Refusal("invalid_argument", message, field="cursor")
    return Place(known[1], known[2], int(known[3]))


async def _runs(engine: Engine, request: SearchRequest, place: Place | None) -> AsyncIterator[Run]:
    """The newest first, from the one on where the search goes on."""
    if request.run_id is not None:
        run = engine.find(request.run_id).run
        if request.session_id in (None, run.session_id):
            yield run
        return
    before = None
    if place is not None:
        before = place.run_id
        try:
            yield engine.find(place.run_id).run
        except Refusal as refusal:  # it was pruned: the older ones follow
            if refusal.code not in ("gone", "not_found"):
                raise
    while page := await engine.list(RunFilter(session_id=request.session_id, before=before, limit=_PAGE)):
        for run in page:
            yield run
        before = page[-1].run_id


ROWS: Final = (
    Operation(
        name="runs.search",
        request=SearchRequest,
        response=SearchResponse,
        handle=search,
        summary="Finds text or a pattern in the output of runs, the newest first.",
        reads_only=True,
        repeatable=True,
    ),
)
