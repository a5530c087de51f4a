"""One stream of output, as far as it is known: its bytes over all attempts, what was given up, what is on disk."""

from itertools import pairwise

import msgspec

Span = tuple[int, int]
Tail = tuple[tuple[str, int, int], ...]

# What came last is remembered as far as this, in so many pieces at most: a snippet is made of it.
TAIL_BYTES = 8192
TAIL_PIECES = 256


class Stream(msgspec.Struct, frozen=True):
    """Offsets count from the first attempt's first byte: a further attempt's output goes on behind the last one's."""

    bytes: int = 0
    # Where the spool of each attempt begins.
    parts: tuple[int, ...] = (0,)
    # What came first, and stays whatever the bound.
    head_end: int = 0
    # As far as items were made of it.
    shown: int = 0
    # What is not kept any more, ascending: in each attempt what was given up, and an end that went with the power.
    holes: tuple[Span, ...] = ()
    durable: int = 0
    # From a failed sync on, nothing more is called durable.
    durable_until: int | None = None
    open: bool = True
    # Where the run ended; what came later is in the spool alone.
    ended_at: int | None = None

    @property
    def kept_from(self) -> int:
        """The first byte behind which nothing was given up."""
        return self.holes[-1][1] if self.holes else 0

    @property
    def first_kept(self) -> int:
        """The first byte that is kept."""
        return self.holes[0][1] if self.holes and self.holes[0][0] == 0 else 0

    def hole_at(self, offset: int) -> Span | None:
        """The hole in which that byte was, if it was given up."""
        return next((hole for hole in self.holes if hole[0] <= offset < hole[1]), None)

    @property
    def last_kept(self) -> Span:
        """The last bytes that are kept without a gap; the end where there are none."""
        start, end = 0, self.bytes
        for low, high in reversed(self.holes):
            if high < end:
                start = high
                break
            end = low
        return (start, end) if start < end else (self.bytes, self.bytes)

    def kept_end(self, offset: int) -> int:
        """Up to where bytes are kept without a gap from `offset` on."""
        return min((start for start, _ in self.holes if start > offset), default=self.bytes)

    def kept_up_to(self, offset: int, end: int) -> int:
        """As far towards `end` as bytes are kept from `offset` on; `offset` where not even that one is."""
        return offset if self.hole_at(offset) else min(end, self.kept_end(offset))

    def spans(self, start: int, end: int) -> list[tuple[int, int, int]]:
        """The pieces of a range as the attempts' spools hold them: attempt, and from where to where in its spool."""
        bounds = pairwise((*self.parts, max(self.bytes, end)))
        return [
            (attempt, max(start, low) - low, min(end, high) - low)
            for attempt, (low, high) in enumerate(bounds, start=1)
            if max(start, low) < min(end, high)
        ]

    # How facts change it. What a keeper counts begins at 0 in each attempt.

    def grown(self, end: int, head: int) -> "Stream":
        """Longer, with so many more bytes in the head."""
        return msgspec.structs.replace(self, bytes=max(self.bytes, self.parts[-1] + end), head_end=self.head_end + head)

    def holed(self, start: int, end: int) -> "Stream":
        """With the attempt's hole as it is now."""
        base = self.parts[-1]
        earlier = tuple(hole for hole in self.holes if hole[1] <= base)
        return msgspec.structs.replace(self, holes=(*earlier, (base + start, base + end)))

    def cut(self, end: int) -> "Stream":
        """With the attempt's bytes from there on gone: the power went before they were on disk."""
        start = self.parts[-1] + end
        if start >= self.bytes:
            return self
        before = tuple(hole for hole in self.holes if hole[1] <= start)
        start = min([start, *(hole[0] for hole in self.holes if hole[1] > start)])
        return msgspec.structs.replace(self, holes=(*before, (start, self.bytes)))

    def synced(self, end: int) -> "Stream":
        """With the attempt's bytes up to there on disk, as far as no sync failed before."""
        base = self.parts[-1]
        if self.durable < base:
            return self  # an earlier attempt's end may be missing: what lies behind it is not known to be whole
        end = base + end if self.durable_until is None else min(base + end, self.durable_until)
        return msgspec.structs.replace(self, durable=max(self.durable, end))

    def sync_failed(self, start: int) -> "Stream":
        """With a place behind which nothing is called durable any more."""
        start += self.parts[-1]
        known = start if self.durable_until is None else min(self.durable_until, start)
        return msgspec.structs.replace(self, durable_until=known)

    def closed(self, ended_at: int | None = None) -> "Stream":
        """With nothing holding it any more; where the run ended, unless that is known."""
        return msgspec.structs.replace(self, open=False, ended_at=self.ended_at if ended_at is None else ended_at)

    def continued(self) -> "Stream":
        """With another attempt to come behind what is there, all of which was put on disk first."""
        durable = self.bytes if self.durable_until is None else self.durable
        return msgspec.structs.replace(self, parts=(*self.parts, self.bytes), durable=durable, open=True)


def tail_with(tail: Tail, name: str, start: int, end: int, *, begins: bool) -> Tail:
    """The last bytes of all streams in the order in which they came, one more piece taken in.

    One that `begins` a spool stands by itself: no character goes on from one attempt to the next.
    """
    if tail and tail[-1][0] == name and tail[-1][2] == start and not begins:
        start = tail[-1][1]
        tail = tail[:-1]
    tail = (*tail, (name, max(start, end - TAIL_BYTES), end))
    kept, size = len(tail), 0
    while kept and size < TAIL_BYTES and len(tail) - kept < TAIL_PIECES:
        kept -= 1
        size += tail[kept][2] - tail[kept][1]
    return tail[kept:]
