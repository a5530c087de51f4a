"""The journal: facts as lines, each bound to the one before it by a running CRC."""

from __future__ import annotations

import os
import time
import zlib

from limpet_keeper import lean_json, system

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

JOURNAL_NAME = "keeper.journal"
FORMAT = b"1"
# Room kept ahead of the journal's end, so that a full disk can be told of in the journal itself.
RESERVE_BYTES = 16384

# Facts that only those who want to hear everything are woken for.
QUIET_FACTS = ("starting", "wrote", "stdin", "stream_closed", "synced")


class Line:
    """One line of a journal: where it stands, what it says, and whether the chain of CRCs holds there."""

    __slots__ = ("body", "crc", "end", "sound", "start")

    def __init__(self, start: int, end: int, body: bytes, crc: int, sound: bool) -> None:
        self.start = start
        self.end = end
        self.body = body
        self.crc = crc
        self.sound = sound


def encode_line(body: bytes, chain: int) -> tuple[bytes, int]:
    """The line that holds `body` after a line whose CRC was `chain`, and its own CRC."""
    crc = zlib.crc32(body, chain)
    return b"%b %08x %b\n" % (FORMAT, crc, body), crc


def decode_lines(data: bytes, chain: int = 0, start: int = 0) -> Iterator[Line]:
    """Every whole line of `data`, which begins at offset `start` of the file, after a line whose CRC was `chain`.

    A line that is unsound does not hide the ones after it: the chain goes on from the CRC that stands written there.
    """
    place = 0
    while (stop := data.find(b"\n", place)) >= 0:
        version, _, rest = data[place:stop].partition(b" ")
        written, space, body = rest.partition(b" ")
        crc = zlib.crc32(body, chain)
        sound = version == FORMAT and written + space == b"%08x " % crc
        if not sound and len(written) == 8:
            try:
                crc = int(written, 16)
            except ValueError:
                pass
        yield Line(start + place, start + stop + 1, body, crc, sound)
        chain = crc
        place = stop + 1


class Journal:
    """Appends facts to one file. What cannot be written waits, in order, and goes in whole later."""

    def __init__(self) -> None:
        self.fd = -1
        self.size = 0
        self.records = 0
        self.chain = 0
        self.waiting: list[bytes] = []
        self.error: OSError | None = None
        self.reserved = 0
        # Whether a fact that is not quiet was written since this was last cleared.
        self.has_news = False
        # The last fact but `wrote`, written or still waiting.
        self.last_said = ""

    def open(self, fd: int) -> None:
        """From now on facts go into this file, which is empty."""
        self.fd = fd
        self.reserve()

    def append(self, fact: str, **fields: Any) -> None:
        """Records a fact now; when storage refuses it, `error` says so and `flush` tries again."""
        self.has_news = self.has_news or fact not in QUIET_FACTS
        self.last_said = fact
        self._append(lean_json.encode({"fact": fact, **fields})[1:].encode())

    def append_wrote(self, stream: str, start: int, end: int, cut: int) -> None:
        """The one hot fact, without the cost of building an object."""
        rest = b',"cut":%d}' % cut if cut else b"}"
        self._append(b'"fact":"wrote","stream":"%b","start":%d,"end":%d%b' % (stream.encode(), start, end, rest))

    def _append(self, rest: bytes) -> None:
        self.records += 1
        body = b'{"n":%d,"at":%d,%b' % (self.records, time.time_ns() // 1_000_000, rest)
        line, self.chain = encode_line(body, self.chain)
        self.waiting.append(line)
        if self.error is None:
            self.flush()

    def flush(self) -> bool:
        """Writes what waits; True when nothing waits any more."""
        try:
            while self.waiting:
                line = self.waiting[0]
                done = 0
                # By offset: a part that went in before an error is written over, never doubled.
                while done < len(line):
                    done += system.write_at(self.fd, line[done:], self.size + done)
                self.size += len(line)
                del self.waiting[0]
        except OSError as error:
            self.error = error
            return False
        self.error = None
        if self.size + RESERVE_BYTES // 2 > self.reserved:
            self.reserve()
        return True

    def reserve(self) -> None:
        """Asks for room ahead; without it the journal still works, but a full disk silences it."""
        if system.reserve(self.fd, self.size, RESERVE_BYTES):
            self.reserved = self.size + RESERVE_BYTES

    def close(self) -> None:
        """Gives the reserved room back."""
        try:
            os.ftruncate(self.fd, self.size)
        except OSError:
            pass
        os.close(self.fd)
