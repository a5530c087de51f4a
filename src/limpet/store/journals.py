"""Reads both journals of a run as they grow, and writes the daemon's."""

import os
import time
from pathlib import Path
from typing import Final

import msgspec

from limpet.model.facts import AnyFact, DaemonFact, decode_fact, encode_fact
from limpet.store import disk
from limpet_keeper.journal import Line, decode_lines, encode_line

_READ_BYTES: Final = 1 << 20
_TAIL_BYTES: Final = 4096


class JournalReader:
    """Follows one journal from its first record to the first that cannot be read, which it looks at anew each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.position = 0
        self.chain = 0
        self.records = 0
        self._fd = -1
        # Whether the next record is one that was not to be read yet.
        self.is_held = False
        # Whether a whole record is in the way.
        self._is_stopped = False

    def go_to(self, position: int, chain: int, records: int) -> bool:
        """Reads on from there, where an earlier reader had come; False where that is not in the file any more."""
        if not reaches(self.path, position, chain):
            return False
        self.position, self.chain, self.records = position, chain, records
        return True

    def read_new(self, until: type[AnyFact] | None = None) -> list[AnyFact]:
        """The facts that came since the last call, up to one of the kind `until`; none while the file is not there."""
        if self._fd < 0:
            try:
                self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
            except FileNotFoundError:
                return []
        facts: list[AnyFact] = []
        self._is_stopped = self.is_held = False
        size = _READ_BYTES
        while data := os.pread(self._fd, size, self.position):
            before = self.position
            for line in decode_lines(data, self.chain, self.position):
                if not self._take(line, facts, until):
                    self._is_stopped = not self.is_held
                    return facts
            if self.position == before:
                if len(data) < size:
                    break
                size *= 2  # a record that is longer than what was read
        return facts

    def _take(self, line: Line, facts: list[AnyFact], until: type[AnyFact] | None) -> bool:
        """Whether the line is a record that can be read, and is to be."""
        if not line.sound:
            return False
        try:
            fact = decode_fact(line.body)
        except msgspec.DecodeError:
            return False
        if until is not None and isinstance(fact, until):
            self.is_held = True
            return False
        self.position, self.chain = line.end, line.crc
        self.records += 1
        if fact is not None:
            facts.append(fact)
        return True

    def chain_at(self, position: int) -> int | None:
        """The chain of the records that end there; None where none does."""
        if not position:
            return 0
        *_, last = (None, *decode_lines(os.pread(self._fd, position, 0))) if self._fd >= 0 else (None,)
        return last.crc if last is not None and last.sound and last.end == position else None

    def damaged(self) -> bytes:
        """What stands behind the facts and could not be read; empty for a last record that was torn in a crash."""
        if self._fd < 0 or (self.position and not self._is_stopped):
            return b""
        return os.pread(self._fd, os.fstat(self._fd).st_size - self.position, self.position)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class DaemonJournal:
    """The daemon's own journal of a run, made at the first fact."""

    def __init__(self, path: Path, behind: JournalReader | None = None) -> None:
        """Goes on behind what a reader found sound: a torn tail is written over, damage is set aside first."""
        self.path = path
        self.records = behind.records if behind else 0
        self.position = behind.position if behind else 0
        self.chain = behind.chain if behind else 0
        # What could not be read, until it is set aside.
        self.damaged = behind.damaged() if behind else b""
        self._fd = -1

    def append(self, fact: DaemonFact) -> None:
        """Writes a fact, whose `n` must be the next number. OSError leaves the journal as it was."""
        if self._fd < 0:
            self._fd = self._open()
        line, chain = encode_line(encode_fact(fact), self.chain)
        disk.write_at(self._fd, line, self.position)
        self.position += len(line)
        self.chain = chain
        self.records += 1

    def _open(self) -> int:
        if self.damaged:
            aside = disk.open_to_write(f"{self.path}.broken-{time.time_ns()}", os.O_EXCL)
            try:
                disk.write_at(aside, self.damaged, 0)
                disk.sync(aside)
            finally:
                os.close(aside)
            self.damaged = b""
        fd = disk.open_to_write(self.path)
        os.fchmod(fd, 0o600)
        disk.cut(fd, self.position)
        return fd

    def sync(self) -> None:
        """Puts what was written on disk; may take a while, and may outlast the journal's being open."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            disk.sync_data(fd)
        finally:
            os.close(fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def reaches(path: Path, position: int, chain: int) -> bool:
    """Whether a journal still has the record with that CRC that ended there: a power cut can take what was read."""
    if not position:
        return True
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return False
    try:
        size = _TAIL_BYTES
        while True:
            start = max(0, position - size)
            data = os.pread(fd, position - start, start)
            begin = data.rfind(b"\n", 0, -1) + 1
            if begin or not start:
                break
            size *= 8
    finally:
        os.close(fd)
    return len(data) == position - start and data[begin:].partition(b" ")[2].startswith(b"%08x " % chain)
