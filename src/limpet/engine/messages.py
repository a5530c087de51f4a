"""A watcher's hit in words: the line it stands on, what was said last as of then, and the message made of both."""

from typing import Any, Final

import msgspec

from limpet.engine.reading import read_exactly
from limpet.engine.shown import Read, line_around, snippet_at
from limpet.model.errors import Refusal
from limpet.model.items import Item
from limpet.model.run import Run
from limpet.model.stream import Tail
from limpet.model.watch import MATCH_MAX_BYTES
from limpet.store.blobs import BlobStore

_COMMAND_MAX_CHARS: Final = 80


class HitWords(msgspec.Struct, frozen=True, kw_only=True):
    """All that is told of one hit."""

    text: str
    snippet: str
    data: dict[str, Any]


def hit_id(run_id: str, seq: int) -> str:
    """By what a hit is known for good: its run, and its item there."""
    return f"{run_id}.{seq}"


def words_of(run: Run, item: Item, blobs: BlobStore) -> HitWords:
    """What the hit says. Where the spool was changed from outside, that."""

    def read(name: str, start: int, end: int) -> bytes:
        return read_exactly(run, blobs, name, start, end)

    named = f"(run {run.run_id}: {_shortened(run.command)})"
    try:
        data = hit_data(run, item, read)
        tail = msgspec.convert((item.data or {}).get("tail", ()), Tail)
        return HitWords(text=f"{item.event}: {data['line']} {named}", snippet=snippet_at(run, tail, read), data=data)
    except Refusal as refusal:
        data = {"span": {"start": item.start, "end": item.end}, "stream": item.stream}
        return HitWords(text=f"{item.event}: {refusal.message} {named}", snippet="", data=data)


def hit_data(run: Run, item: Item, read: Read) -> dict[str, Any]:
    """`match`, `span`, `stream` and `line` of a hit, `groups` by line; `truncated` where a text is not all there."""
    start, end, stream = item.start or 0, item.end or 0, item.stream or ""
    line = line_around(run, stream, start, end, read)
    known = item.data or {}
    data: dict[str, Any] = {"match": known["match"], "span": {"start": start, "end": end}, "stream": stream}
    data["line"] = line.text
    if "groups" in known:
        data["groups"] = known["groups"]
    if line.is_cut or end - start > MATCH_MAX_BYTES:
        data["truncated"] = True
    return data


def _shortened(command: str) -> str:
    words = " ".join(command.split())
    return words if len(words) <= _COMMAND_MAX_CHARS else f"{words[: _COMMAND_MAX_CHARS - 1]}…"
