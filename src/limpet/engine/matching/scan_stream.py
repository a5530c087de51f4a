"""Looks for a regex on the stream: the earliest end, the leftmost start, then on from that end."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from limpet.engine.matching import tree
from limpet.engine.matching.hyperscan_streams import Found, Stream
from limpet.engine.matching.scanner import Hit, Scanner
from limpet.engine.matching.utf8 import begin_of, end_of

if TYPE_CHECKING:
    from limpet.engine.matching.pattern import Pattern

AROUND_BYTES: Final = 8
"""What is kept of the bytes before the position: the characters around it."""
WIDENED_BYTES: Final = 4096
"""A longer match is not widened at its start, should it begin inside of a character."""
FIRST_PIECE_BYTES: Final = 256
"""After a hit little is scanned at once, then more: bytes that hit all the time are not scanned again and again."""
LAST_PIECE_BYTES: Final = 1 << 20
MOST_COUNTED_NEWLINES: Final = 8


class StreamScanner(Scanner):
    def __init__(self, pattern: Pattern, offset: int, line_before: bytes, most_hits: int | None) -> None:
        super().__init__(pattern, offset, most_hits)
        assert pattern.database is not None
        self._database = pattern.database
        self._leads = pattern.leads
        self._stream: Stream | None = None
        self._floor = offset
        """No match starts before it."""
        self._kept = b""
        """The bytes just before the position, none from before the scan's start."""
        self._waiting: tuple[int, int] | None = None
        """A match whose last character is not all there."""
        facts = pattern.facts
        self._most = facts.most
        self._newlines: deque[int] | None = None
        if facts.newlines is not None and facts.newlines <= MOST_COUNTED_NEWLINES:
            self._newlines = deque(maxlen=facts.newlines + 1)
        inside = tree.firsts(pattern.tree)[0] & tree.INSIDE
        self._keep_bytes = AROUND_BYTES + (WIDENED_BYTES if inside else 0)
        self._base = 0
        self._open(line_before[-1:] or b"\n", offset)

    def _open(self, before: bytes, offset: int) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = self._database.open()
        self._base = offset
        if self._leads:
            self._stream.scan(before)

    def _feed(self, data: bytes) -> list[Hit]:
        begun = self.position
        hits = self._look(data, over=False)
        if self._newlines is not None:
            self._count_newlines(data, begun)
        earliest = self._earliest() if self._waiting is None else 0
        self.restart_at = max(self.restart_at, self._floor, earliest)
        return hits

    def _finish(self) -> list[Hit]:
        hits = self._look(b"", over=True)
        if self._enough(hits):
            return hits
        assert self._stream is not None
        if found := self._stream.close():
            self._take(found[0])
            assert self._waiting is not None
            hit = self._widened(self._kept, self.position - len(self._kept), over=True)
            assert hit is not None
            hits.append(hit)
        self.restart_at = self.position
        return hits

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()

    def _enough(self, hits: list[Hit]) -> bool:
        return self._left is not None and len(hits) >= self._left

    def _look(self, data: bytes, *, over: bool) -> list[Hit]:
        whole = self._kept + data
        view = memoryview(whole)
        base = self.position - len(self._kept)
        place = len(self._kept)
        self.position += len(data)
        size = len(whole)
        piece = LAST_PIECE_BYTES
        hits: list[Hit] = []
        assert self._stream is not None
        while not self._enough(hits):
            if self._waiting is None:
                if place >= size:
                    break
                found = self._stream.scan(view[place : place + piece])
                if not found:
                    place, piece = place + piece, min(piece * 2, LAST_PIECE_BYTES)
                    continue
                self._take(found[0])
            hit = self._widened(whole, base, over=over)
            if hit is None:
                break
            hits.append(hit)
            if self._enough(hits):
                break
            self._floor = hit.end
            place, piece = hit.end - base, FIRST_PIECE_BYTES
            self._open(whole[place - 1 : place], hit.end)
        self._kept = whole[-self._keep_bytes :]
        return hits

    def _take(self, found: Found) -> None:
        _, start, end = found
        # The byte that leads stands at the stream's start, before the base.
        behind = self._base - self._leads
        self._waiting = (behind + start + self._leads, behind + end)

    def _widened(self, whole: bytes, base: int, *, over: bool) -> Hit | None:
        """To whole characters, over nothing that was matched before."""
        assert self._waiting is not None
        start, end = self._waiting
        place = end_of(whole, end - base, over=over)
        if place is None:
            return None
        self._waiting = None
        if base < start >= end - WIDENED_BYTES:
            start = base + begin_of(whole, start - base)
        return Hit(max(start, self._floor), base + place)

    def _count_newlines(self, data: bytes, begun: int) -> None:
        assert self._newlines is not None
        found: list[int] = []
        place = len(data)
        while len(found) < (self._newlines.maxlen or 0) and (place := data.rfind(b"\n", 0, place)) >= 0:
            found.append(begun + place)
        self._newlines.extend(reversed(found))

    def _earliest(self) -> int:
        """No match still to come starts before it, nor the character that it starts in."""
        earliest = 0
        if self._most is not None:
            earliest = self.position - self._most - AROUND_BYTES
        if self._newlines is not None and len(self._newlines) == self._newlines.maxlen:
            earliest = max(earliest, self._newlines[0] + 1)
        return earliest
