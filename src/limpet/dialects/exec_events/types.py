"""What `exec_events.recent` takes and answers."""

from typing import Annotated, Any

import msgspec

Glob = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
MOST_GLOBS = 100


class RecentRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Events behind a number, of all kinds or of those that fit a pattern (`exec.*`), of all sessions or of one."""

    after: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)] = 0
    events: Annotated[list[Glob], msgspec.Meta(max_length=MOST_GLOBS)] | None = None
    session: Glob | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 200
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=86_400_000)] = 0


class EventInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One event, as the gateway sends it too."""

    event: str
    payload: dict[str, Any]
    seq: int


class RecentResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest first. `missed`: so many behind `after` are not kept any more, of whatever kind they were."""

    events: list[EventInfo]
    next_after: int
    has_more: bool
    missed: int
