"""Reads both journals of a run as they grow, and writes the daemon's."""

import os
from pathlib import Path
from typing import Final

from limpet.model.facts import AnyFact, DaemonFact, decode_fact, encode_fact
from limpet_keeper.journal import decode_lines, encode_line

_READ_BYTES: Final = 1 << 20


class JournalReader:
    """Follows one journal from its first record. What is torn or not whole yet is left for the next time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0
        self.chain = 0
        self.records = 0
        self._fd = -1

    def read_new(self) -> list[AnyFact]:
        """The facts that came since the last call; none while the file is not there."""
        if self._fd < 0:
            try:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return []
        facts: list[AnyFact] = []
        while data := os.pread(self._fd, _READ_BYTES, self.position):
            before = self.position
            for line in decode_lines(data, self.chain, self.position):
                if not line.sound:
                    return facts
                self.position, self.chain = line.end, line.crc
                self.records += 1
                fact = decode_fact(line.body)
                if fact is not None:
                    facts.append(fact)
            if self.position == before:
                break
        return facts

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class DaemonJournal:
    """The daemon's own journal of a run, made at the first fact."""

    def __init__(self, path: Path, position: int = 0, chain: int = 0, records: int = 0) -> None:
        """Goes on behind what a reader found sound: a torn tail is written over."""
        self.path = path
        self.records = records
        self._position = position
        self._chain = chain
        self._fd = -1

    def append(self, fact: DaemonFact) -> None:
        """Writes a fact, whose `n` must be the next number. OSError leaves the journal as it was."""
        if self._fd < 0:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self._fd = os.open(self.path, flags, 0o600)
            os.fchmod(self._fd, 0o600)
            os.ftruncate(self._fd, self._position)
        line, chain = encode_line(encode_fact(fact), self._chain)
        done = 0
        while done < len(line):
            done += os.pwrite(self._fd, line[done:], self._position + done)
        self._position += len(line)
        self._chain = chain
        self.records += 1

    def sync(self) -> None:
        """Puts the journal and its name on disk; may take a while, and may outlast the journal's being open."""
        for path in (self.path, self.path.parent, self.path.parent.parent):
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
