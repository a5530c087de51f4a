"""What a dialect shows of a run, one numbered item after another; and how far a run's journals were taken in."""

from typing import Any, Literal

import msgspec

Kind = Literal["output", "status", "event"]


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """One row of `exec_run_items`. Output is where its bytes stand: they are in the spool, never in the database."""

    seq: int
    ts: int
    kind: Kind
    stream: str | None = None
    start: int | None = None
    end: int | None = None
    event: str | None = None
    data: dict[str, Any] | None = None


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """How far both journals have been taken in: offset, CRC chain and number of the last record of each."""

    attempt: int = 1
    keeper_bytes: int = 0
    keeper_chain: int = 0
    keeper_records: int = 0
    daemon_bytes: int = 0
    daemon_chain: int = 0
    daemon_records: int = 0
