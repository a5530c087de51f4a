"""`exec_events.recent`: the latest events, for whoever has no WebSocket."""

from typing import Final

import msgspec

from limpet.dialects.exec_events.types import EventInfo, RecentRequest, RecentResponse
from limpet.engine import clock
from limpet.engine.engine import Engine
from limpet.engine.feed import Event
from limpet.model.operation import Caller, Operation


async def recent(engine: Engine, request: RecentRequest, _caller: Caller) -> RecentResponse:
    feed = engine.feed
    feed.check(request.after)
    wanted = feed.wanted(request.events, request.session)
    until_s, place, missed = clock.passed_s() + request.wait_ms / 1000, request.after, 0
    while True:
        kept, gone = feed.after(place)
        missed += gone
        found = [event for event in kept if wanted.holds(event)]
        left_s = until_s - clock.passed_s()
        if found or left_s <= 0:
            break
        place = feed.last_seq
        await feed.next(place, left_s)
    page = found[: request.limit]
    has_more = len(found) > len(page)
    return RecentResponse(
        events=[_info(event) for event in page],
        next_after=page[-1].seq if has_more else feed.last_seq,
        has_more=has_more,
        missed=missed,
    )


def _info(event: Event) -> EventInfo:
    return EventInfo(event=event.name, payload=msgspec.json.decode(event.payload), seq=event.seq)


ROWS: Final = (
    Operation(
        name="exec_events.recent",
        request=RecentRequest,
        response=RecentResponse,
        handle=recent,
        summary="The latest events of runs of whitelisted programs, behind a number; waits for the next if asked to.",
        reads_only=True,
        repeatable=True,
    ),
)
