"""Many patterns over one stream: all that have not been found yet share one database, one that has goes on alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from limpet.engine.matching.hyperscan_streams import Database, Stream, TooLarge
from limpet.engine.matching.pattern import Pattern
from limpet.engine.matching.scanner import Hit, Scanner

KEPT_BYTES: Final = 64 << 10
"""A pattern is shared if all that a match needs lies on one line, or within so many bytes."""


class WatchSet:
    """Feeds every pattern. One thread at a time may use it."""

    def __init__(
        self,
        patterns: Sequence[Pattern],
        positions: Sequence[int],
        line_before: bytes = b"",
        *,
        most_hits: int | None = None,
    ) -> None:
        self._patterns = list(patterns)
        self._most_hits = most_hits
        self.position = min(positions, default=0)
        self._alone: dict[int, Scanner] = {}
        self._due = dict(enumerate(positions))
        self._line_before = line_before[-1:]
        self._start_due()

    def _start_due(self) -> None:
        for index, at in list(self._due.items()):
            if at == self.position:
                del self._due[index]
                self._alone[index] = self._patterns[index].scanner(at, self._line_before, most_hits=self._most_hits)

    def feed(self, data: bytes) -> list[tuple[int, Hit]]:
        hits: list[tuple[int, Hit]] = []
        while data:
            upto = min((at for at in self._due.values()), default=self.position + len(data)) - self.position
            piece, data = data[:upto], data[upto:]
            for index, scanner in self._alone.items():
                hits += [(index, hit) for hit in scanner.feed(piece)]
            self.position += len(piece)
            if piece:
                self._line_before = b"" if piece.endswith(b"\n") else piece[-1:]
            self._start_due()
        return sorted(hits, key=_order)

    def finish(self) -> list[tuple[int, Hit]]:
        return sorted(((i, hit) for i, scanner in self._alone.items() for hit in scanner.finish()), key=_order)

    def restart_at(self, index: int) -> int:
        """Where a scanner of this pattern can start again; the position once it is dropped."""
        if index in self._due:
            return self._due[index]
        return self._alone[index].restart_at if index in self._alone else self.position

    def drop(self, index: int) -> None:
        """Looks for this pattern no more."""
        self._due.pop(index, None)
        scanner = self._alone.pop(index, None)
        if scanner is not None:
            scanner.close()

    def close(self) -> None:
        for index in list(self._alone):
            self.drop(index)


def _order(found: tuple[int, Hit]) -> tuple[int, int]:
    return found[1].end, found[0]
