"""Reads a range of a spool: exact bytes or text, never a byte that is gone, never half a character."""

import base64
import codecs
from typing import Final

import msgspec

from limpet.engine.screens.unfolding import BareLines
from limpet.model.characters import whole_characters
from limpet.model.errors import Refusal
from limpet.model.plain import begun_sequence_bytes, to_plain
from limpet.model.run import Run
from limpet.model.stream import Stream
from limpet.store.blobs import BlobStore, spool_name

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
    names = list(run.streams) or (["pty"] if run.rows is not None else ["stdout", "stderr"])
    if name not in names:
        raise Refusal(
            "invalid_argument", f"`stream`: this run has no {name}; it has {', '.join(names)}", field="stream"
        )
    # Before a run begins its streams are empty; those of one that never began stay so.
    return run.streams.get(name) or Stream(open=not run.is_over)


def check_offset(run: Run, name: str, offset: int) -> None:
    """Refuses an offset beyond the end, and one whose byte is gone; nothing is clamped."""
    stream = stream_of(run, name)
    if offset > stream.bytes:
        message = f"`offset` is beyond the end: the stream has {stream.bytes} bytes so far"
        raise Refusal("invalid_argument", message, reason="cursor_ahead", field="offset", total_bytes=stream.bytes)
    hole = stream.hole_at(offset)
    if hole is not None:
        message = (
            f"these bytes are not kept (given up for run.spool_max_bytes, or lost): the next kept one is {hole[1]}"
        )
        raise Refusal("gone", message, reason="cursor_expired", base=hole[1])


def read_range(
    run: Run, blobs: BlobStore, name: str, offset: int, max_bytes: int, encoding: str, *, view: str = "raw"
) -> Range:
    """Up to `max_bytes` from `offset`. Text ends on a whole character, and holds one if one is there."""
    check_offset(run, name, offset)
    stream = stream_of(run, name)
    kept_end = stream.kept_end(offset)
    end = min(kept_end, offset + min(max_bytes, MAX_READ_BYTES))
    data = read_exactly(run, blobs, name, offset, end)
    if encoding == "utf-8":
        # Whether what comes next in the file, if anything, is no part of this text.
        ends_there = not (stream.open and kept_end == stream.bytes)
        if end < kept_end or not ends_there:
            further = min(kept_end, end + 3)
            data = _whole(data, view) or _first_character(
                read_exactly(run, blobs, name, offset, further), ends_there and further == kept_end
            )
        text = data.decode("utf-8", errors="replace")
        text = to_plain(text) if view == "plain" else text
    else:
        said = _as_told(run, blobs, name, offset, data) if view == "terminal" else data
        text = base64.b64encode(said).decode()
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


def _as_told(run: Run, blobs: BlobStore, name: str, offset: int, data: bytes) -> bytes:
    """A terminal's bytes with the CRs that folding took."""
    pieces: list[bytes] = []
    for attempt, low, high in stream_of(run, name).spans(offset, offset + len(data)):
        piece, data = data[: high - low], data[high - low :]
        pieces.append(BareLines(blobs, run.run_id, attempt).unfold(piece, low))
    return b"".join(pieces)


def read_exactly(run: Run, blobs: BlobStore, name: str, start: int, end: int) -> bytes:
    """These bytes of a stream; a refusal where the spool has not got what its journal says."""
    data = _kept(run, blobs, name, start, end)
    if len(data) < end - start:
        if not blobs.names(f"runs/{run.run_id}"):
            raise Refusal("gone", f"the run {run.run_id} was pruned meanwhile", reason="pruned", run_id=run.run_id)
        message = f"the spool {name} is shorter than its journal says: it was changed from outside"
        raise Refusal("internal", message, reason="spool_tampered")
    return data


def _kept(run: Run, blobs: BlobStore, name: str, start: int, end: int) -> bytes:
    """These bytes over all attempts; fewer where a spool ends before its journal says."""
    pieces: list[bytes] = []
    for attempt, low, high in stream_of(run, name).spans(start, end):
        pieces.append(blobs.read(spool_name(run.run_id, attempt, name), low, high - low))
        if len(pieces[-1]) < high - low:
            break
    return b"".join(pieces)


def _whole(data: bytes, view: str) -> bytes:
    data = whole_characters(data)
    begun = begun_sequence_bytes(data) if view == "plain" else 0
    return data[:-begun] if 0 < begun < len(data) else data


def _first_character(data: bytes, is_all: bool) -> bytes:
    """The first character, if it is whole or will never be: it may be longer than the page was to be."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    for end in range(1, len(data) + 1):
        if decoder.decode(data[end - 1 : end]):
            return data[:end] if not decoder.getstate()[0] else data[: end - 1]
    return data if is_all else b""


def last_lines_offset(run: Run, blobs: BlobStore, name: str, lines: int) -> int:
    """Where the last `lines` lines begin, as far back as bytes are kept without a gap."""
    stream = stream_of(run, name)
    first, place = stream.last_kept
    if lines <= 0 or place == first:
        return place
    missing = lines + 1 if _kept(run, blobs, name, place - 1, place) == b"\n" else lines
    while place > first:
        start = max(first, place - _LINE_SCAN_BYTES)
        block = _kept(run, blobs, name, start, place)
        found = len(block)
        while (found := block.rfind(b"\n", 0, found)) >= 0:
            missing -= 1
            if not missing:
                return start + found + 1
        place = start
    return first


def last_bytes_offset(run: Run, blobs: BlobStore, name: str, count: int, encoding: str) -> int:
    """Where the last `count` bytes begin, as far back as bytes are kept without a gap; for text at a character."""
    stream = stream_of(run, name)
    first, end = stream.last_kept
    offset = max(end - count, first)
    if encoding == "utf-8" and offset > first:
        for byte in _kept(run, blobs, name, offset, min(offset + 3, end)):
            if byte & 0xC0 != 0x80:
                break
            offset += 1
    return offset
