"""What the operations `backlog.*` take and answer."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Literal, Required, TypedDict


class Message(TypedDict):
    """One hit as the backlog hands it out; `id` stays the same however often that is."""

    id: str
    ts: int
    run_id: str
    event: str
    text: str
    snippet: str


class BacklogTakeParams(TypedDict, total=False):
    """Whose messages, how many at most, and how long to wait for the first."""

    session_id: Required[str]
    max: int
    wait_ms: int


class BacklogTakeAnswer(TypedDict):
    """The oldest that nobody else has, and the lease to ack them with; null where there is nothing to ack."""

    messages: list[Message]
    lease: str | None
    dropped: int
    pruned: int
    ok: Literal[True]


class BacklogAckParams(TypedDict, total=False):
    """The lease of a take."""

    lease: Required[str]


class BacklogAckAnswer(TypedDict):
    """How many messages are gone for good."""

    acked: int
    ok: Literal[True]
