"""Reads a range of a spool: exact bytes or text, never a byte that is gone, never half a character."""

import base64
import codecs
from typing import Final

import msgspec

from limpet.model.errors import Refusal
from limpet.model.run import Run, Stream
from limpet.store.run_directory import RunDirectory

MAX_READ_BYTES: Final = 8 << 20
_LINE_SCAN_BYTES: Final = 1 << 16


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """One page of a stream, and where the next one starts."""

    data: str
    encoding: str
    offset_bytes: int
    next_offset: int
    total_bytes: int
    eof: bool
    base: int


def stream_of(run: Run, name: str) -> Stream:
    """The stream of that name, or a refusal that says which there are."""
    stream = run.streams.get(name)
    if stream is None:
        known = ", ".join(run.streams) or "none yet"
        raise Refusal("invalid_argument", f"`stream`: this run has no {name}; it has {known}", field="stream")
    return stream


def check_offset(run: Run, name: str, offset: int) -> None:
    """Refuses an offset beyond the end, and one whose byte is gone; nothing is clamped."""
    stream = stream_of(run, name)
    if offset > stream.bytes:
        message = f"`offset` is beyond the end: the stream has {stream.bytes} bytes so far"
        raise Refusal("invalid_argument", message, reason="cursor_ahead", field="offset", total_bytes=stream.bytes)
    if stream.hole is not None and stream.hole[0] <= offset < stream.hole[1]:
        message = f"these bytes were given up to hold run.spool_max_bytes; the next kept one is {stream.hole[1]}"
        raise Refusal("gone", message, reason="cursor_expired", base=stream.hole[1])


def read_range(run: Run, directory: RunDirectory, name: str, offset: int, max_bytes: int, encoding: str) -> Range:
    """Up to `max_bytes` from `offset`; text ends on a whole character as long as more can come."""
    check_offset(run, name, offset)
    stream = stream_of(run, name)
    end = min(stream.bytes, offset + min(max_bytes, MAX_READ_BYTES))
    if stream.hole is not None and offset < stream.hole[0]:
        end = min(end, stream.hole[0])
    data = directory.read_spool(name, offset, end - offset) if end > offset else b""
    if len(data) < end - offset:
        message = f"the spool {name} is shorter than its journal says: it was changed from outside"
        raise Refusal("internal", message, reason="spool_tampered")
    at_end = end == stream.bytes and not stream.open
    if encoding == "utf-8":
        data = data if at_end else _whole_characters(data, max_bytes)
        text = data.decode("utf-8", errors="replace")
    else:
        text = base64.b64encode(data).decode()
    following = offset + len(data)
    return Range(
        data=text,
        encoding=encoding,
        offset_bytes=offset,
        next_offset=following,
        total_bytes=stream.bytes,
        eof=following == stream.bytes and not stream.open,
        base=stream.kept_from,
    )


def _whole_characters(data: bytes, max_bytes: int) -> bytes:
    """Leaves off a character that has only begun; but a page always holds something."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoder.decode(data)
    begun = len(decoder.getstate()[0])
    return data[: len(data) - begun] if begun < min(len(data), max_bytes) else data


def last_lines_offset(run: Run, directory: RunDirectory, name: str, lines: int) -> int:
    """Where the last `lines` lines begin, as far back as bytes are kept without a gap."""
    stream = stream_of(run, name)
    place = stream.bytes
    if lines <= 0 or place == 0:
        return place
    missing = lines + 1 if directory.read_spool(name, place - 1, 1) == b"\n" else lines
    while place > stream.kept_from:
        start = max(stream.kept_from, place - _LINE_SCAN_BYTES)
        block = directory.read_spool(name, start, place - start)
        found = len(block)
        while (found := block.rfind(b"\n", 0, found)) >= 0:
            missing -= 1
            if not missing:
                return start + found + 1
        place = start
    return stream.kept_from


def last_bytes_offset(run: Run, name: str, count: int) -> int:
    """Where the last `count` bytes begin, as far back as bytes are kept without a gap."""
    stream = stream_of(run, name)
    return max(stream.bytes - count, stream.kept_from, 0)
