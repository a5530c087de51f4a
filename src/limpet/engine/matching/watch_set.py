"""Many patterns over one stream: those not found yet share one database, one that has been found goes on alone."""

from __future__ import annotations

from collections.abc import Sequence

from limpet.engine.matching.hyperscan_streams import TooLarge
from limpet.engine.matching.pattern import Pattern
from limpet.engine.matching.scanner import Hit, Scanner
from limpet.engine.matching.shared import Restart, Shared, shareable
from limpet.model.errors import Refusal


class WatchSet:
    """Finds of each pattern what its own scanner would find. One thread at a time may use it.

    What begins at the same place is shared; a member that finds nothing costs next to nothing. On a line of more than
    64 KiB, patterns whose match can be as long as the line are looked for one by one until it ends.
    """

    def __init__(
        self,
        patterns: Sequence[Pattern],
        positions: Sequence[int],
        line_before: bytes = b"",
        *,
        most_hits: int | None = None,
    ) -> None:
        """Each pattern from its own position on; `line_before` is the first one's. It compiles: call it in a thread."""
        self._patterns = list(patterns)
        self._most_hits = most_hits
        self.position = min(positions, default=0)
        self._before = line_before[-1:]
        self._due = dict(enumerate(positions))
        self._groups: list[Shared] = []
        self._alone: dict[int, Scanner] = {}
        self._strays: dict[int, Shared] = {}
        """Members that are looked for alone until their line ends."""
        self._start_due()

    def feed(self, data: bytes) -> list[tuple[int, Hit]]:
        """What is found with the next bytes: by ends, then by the pattern's place."""
        hits: list[tuple[int, Hit]] = []
        while data:
            size = min(self._due.values(), default=self.position + len(data)) - self.position
            hits += self._feed(data[:size])
            data = data[size:]
            self._start_due()
        return sorted(hits, key=_order)

    def finish(self) -> list[tuple[int, Hit]]:
        """What is found now that output has ended."""
        hits: list[tuple[int, Hit]] = []
        for group in self._groups:
            for index in group.finish():
                if index not in self._alone:
                    hits += self._go_alone(index, group.since(index))
        for index, scanner in self._alone.items():
            hits += [(index, hit) for hit in scanner.finish()]
        return sorted(hits, key=_order)

    def restart_at(self, index: int) -> int:
        """Where this pattern can be looked for again, given the line before it."""
        if index in self._due:
            return self._due[index]
        if index in self._alone:
            return self._alone[index].restart_at
        return next((group.restart_at(index) for group in self._groups if index in group.members), self.position)

    def drop(self, index: int) -> None:
        """Looks for this pattern no more."""
        self._due.pop(index, None)
        self._strays.pop(index, None)
        scanner = self._alone.pop(index, None)
        if scanner is not None:
            scanner.close()
        for group in self._groups:
            group.members.discard(index)
        self._close_empty()

    def close(self) -> None:
        for index in range(len(self._patterns)):
            self.drop(index)

    def _feed(self, data: bytes) -> list[tuple[int, Hit]]:
        hits: list[tuple[int, Hit]] = []
        for index, scanner in self._alone.items():
            hits += [(index, hit) for hit in scanner.feed(data)]
        for group in self._groups:
            for index in group.feed(data):
                # a stray has seen the bytes already; now it stays alone
                if self._strays.pop(index, None) is None:
                    restart = group.since(index)
                    hits += self._go_alone(index, restart._replace(data=restart.data + data))
            self._come_back(group, data)
            for index, restart in group.advance(data):
                if index not in self._strays:
                    self._strays[index] = group
                    self._go_alone(index, restart)
        self.position += len(data)
        self._before = data[-1:]
        if any(not group.members for group in self._groups):
            self._close_empty()
        return hits

    def _go_alone(self, index: int, restart: Restart) -> list[tuple[int, Hit]]:
        scanner = self._patterns[index].scanner(restart.offset, restart.line_before, most_hits=self._most_hits)
        self._alone[index] = scanner
        return [(index, hit) for hit in scanner.feed(restart.data)]

    def _come_back(self, group: Shared, data: bytes) -> None:
        if b"\n" in data:
            for index in [stray for stray, its in self._strays.items() if its is group]:
                del self._strays[index]
                self._alone.pop(index).close()

    def _start_due(self) -> None:
        due = [index for index, at in self._due.items() if at == self.position]
        for index in due:
            del self._due[index]
        before = b"" if self._before == b"\n" else self._before
        together = {index: self._patterns[index] for index in due if shareable(self._patterns[index])}
        if len(together) > 1:
            try:
                self._groups.append(Shared(together, self.position, before))
            except (TooLarge, Refusal):
                together = {}
        else:
            together = {}
        for index in due:
            if index not in together:
                self._alone[index] = self._patterns[index].scanner(self.position, before, most_hits=self._most_hits)

    def _close_empty(self) -> None:
        for group in self._groups:
            if not group.members:
                group.close()
        self._groups = [group for group in self._groups if group.members]


def _order(found: tuple[int, Hit]) -> tuple[int, int]:
    return found[1].end, found[0]
