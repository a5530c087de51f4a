"""What every scanner is: bytes in, hits out, and from where another could go on."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from limpet.engine.matching.pattern import Pattern


class Hit(msgspec.Struct, frozen=True):
    """One match."""

    start: int
    end: int
    groups: dict[str, str | None] | None = None
    """Of `line`: each group's text by its number and by its name; None for one that took no part."""
    cut: bool = False
    """Of `line`: the line is longer than what was looked at of it."""


class Scanner(abc.ABC):
    """Looks for one pattern in bytes that come in pieces; how they are cut changes nothing.

    One thread at a time may use it; each call may be made in another one.
    """

    position: int
    """Everything before it has been fed."""
    restart_at: int
    """A scanner that starts here, given the line before it, finds what this one has still to find."""

    def __init__(self, pattern: Pattern, offset: int, most_hits: int | None) -> None:
        self.pattern = pattern
        self.position = offset
        self.restart_at = offset
        self._left = most_hits

    @property
    def done(self) -> bool:
        """It has found as many as it was asked for, and looks no more."""
        return self._left == 0

    def feed(self, data: bytes) -> list[Hit]:
        """What is found with the next bytes, in the order of ends."""
        if self.done:
            self.position += len(data)
            self.restart_at = self.position
            return []
        return self._counted(self._feed(data))

    def finish(self) -> list[Hit]:
        """What is found now that output has ended."""
        return [] if self.done else self._counted(self._finish())

    @abc.abstractmethod
    def close(self) -> None:
        """Frees what it holds; nothing is fed after."""

    @abc.abstractmethod
    def _feed(self, data: bytes) -> list[Hit]: ...

    @abc.abstractmethod
    def _finish(self) -> list[Hit]: ...

    def _counted(self, hits: list[Hit]) -> list[Hit]:
        if self._left is None:
            return hits
        hits = hits[: self._left]
        self._left -= len(hits)
        if self.done:
            self.close()
        return hits
