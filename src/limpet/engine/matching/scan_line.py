"""Looks for a regex in each finished line, greedy as usual, with groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from limpet.engine.matching.scanner import Hit, Scanner
from limpet.engine.matching.utf8 import begin_of, end_of

if TYPE_CHECKING:
    from limpet.engine.matching.pattern import Pattern

LINE_BYTES: Final = 64 << 10
"""So much is looked at of what is left of a line: its first bytes."""
HITS_IN_A_LINE: Final = 1000
"""No more are reported of one line."""


class LineScanner(Scanner):
    """Keeps the unfinished line, as far as it will be looked at. Many short lines are looked at in one go:
    the pattern takes no newline, and the engine looks at real neighbours."""

    def __init__(self, pattern: Pattern, offset: int, line_before: bytes, most_hits: int | None) -> None:
        super().__init__(pattern, offset, most_hits)
        self._engine: Any = pattern.line_engine
        self._before = line_before[-1:]
        """The byte before the unfinished line, where the scan began inside of it."""
        self._line = bytearray()
        self._length = 0

    def _feed(self, data: bytes) -> list[Hit]:
        base = self.position - self._length
        self.position += len(data)
        last = data.rfind(b"\n")
        if last < 0:
            self._keep(data)
            return []
        hits: list[Hit] = []
        if self._length > LINE_BYTES:
            first = data.index(b"\n")
            hits += self._one(self._before + bytes(self._line), base)
            data, last = data[first + 1 :], last - first - 1
            base = self.position - len(data)
        else:
            data = bytes(self._line) + data
            last += self._length
        before, self._before = (b"", b"") if hits or self._length > LINE_BYTES else (self._before, b"")
        self._line.clear()
        self._length = 0
        if last >= 0:
            hits += self._lines(before + data if before else data, len(before), last + len(before), base)
        rest = data[last + 1 :]
        self.restart_at = self.position - len(rest)
        self._keep(rest)
        return hits

    def _finish(self) -> list[Hit]:
        base = self.position - self._length
        whole = self._before + bytes(self._line)
        self.restart_at = self.position
        return self._one(whole, base) if self._length else []

    def close(self) -> None:
        self._line.clear()
        self._length = 0

    def _keep(self, data: bytes) -> None:
        if self._length <= LINE_BYTES:
            self._line += data[: LINE_BYTES + 1 - self._length]
        self._length += len(data)

    def _one(self, whole: bytes, base: int) -> list[Hit]:
        """The kept line."""
        start = len(self._before)
        cut = self._length > LINE_BYTES
        return self._search(whole, start, min(len(whole), start + LINE_BYTES), base - start, cut=cut)

    def _lines(self, whole: bytes, start: int, last: int, base: int) -> list[Hit]:
        """Finished lines, up to the newline at `last`; `start` lies at `base`."""
        shift = base - start
        hits: list[Hit] = []
        while start <= last and not self._enough(hits):
            end = whole.rfind(b"\n", start, min(last + 1, start + LINE_BYTES + 1))
            cut = end < 0
            if cut:
                hits += self._search(whole, start, start + LINE_BYTES, shift, cut=True)
                end = whole.index(b"\n", start)
            else:
                hits += self._search(whole, start, end, shift, cut=False)
            start = end + 1
        return hits

    def _enough(self, hits: list[Hit]) -> bool:
        return self._left is not None and len(hits) >= self._left

    def _search(self, whole: bytes, start: int, end: int, shift: int, *, cut: bool) -> list[Hit]:
        hits: list[Hit] = []
        line_end = in_line = 0
        floor = start
        while start < end and not self._enough(hits):
            found = self._engine.search(whole, start, end)
            if found is None:
                break
            first, last = found.span()
            if first >= line_end:
                line_end = whole.find(b"\n", first, end)
                line_end = end if line_end < 0 else line_end
                in_line = 0
            if in_line == HITS_IN_A_LINE:
                start = line_end
                continue
            in_line += 1
            first = max(start, begin_of(whole, first, floor))
            widened = end_of(whole, last, floor, over=True)
            last = widened if widened is not None and widened <= line_end else last
            hits.append(Hit(first + shift, last + shift, self._groups(found), cut))
            start = last
        return hits

    def _groups(self, found: Any) -> dict[str, str | None]:
        groups: dict[str, str | None] = {}
        for number, text in enumerate(found.groups(), 1):
            told = None if text is None else bytes(text).decode("utf-8", "replace")
            groups[str(number)] = told
            name = self.pattern.names.get(number)
            if name is not None:
                groups[name] = told
        return groups
