"""Replays one terminal's run into an emulator: bytes as they were said, sizes at their place among them.

What a conversation's own prompts say in the spool is left out: it is for cursors, and no person would see it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from limpet.engine.reading import read_exactly
from limpet.engine.screens.unfolding import BareLines
from limpet.model.facts import Prompt, Resized, Submitted, TerminalAsked, Wrote
from limpet.store.journals import JournalReader
from limpet.store.run_directory import RunDirectory

if TYPE_CHECKING:
    from limpet.engine.screens.emulator import Emulator
    from limpet.model.run import Run
    from limpet.store.blobs import BlobStore

STREAM: Final = "pty"
_CHUNK_BYTES: Final = 256 << 10
# How far from where it begins in the middle a line's end is looked for: no sequence goes on behind one.
_LINE_BYTES: Final = 4096
# Of sizes with no output between them, so many last ones count: nobody saw the others.
_SIZES_AT_ONCE: Final = 8
# So many answers wait for whoever asked for them.
_ANSWERS: Final = 64


class Replay:
    """One run's screen, as far as it was replayed; goes on from there. Blocking, for one thread at a time."""

    def __init__(self, run: Run, blobs: BlobStore, path: RunDirectory, most_bytes: int) -> None:
        """Begins so many bytes before the end at most, or behind what is not kept any more."""
        stream = run.streams[STREAM]
        self.attempt = len(stream.parts)
        self.begins_at = stream.parts[-1]
        self.first = max(self.begins_at, stream.kept_from, stream.bytes - most_bytes)
        self.position = self.first
        self.emulator: Emulator
        self._blobs = blobs
        self._journal = JournalReader(RunDirectory(path.path, self.attempt).keeper_journal)
        # What is still to come: sizes, and what is left out, by where in the stream; and how far the journal goes.
        self._sizes: deque[tuple[int, int, int]] = deque()
        self._hidden: deque[tuple[int, int]] = deque()
        self._asked: deque[tuple[int, int]] = deque()
        # By where a question ends: what the program is to be told. Replies to all else go nowhere.
        self.answers: dict[int, bytes] = {}
        self._said = self.begins_at
        self._lines = BareLines(blobs, run.run_id, self.attempt)
        self._is_new = True
        self._size = _first_size(path)

    @property
    def is_complete(self) -> bool:
        """Whether nothing before where it began was left out."""
        return self.first == self.begins_at

    def go_on(self, run: Run, until: int | None = None) -> None:
        """Replays all that is there by now, or up to a place."""
        self._read_journal()
        end = max(self._said, run.streams[STREAM].bytes) if until is None else until
        if self._is_new:
            self._begin(run, end)
        while True:
            self._resize_here(end)
            if self._hidden and self._hidden[0][1] <= self.position:
                self._hidden.popleft()
            elif self._hidden and self._hidden[0][0] <= self.position:
                self.position = min(end, self._hidden.popleft()[1])
            elif self.position >= end:
                return
            else:
                coming = [each[0][0] for each in (self._sizes, self._hidden) if each]
                coming += [place for place in self._next_question() if place > self.position]
                self._feed(run, min(end, self.position + _CHUNK_BYTES, *coming))

    def _begin(self, run: Run, end: int) -> None:
        from limpet.engine.screens.emulator import Emulator  # the library takes its time: who needs no screen is spared

        self._is_new = False
        while self._sizes and self._sizes[0][0] <= self.first:
            _, *size = self._sizes.popleft()
            self._size = (size[0], size[1])
        self.emulator = Emulator(*self._size)
        if not self.is_complete and self.first < end:
            head = read_exactly(run, self._blobs, STREAM, self.first, min(end, self.first + _LINE_BYTES))
            self.first += head.find(b"\n") + 1
            self.position = self.first

    def _read_journal(self) -> None:
        base = self.begins_at
        for fact in self._journal.read_new():
            match fact:
                case Wrote():
                    self._said = base + fact.end
                case Resized():
                    self._sizes.append((self._said, fact.rows, fact.cols))
                case TerminalAsked():
                    self._asked.append((base + fact.start, base + fact.end))
                case Prompt():
                    self._hidden.append((base + fact.start, base + fact.end))
                case _:
                    pass

    def _resize_here(self, end: int) -> None:
        here: deque[tuple[int, int, int]] = deque(maxlen=_SIZES_AT_ONCE)
        while self._sizes and self._sizes[0][0] <= self.position <= end:
            here.append(self._sizes.popleft())
        for _, rows, cols in here:
            self.emulator.resize(rows, cols)

    def _feed(self, run: Run, end: int) -> None:
        data = read_exactly(run, self._blobs, STREAM, self.position, end)
        self.emulator.feed(self._lines.unfold(data, self.position - self.begins_at))
        self.position = end
        replies = self.emulator.take_replies()
        if (question := self._next_question()) and question[1] == end:
            self.answers[end] = replies
            while len(self.answers) > _ANSWERS:
                self.answers.pop(next(iter(self.answers)))

    def _next_question(self) -> tuple[int, ...]:
        """Where the question begins and ends that is next, or has just ended."""
        while self._asked and self._asked[0][1] < self.position:
            self._asked.popleft()
        return self._asked[0] if self._asked else ()

    def close(self) -> None:
        self._journal.close()


def _first_size(path: RunDirectory) -> tuple[int, int]:
    """The size that the terminal had at first."""
    reader = JournalReader(path.daemon_journal)
    try:
        for fact in reader.read_new():
            if isinstance(fact, Submitted) and fact.rows is not None and fact.cols is not None:
                return fact.rows, fact.cols
    finally:
        reader.close()
    return 24, 80
