"""Looks for text in the blocks of a conversation: through its spool, leaving out what belongs to no block."""

import bisect
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from limpet.engine.conversations.conversation import STREAM, Conversation
from limpet.engine.conversations.output import span_of
from limpet.engine.engine import Engine
from limpet.engine.matching import Pattern
from limpet.engine.search import Found, Place, Search
from limpet.model.blocks import Block
from limpet.model.run import Run

WITHIN_S: Final = 10.0
# Prompts that match count too until they are left out.
_AT_ONCE: Final = 1000


class InBlock(msgspec.Struct, frozen=True, kw_only=True):
    """A match, and the block in whose output it begins; the span counts there."""

    block: Block
    start: int
    end: int
    found: Found


async def search_blocks(
    engine: Engine, conversation: Conversation, pattern: Pattern, offset: int, limit: int
) -> tuple[list[InBlock], int | None]:
    """Up to `limit` matches from that place of the spool on; where to go on, None where there is no more."""
    run = conversation.live.run
    blocks = [block for block in conversation.all_blocks() if block.start is not None]
    starts = [span_of(conversation, block)[0] for block in blocks]
    hits: list[InBlock] = []
    place: Place | None = Place(run.run_id, STREAM, offset)
    while place is not None:
        looked = Search(pattern, engine.blobs, STREAM, _AT_ONCE, WITHIN_S)
        await looked.go(engine.search_threads, _only(run), place)
        for found in looked.hits:
            known = bisect.bisect_right(starts, found.span.start) - 1
            if known < 0:
                continue
            start, end = span_of(conversation, blocks[known])
            if found.span.start < end:
                if len(hits) == limit:
                    return hits, hits[-1].found.span.end
                hits.append(
                    InBlock(
                        block=blocks[known], start=found.span.start - start, end=found.span.end - start, found=found
                    )
                )
        is_slow = looked.stopped_at is not None and len(looked.hits) < _AT_ONCE
        place = looked.stopped_at
        if is_slow and place is not None:
            return hits, place.offset
    return hits, None


async def _only(run: Run) -> AsyncIterator[Run]:
    yield run
