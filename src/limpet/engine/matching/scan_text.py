"""Looks for plain bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from limpet.engine.matching.scanner import Hit, Scanner

if TYPE_CHECKING:
    from limpet.engine.matching.pattern import Pattern


class TextScanner(Scanner):
    """Keeps what could be the beginning of a match: less than the text's length."""

    def __init__(self, pattern: Pattern, offset: int, line_before: bytes, most_hits: int | None) -> None:
        super().__init__(pattern, offset, most_hits)
        del line_before
        self._text = pattern.raw
        self._open = b""

    def _feed(self, data: bytes) -> list[Hit]:
        whole = self._open + data
        base = self.position - len(self._open)
        self.position += len(data)
        size = len(self._text)
        hits: list[Hit] = []
        place = 0
        while (self._left is None or len(hits) < self._left) and (found := whole.find(self._text, place)) >= 0:
            place = found + size
            hits.append(Hit(base + found, base + place))
        place = max(place, len(whole) - size + 1)
        self._open = whole[place:]
        self.restart_at = base + place
        return hits

    def _finish(self) -> list[Hit]:
        return []

    def close(self) -> None:
        self._open = b""
