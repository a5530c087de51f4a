"""A block's own output: its span of the spool, read by offset."""

from limpet.engine import reading
from limpet.engine.conversations.conversation import STREAM, Conversation
from limpet.engine.engine import Engine
from limpet.model.blocks import Block
from limpet.model.characters import whole_characters
from limpet.model.errors import Refusal
from limpet.model.plain import to_plain


def span_of(conversation: Conversation, block: Block) -> tuple[int, int]:
    """Where its bytes stand so far."""
    if block.start is None:
        return 0, 0
    return block.start, max(block.start, conversation.size if block.end is None else block.end)


def read_block(
    engine: Engine, conversation: Conversation, block: Block, offset: int, max_bytes: int, encoding: str, view: str
) -> reading.Range:
    """Up to `max_bytes` from an offset in the block's output; text ends on a whole character."""
    start, end = span_of(conversation, block)
    total = end - start
    if offset > total:
        message = f"`offset` is beyond the end: the block's output has {total} bytes so far"
        raise Refusal("invalid_argument", message, reason="cursor_ahead", field="offset", total_bytes=total)
    size = min(max_bytes, total - offset)
    if not size:
        data, following = "", offset
    else:
        low = start + offset
        page = reading.read_range(conversation.live.run, engine.blobs, STREAM, low, size, encoding, view=view)
        data, following = page.data, page.next_offset - start
        if following > total or (following < total and following == offset):
            raw = reading.read_exactly(conversation.live.run, engine.blobs, STREAM, low, min(end, low + size))
            data, following = raw.decode("utf-8", errors="replace"), offset + len(raw)
    return reading.Range(
        data=data,
        encoding=encoding,
        offset_bytes=offset,
        next_offset=following,
        total_bytes=total,
        eof=following == total and block.ts_end is not None,
        base=0,
    )


def tail_of(engine: Engine, conversation: Conversation, block: Block, max_bytes: int, view: str) -> tuple[str, bool]:
    """The end of the block's output as text, and whether something is missing before it."""
    start, end = span_of(conversation, block)
    low = max(start, end - max_bytes)
    data = reading.read_exactly(conversation.live.run, engine.blobs, STREAM, low, end)
    if low > start:
        cut = next((place for place, byte in enumerate(data[:4]) if byte & 0xC0 != 0x80), 0)
        data = data[cut:]
    if block.ts_end is None:
        data = whole_characters(data)
    text = data.decode("utf-8", errors="replace")
    return (to_plain(text) if view == "plain" else text), low > start
