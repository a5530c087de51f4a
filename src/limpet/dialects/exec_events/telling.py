"""What is to be told of one run next: pure, by what is known of the run, what was told, and the time."""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from limpet.config import HooksExecConfig
from limpet.model.characters import whole_characters
from limpet.model.errors import Refusal
from limpet.model.run import Run
from limpet.model.status import status_of
from limpet.model.stream import Stream
from limpet.store.told import Told

STARTED: Final = "exec.started"
OUTPUT: Final = "exec.output"
COMPLETED: Final = "exec.completed"
NAMES: Final = (STARTED, OUTPUT, COMPLETED)
COMMAND_MAX_CHARS: Final = 4096
# How much of a stream may wait to be told; of more the oldest is dropped. At least so many chunks.
BUFFER_BYTES: Final = 64 << 10
_BUFFER_CHUNKS: Final = 4

Read = Callable[[str, int, int], bytes]
"""The bytes of a stream from there to there."""


class Note(NamedTuple):
    """One event of the run: its name, what it says, and of output the stream and the first byte it stands for."""

    name: str
    payload: dict[str, Any]
    place: tuple[str, int] | None = None


class _Chunk(NamedTuple):
    offset: int
    data: bytes
    dropped: int


class Telling:
    """One run's events, in their order: at most one `exec.started`, then output, then one `exec.completed`."""

    def __init__(self, name: str, config: HooksExecConfig, told: Told) -> None:
        self.told = told
        self.is_done = False
        self._name: Final = name
        self._window_s: Final = config.output_throttle_ms / 1000
        self._most: Final = config.output_max_chunk_bytes
        self._buffer: Final = max(BUFFER_BYTES, _BUFFER_CHUNKS * self._most)
        # When output may be told next.
        self.due_s: float | None = None

    def step(self, run: Run, now_ms: int, now_s: float, read: Read) -> list[Note]:
        """What is to be told now. `told` is then as it will be once that is done."""
        notes = list(self._notes(run, now_ms, now_s, read))
        for place, note in enumerate(notes, start=self.told.seq + 1):
            note.payload["seq"] = place
        self.told = msgspec.structs.replace(self.told, seq=self.told.seq + len(notes))
        return notes

    def wait_s(self, run: Run, now_s: float) -> float | None:
        """How long there is nothing to tell unless the run changes; None where only a change can bring something."""
        if self.due_s is None or not self.told.started or not any(self._left(run, name) for name in run.streams):
            return None
        return max(0.0, self.due_s - now_s)

    def _left(self, run: Run, name: str) -> int:
        return _end_of(run.streams[name]) - self.told.offsets.get(name, 0)

    def _notes(self, run: Run, now_ms: int, now_s: float, read: Read) -> Iterator[Note]:
        if not self.told.started and run.started_at is not None:
            self.told = msgspec.structs.replace(self.told, started=True)
            yield Note(STARTED, self._base(run, run.started_at))
        if self.told.started and (run.is_over or self.due_s is None or now_s >= self.due_s):
            is_some = False
            while chunks := list(self._chunks(run, now_ms, read)):
                yield from chunks
                is_some = True
                if not run.is_over:
                    break
            # Where nothing was there to be told, the next byte need not wait.
            self.due_s = now_s + self._window_s if is_some else None
        if run.is_over:
            self.is_done = True
            yield self._completed(run)

    def _chunks(self, run: Run, now_ms: int, read: Read) -> Iterator[Note]:
        """One of each stream that has something."""
        for name, stream in run.streams.items():
            offset = self.told.offsets.get(name, 0)
            chunk = self._chunk(stream, name, offset, read, is_last=run.is_over)
            if chunk is None:
                continue
            end = chunk.offset + len(chunk.data)
            self.told = msgspec.structs.replace(self.told, offsets=self.told.offsets | {name: end})
            payload = self._base(run, now_ms) | {
                "stream": name,
                "output": chunk.data.decode("utf-8", errors="replace"),
                "offset": chunk.offset,
                "bytes": len(chunk.data),
                "truncated": chunk.dropped > 0,
                "droppedBytes": chunk.dropped,
            }
            yield Note(OUTPUT, payload, (name, offset))

    def _chunk(self, stream: Stream, name: str, offset: int, read: Read, *, is_last: bool) -> _Chunk | None:
        """The next piece of a stream. What went before it was told is dropped: too old, or not kept any more."""
        end, start = _end_of(stream), offset
        try:
            if end - start > self._buffer:
                start = end - self._buffer
                start += _continued(read(name, start, min(start + 3, end)) if stream.hole_at(start) is None else b"")
            hole = stream.hole_at(start)
            if hole is not None:
                start = min(hole[1], end)
            stop = stream.kept_up_to(start, min(start + self._most, end))
            data = read(name, start, stop) if stop > start else b""
        except (Refusal, OSError):  # pruned meanwhile, or changed from outside: whoever reads the log is told how
            start, stop, data = end, end, b""
        # What stands before a gap, or at the end of all, is all that will ever be of its last character.
        if stop == start + self._most or (stop == end and not is_last):
            data = whole_characters(data)
        if len(data.decode("utf-8", errors="replace").encode()) > self._most:
            data = whole_characters(data[: self._most // 3])
        if not data and start == offset:
            return None
        return _Chunk(start, data, start - offset)

    def _completed(self, run: Run) -> Note:
        began, ended = run.started_at, run.finished_at
        payload = self._base(run, ended or 0) | {
            "exitCode": run.exit_code,
            "signal": run.signal,
            "durationMs": 0 if began is None or ended is None else max(0, ended - began),
            "status": status_of(run),
        }
        return Note(COMPLETED, payload if run.error_message is None else payload | {"error": run.error_message})

    def _base(self, run: Run, ts: int) -> dict[str, Any]:
        payload: dict[str, Any] = {
            "execId": run.run_id,
            "seq": 0,
            "ts": ts,
            "commandName": self._name,
            "command": run.command[:COMMAND_MAX_CHARS],
            "pid": run.pid,
            "cwd": run.cwd,
            "sessionId": run.session_id,
        }
        if len(run.command) > COMMAND_MAX_CHARS:
            payload["commandTruncated"] = True
        return payload | run.context


def _end_of(stream: Stream) -> int:
    """As far as a stream is told: what survivors write later is in the spool alone."""
    return stream.bytes if stream.ended_at is None else stream.ended_at


def _continued(data: bytes) -> int:
    """How many bytes at the beginning go on with a character that began before."""
    return next((place for place, byte in enumerate(data) if byte & 0xC0 != 0x80), len(data))
