"""`backlog.take` and `backlog.ack`: what a session's watchers found, handed out until it is acked."""

from typing import Annotated, Final

import msgspec

from limpet.engine.engine import Engine
from limpet.engine.news import Message
from limpet.model.ids import check_id
from limpet.model.operation import Caller, Operation


class TakeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whose messages, how many at most, and how long to wait for the first."""

    session_id: str
    max: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 100
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = 0


class TakeResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest that nobody else has, and the lease to ack them with; null where there is nothing to ack."""

    messages: list[Message]
    lease: str | None
    dropped: int
    pruned: int


class AckRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The lease of a take."""

    lease: str


class AckResponse(msgspec.Struct, frozen=True, kw_only=True):
    """How many messages are gone for good."""

    acked: int


async def take(engine: Engine, request: TakeRequest, _caller: Caller) -> TakeResponse:
    check_id("session_id", request.session_id)
    taken, messages = await engine.news.take(request.session_id, request.max, request.wait_ms)
    return TakeResponse(messages=messages, lease=taken.lease, dropped=taken.dropped, pruned=taken.pruned)


async def ack(engine: Engine, request: AckRequest, _caller: Caller) -> AckResponse:
    return AckResponse(acked=await engine.news.backlog.ack(check_id("lease", request.lease)))


ROWS: Final = (
    Operation(
        name="backlog.take",
        request=TakeRequest,
        response=TakeResponse,
        handle=take,
        summary="Hands out what a session's watchers found; what is not acked in time comes back.",
        reads_only=False,
        repeatable=True,
    ),
    Operation(
        name="backlog.ack",
        request=AckRequest,
        response=AckResponse,
        handle=ack,
        summary="Removes for good what a take handed out.",
        reads_only=False,
        repeatable=True,
    ),
)
