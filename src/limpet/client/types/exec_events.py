"""What the operations `exec_events.*` take and answer."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Any, Literal, TypedDict


class EventInfo(TypedDict):
    """One event, as the gateway sends it too."""

    event: str
    payload: dict[str, Any]
    seq: int


class ExecEventsRecentParams(TypedDict, total=False):
    """Events behind a number, of all kinds or of those that fit a pattern (`exec.*`), of all sessions or of one."""

    after: int
    events: list[str] | None
    session: str | None
    limit: int
    wait_ms: int


class ExecEventsRecentAnswer(TypedDict):
    """The oldest first. `missed`: so many behind `after` are not kept any more, of whatever kind they were."""

    events: list[EventInfo]
    next_after: int
    has_more: bool
    missed: int
    ok: Literal[True]
