"""`acks/<name>.journal` of a home: which hits of watchers one reader is done with."""

import io
import logging
import os
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

import msgspec

from limpet.store.run_directory import sync_directory
from limpet_keeper.journal import decode_lines, encode_line

_log: Final = logging.getLogger("limpet.engine")

_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
# Past this, and past four times what it comes to when written anew, a journal is written anew.
_REWRITE_BYTES: Final = 1 << 20
# How many leases are remembered after they were acked.
_LEASES: Final = 1000


class Mark(msgspec.Struct, frozen=True, array_like=True):
    """Which hits of a run are done: all up to `through`, and those behind it in `also`."""

    through: int = 0
    also: tuple[int, ...] = ()

    def holds(self, seq: int) -> bool:
        """Whether the hit with that seq is done."""
        place = bisect_left(self.also, seq)
        return seq <= self.through or self.also[place : place + 1] == (seq,)

    def joined(self, other: "Mark") -> "Mark":
        """What is done according to either."""
        through = max(self.through, other.through)
        return Mark(through, tuple(sorted(seq for seq in {*self.also, *other.also} if seq > through)))


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line: what holds from then on. Each says all about what it names, so that one that is lost takes no other."""

    at: int
    # Done hits of these runs.
    marks: dict[str, Mark] = {}
    # The lease that was acked with this, and of how many messages.
    leases: dict[str, int] = {}
    # Of each session, how many messages were dropped that nobody was told of yet.
    dropped: dict[str, int] = {}
    # Of each pruned run, the session and how many messages went with it that nobody was told of yet.
    pruned: dict[str, tuple[str, int]] = {}
    # Runs up to that id count as done where no mark says otherwise: they were there before this reader.
    since: str = ""


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Record)


class Acks:
    """What one reader has done. Lines like those of a run's journals, but each by itself: one that is damaged takes no
    other with it. Opening and writing may take a while.

    `put` may be called in any thread. What it changes is seen once it is written, and not if the disk refuses it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.marks: dict[str, Mark] = {}
        self.leases: dict[str, int] = {}
        self.dropped: dict[str, int] = {}
        self.pruned: dict[str, tuple[str, int]] = {}
        self.since = ""
        self.damaged_records = 0
        self._position = 0
        self._rewritten_bytes = 0
        # Why what is on disk is not known, if it is not: then nothing is written over it.
        self._unread: OSError | None = None
        self._turn = threading.Lock()

    def open(self, is_kept: Callable[[str], bool]) -> bool:
        """Takes in what is known of runs that are kept; whether there was a journal. Damage is set aside, and told."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return False
        except OSError as error:
            _log.warning("%s cannot be read, nothing can be acked: %s", self.path, error)
            self._unread = error
            return True
        for line in io.BytesIO(data):
            if not line.endswith(b"\n"):
                break  # torn: it is written over
            record = _decoded(line)
            if record is None:
                self.damaged_records += 1
            else:
                self._take(record)
            self._position += len(line)
        for run_id in [run_id for run_id in self.marks if not is_kept(run_id)]:
            del self.marks[run_id]
        # A run that was to go, and is there: nothing of it went.
        self.pruned = {run_id: each for run_id, each in self.pruned.items() if not is_kept(run_id)}
        try:
            if self.damaged_records:
                self._set_aside(data)
            if self.damaged_records or self._is_long():
                self._rewrite()
        except OSError as error:  # what is there goes on to be used
            _log.warning("%s was not written anew: %s", self.path, error)
        return True

    def _set_aside(self, data: bytes) -> None:
        aside = self.path.with_name(f"{self.path.name}.broken-{time.time_ns()}")
        _log.warning(
            "%s: %d records cannot be read, what they said was done may be told again; the file is kept as %s",
            self.path,
            self.damaged_records,
            aside.name,
        )
        aside.touch(mode=0o600)
        aside.write_bytes(data)

    def _take(self, record: Record) -> None:
        for run_id, mark in record.marks.items():
            self.marks[run_id] = mark.joined(self.marks.get(run_id, Mark()))
        self.dropped = {session_id: count for session_id, count in (self.dropped | record.dropped).items() if count}
        self.pruned = {run_id: each for run_id, each in (self.pruned | record.pruned).items() if each[1]}
        self.since = max(self.since, record.since)
        leases = self.leases | record.leases
        self.leases = dict(list(leases.items())[-_LEASES:])

    def holds(self, run_id: str, seq: int) -> bool:
        """Whether that hit is done."""
        mark = self.marks.get(run_id)
        return run_id <= self.since if mark is None else mark.holds(seq)

    def mark_after(self, run_id: str, seqs: Iterable[int], lowest_left: int | None) -> Mark:
        """The run's mark once these are done too, and `lowest_left` is the first of its hits that is not."""
        mark = self.marks.get(run_id, Mark())
        done = sorted({*mark.also, *seqs})
        behind = len(done) if lowest_left is None else bisect_left(done, lowest_left)
        return Mark(max([mark.through, *done[:behind]]), tuple(done[behind:]))

    def put(self, record: Record, *, sync: bool) -> None:
        """Appends a record; with `sync` it is on disk when this returns. OSError leaves all as it was."""
        with self._turn:
            if self._unread is not None:
                raise self._unread
            line, _ = encode_line(_encoder.encode(record), 0)
            fd = os.open(self.path, _FLAGS, 0o600)
            try:
                os.fchmod(fd, 0o600)
                os.ftruncate(fd, self._position)
                _write(fd, line, self._position)
                if sync:
                    os.fdatasync(fd)
            finally:
                os.close(fd)
            if not self._position:
                sync_directory(self.path.parent)
            self._position += len(line)
            self._take(record)
            if self._is_long():
                try:
                    self._rewrite()
                except OSError as error:
                    _log.warning("%s was not written anew: %s", self.path, error)

    def assume(self, record: Record) -> None:
        """The same until the end of this process alone."""
        with self._turn:
            self._take(record)

    def _is_long(self) -> bool:
        return self._position > max(_REWRITE_BYTES, 4 * self._rewritten_bytes)

    def _rewrite(self) -> None:
        """The same in one record. Until that is in its place and on disk, the old one stays."""
        record = Record(
            at=time.time_ns() // 1_000_000,
            marks=self.marks,
            leases=self.leases,
            dropped=self.dropped,
            pruned=self.pruned,
            since=self.since,
        )
        line, _ = encode_line(_encoder.encode(record), 0)
        fresh = self.path.with_name(f"{self.path.name}.new")
        fd = os.open(fresh, _FLAGS | os.O_TRUNC, 0o600)
        try:
            os.fchmod(fd, 0o600)
            _write(fd, line, 0)
            os.fsync(fd)
        finally:
            os.close(fd)
        fresh.rename(self.path)
        self._position = self._rewritten_bytes = len(line)
        sync_directory(self.path.parent)

    def forget(self, run_ids: Iterable[str]) -> None:
        """Drops what is known of runs that are gone; in the file it stays until that is written anew."""
        with self._turn:
            for run_id in run_ids:
                self.marks.pop(run_id, None)


def _decoded(line: bytes) -> Record | None:
    """None for a line that is damaged, or of a later version."""
    found = next(decode_lines(line))
    try:
        return _decoder.decode(found.body) if found.sound else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _write(fd: int, data: bytes, position: int) -> None:
    while data:
        done = os.pwrite(fd, data, position)
        position, data = position + done, data[done:]
