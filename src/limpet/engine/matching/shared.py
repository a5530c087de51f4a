"""Patterns that have not been found yet, in one database: at nearly the cost of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from limpet.engine.matching.hyperscan_streams import Database
from limpet.engine.matching.scan_stream import AROUND_BYTES

if TYPE_CHECKING:
    from limpet.engine.matching.pattern import Pattern

KEPT_BYTES: Final = 64 << 10
"""How far back the bytes are kept that a scanner of one pattern alone starts with."""


class Restart(NamedTuple):
    """Where a scanner starts, the byte before (if it is on the same line), and the bytes up to the position."""

    offset: int
    line_before: bytes
    data: bytes


def shareable(pattern: Pattern) -> bool:
    """Whether all that a match needs lies on one line, or within so many bytes."""
    if pattern.match_type == "substring" or pattern.expression is None:
        return False
    most = pattern.facts.most
    return pattern.facts.newlines == 0 or (most is not None and most <= KEPT_BYTES // 2)


class Shared:
    """Says which patterns the next bytes may hold a match of: each once, and never too late."""

    def __init__(self, patterns: Mapping[int, Pattern], offset: int, line_before: bytes) -> None:
        """Raises `TooLarge` where the engine does not take them together."""
        self._patterns = dict(patterns)
        self._numbers = list(patterns)
        expressions = [pattern.expression or b"" for pattern in patterns.values()]
        self._stream = Database(expressions, once=True).open()
        early = self._stream.scan(line_before[-1:] or b"\n") if any(one.leads for one in patterns.values()) else []
        # to a pattern that does not look back, the byte before is one more: it may be said too early, never too late
        self._early = {self._numbers[number] for number, _, _ in early}
        self.members = set(patterns)
        self.position = offset
        self._first = offset
        self._line_start = offset
        self._before = line_before[-1:]
        self._base = offset
        self._kept = b""
        """The bytes from `_base` to the position; `_before` is the one before them."""

    def feed(self, data: bytes) -> set[int]:
        """Members that may have been found: they are members no longer."""
        flagged = {self._numbers[number] for number, _, _ in self._stream.scan(data)} | self._early
        self._early = set[int]()
        return self._let_go(flagged)

    def finish(self) -> set[int]:
        return self._let_go({self._numbers[number] for number, _, _ in self._stream.close()} | self._early)

    def _let_go(self, flagged: set[int]) -> set[int]:
        gone = flagged & self.members
        self.members -= gone
        return gone

    def restart_at(self, index: int) -> int:
        """Where a scanner of a member starts to find what is still to come."""
        pattern = self._patterns[index]
        if pattern.match_type == "line":
            return self._line_start
        by_line = self._line_start if pattern.facts.newlines == 0 else self._first
        most = pattern.facts.most
        by_width = self._first if most is None else self.position - most - AROUND_BYTES
        return max(self._first, by_line, by_width)

    def since(self, index: int) -> Restart:
        """What a scanner of a member starts with."""
        place = self.restart_at(index)
        at = place - self._base
        before = self._kept[at - 1 : at] if at else self._before
        return Restart(place, b"" if before == b"\n" else before, self._kept[at:])

    def advance(self, data: bytes) -> list[tuple[int, Restart]]:
        """Goes past bytes that were fed; answers members whose bytes are kept no longer, with these bytes."""
        self._kept += data
        self.position += len(data)
        newline = data.rfind(b"\n")
        if newline >= 0:
            self._line_start = self.position - len(data) + newline + 1
        far = {index for index in self.members if self.position - self.restart_at(index) > KEPT_BYTES}
        left = [(index, self.since(index)) for index in far if self.restart_at(index) >= self._base]
        base = min((self.restart_at(index) for index in self.members - far), default=self.position)
        if base > self._base:
            cut = base - self._base
            self._before, self._kept = self._kept[cut - 1 : cut], self._kept[cut:]
            self._base = base
        return left

    def close(self) -> None:
        self._stream.close()
