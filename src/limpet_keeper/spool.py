"""A spool: the bytes of one stream, append-only, of which the oldest may be given up behind the head."""

from __future__ import annotations

import codecs
import os
import struct
import zlib

from limpet_keeper import system

_PAGE_BYTES = 4096
_CHUNK_BYTES = 1 << 20
# All but the last byte of the longest character.
_LONGEST_CUT = 3


class Spool:
    """One stream's file. When storage refuses a write, `error` says why and the rest stays in `waiting` for `flush`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.fd = -1
        self.size = 0
        self.waiting = memoryview(b"")
        # The last bytes, as long as the very last is not ASCII.
        self._tail = b""
        self.error: OSError | None = None
        # Bytes before this are kept whatever the bound.
        self.head_end = 0
        self.hole_start = 0
        self.hole_end = 0
        self.synced = 0
        # Set by a failed sync: nothing from here on is ever called durable.
        self.unsafe = False
        self._directory_fd = -1
        self._bare_fd = -1
        self._bare_size = 0
        self._bare_waiting = b""

    def create(self, directory_fd: int) -> None:
        """Makes its file, empty, in the run's directory."""
        self._directory_fd = directory_fd
        self.fd = create(f"{self.name}.spool", directory_fd)

    def append(self, data: memoryview, bare_places: list[int]) -> None:
        """Takes `data`, with the places of its bare LFs, and writes it as far as it goes in."""
        if bare_places:
            self._bare_waiting = struct.pack(f"{len(bare_places)}Q", *(self.size + place for place in bare_places))
        self.waiting = data
        self.flush()

    def flush(self) -> None:
        """Writes what waits."""
        try:
            if self._bare_waiting:
                self._flush_bare()
            while self.waiting:
                # By offset: what a failed call left behind is written over.
                done = system.write_at(self.fd, self.waiting, self.size)
                self.size += done
                self._tail = self._tail_after(self.waiting[:done]) if self.waiting[done - 1] >= 0x80 else b""
                self.waiting = self.waiting[done:]
            self.error = None
        except OSError as error:
            self.error = error

    def _tail_after(self, data: memoryview) -> bytes:
        return (self._tail + bytes(data[-_LONGEST_CUT:]))[-_LONGEST_CUT:]

    def cut(self) -> int:
        """How many bytes at its end are the beginning of a UTF-8 character, the rest of which has not come."""
        return len(self._tail) - codecs.utf_8_decode(self._tail, "replace")[1] if self._tail else 0

    def _flush_bare(self) -> None:
        if self._bare_fd < 0:
            self._bare_fd = create(f"{self.name}.bare_lf", self._directory_fd)
        while self._bare_waiting:
            done = system.write_at(self._bare_fd, self._bare_waiting, self._bare_size)
            self._bare_size += done
            self._bare_waiting = self._bare_waiting[done:]

    def refused_file(self) -> str:
        """Which file the last error is about."""
        return f"{self.name}.bare_lf" if self._bare_waiting else f"{self.name}.spool"

    def kept_bytes(self) -> int:
        """What this spool holds on disk, the hole not counted."""
        return self.size - (self.hole_end - self.hole_start)

    def hole_up_to(self, end: int, count: int) -> tuple[int, int] | None:
        """The hole as it must become to give up `count` bytes more of what lies behind the head and before `end`.

        As many as make up whole pages; what is left before `end` when there are fewer; None when there is nothing.
        """
        start = self.hole_start if self.hole_end else _up_to_page(self.head_end)
        known = max(self.hole_end, start)
        end = min(end, self.size, _up_to_page(known + count))
        return (start, end) if end > known else None

    def give_up(self, start: int, end: int) -> None:
        """Frees the pages of the hole that are new in it, or were only in part so far."""
        fresh = max(start, self.hole_end) // _PAGE_BYTES * _PAGE_BYTES
        self.hole_start, self.hole_end = start, end
        system.punch(self.fd, fresh, end - fresh)

    def unsynced(self) -> bool:
        """Whether a sync would make more of it durable."""
        return self.synced < self.size and not self.unsafe

    def sync(self) -> None:
        """Puts all on disk; OSError when the disk says no, once."""
        if self._bare_fd >= 0:
            os.fdatasync(self._bare_fd)
        os.fdatasync(self.fd)

    def seal(self) -> dict[str, object]:
        """What the last record says of this spool."""
        hole = [self.hole_start, self.hole_end] if self.hole_end else None
        kept = ((0, self.hole_start), (self.hole_end, self.size))
        seal: dict[str, object] = {"bytes": self.size, "hole": hole, "crc32": _crc_of(self.fd, *kept)}
        if self._bare_fd >= 0:
            seal["bare_lf_crc32"] = _crc_of(self._bare_fd, (0, self._bare_size))
        return seal

    def close(self) -> None:
        for fd in (self.fd, self._bare_fd):
            if fd >= 0:
                os.close(fd)


def _crc_of(fd: int, *ranges: tuple[int, int]) -> str | None:
    """The CRC of these ranges of a file, in order; None where it cannot be read."""
    crc = 0
    try:
        for place, end in ranges:
            while place < end and (piece := os.pread(fd, min(_CHUNK_BYTES, end - place), place)):
                crc = zlib.crc32(piece, crc)
                place += len(piece)
    except OSError:
        return None
    return f"{crc:08x}"


def _up_to_page(offset: int) -> int:
    return -(-offset // _PAGE_BYTES) * _PAGE_BYTES


def create(name: str, directory_fd: int) -> int:
    """A new private file of the run's directory, for reading and writing."""
    return os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600, dir_fd=directory_fd)
