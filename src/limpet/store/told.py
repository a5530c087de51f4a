"""The journal of what was told of runs: so that no event is told twice, whatever becomes of the daemon."""

import io
import logging
import os
import time
from pathlib import Path
from typing import Final

import msgspec

from limpet_keeper.journal import decode_lines, encode_line

_log: Final = logging.getLogger("limpet.store")
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
# Past this, and past four times what it comes to when written anew, it is written anew.
_REWRITE_BYTES: Final = 1 << 20
# Of so many runs it is remembered that all was told. Until a run's row says that it is over it may be met again.
_DONE: Final = 1000


class Told(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far one run was told: the number of its events, and where each stream stands."""

    seq: int = 0
    started: bool = False
    offsets: dict[str, int] = {}


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What holds from then on: the number of the last event of all, how far runs were told, which were told whole."""

    at: int
    feed: int = 0
    runs: dict[str, Told] = {}
    done: list[str] = []


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(_Line)


class ToldJournal:
    """Written before anybody hears of it, never synced: a power cut ends all runs, and what it takes is told again."""

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self.begun: Final[dict[str, Told]] = {}
        self.feed = 0
        self._done: Final[dict[str, None]] = {}
        self._fd = -1
        self._position = 0
        self._rewritten_bytes = 0
        self._trouble = ""

    def open(self) -> bool:
        """Takes in what is there; whether there was anything. What is damaged is left out, and told."""
        self._fd = os.open(self.path, _FLAGS, 0o600)
        os.fchmod(self._fd, 0o600)
        with open(self._fd, "rb", closefd=False) as file:
            data = file.read()
        damaged = 0
        for line in io.BytesIO(data):
            if not line.endswith(b"\n"):
                break
            known = _decoded(line)
            if known is None:
                damaged += 1
            else:
                self._take(known)
            self._position += len(line)
        if damaged:
            _log.warning("%s: %d records cannot be read: their events may be told again", self.path, damaged)
        os.ftruncate(self._fd, self._position)
        return bool(data)

    def close(self) -> None:
        """Lets go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def is_done(self, run_id: str) -> bool:
        """Whether all of that run was told."""
        return run_id in self._done

    def tell(self, run_id: str, told: Told, feed: int) -> None:
        """So far that run is told now; the last event of all has that number."""
        self._write(_Line(at=time.time_ns() // 1_000_000, feed=feed, runs={run_id: told}))

    def end(self, run_id: str, feed: int) -> None:
        """All of that run was told, or nothing ever will be."""
        self._write(_Line(at=time.time_ns() // 1_000_000, feed=feed, done=[run_id]))

    def _take(self, line: _Line) -> None:
        self.feed = max(self.feed, line.feed)
        self.begun.update(line.runs)
        for run_id in line.done:
            self.begun.pop(run_id, None)
            self._done[run_id] = None
        while len(self._done) > _DONE:
            del self._done[next(iter(self._done))]

    def _write(self, line: _Line) -> None:
        """A disk that refuses stops no event: what was not written may be told again after a restart."""
        self._take(line)
        try:
            self._append(line)
            if self._position > max(_REWRITE_BYTES, 4 * self._rewritten_bytes):
                self._rewrite()
        except OSError as error:
            if self._trouble != str(error):
                self._trouble = str(error)
                _log.warning("%s: %s: after a restart events may be told again", self.path, error)

    def _append(self, line: _Line) -> None:
        data, _ = encode_line(_encoder.encode(line), 0)
        if os.pwrite(self._fd, data, self._position) < len(data):
            raise OSError(28, "No space left on device")
        self._position += len(data)

    def _rewrite(self) -> None:
        fresh = self.path.with_name(f"{self.path.name}.new")
        fd = os.open(fresh, _FLAGS | os.O_TRUNC, 0o600)
        position = self._position
        try:
            os.close(self._fd)
            self._fd, self._position = fd, 0
            self._append(_Line(at=time.time_ns() // 1_000_000, feed=self.feed, runs=self.begun, done=list(self._done)))
            fresh.rename(self.path)
        except OSError:
            os.close(fd)
            self._fd, self._position = os.open(self.path, _FLAGS, 0o600), position
            raise
        self._rewritten_bytes = self._position


def _decoded(line: bytes) -> _Line | None:
    """None for a line that is damaged, or of a later version."""
    found = next(decode_lines(line))
    try:
        return _decoder.decode(found.body) if found.sound else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
