"""`blocks.since`, `blocks.get`, `blocks.read`, `blocks.search`."""

import asyncio
from functools import partial
from typing import Final

from limpet.dialects.pty import types as t
from limpet.engine.conversations.conversation import Conversation
from limpet.engine.conversations.output import read_block, span_of
from limpet.engine.conversations.searching import search_blocks
from limpet.engine.engine import Engine
from limpet.engine.matching import compile_pattern
from limpet.model.blocks import Block
from limpet.model.operation import Caller, Operation


async def since(engine: Engine, request: t.SinceRequest, _caller: Caller) -> t.SinceResponse:
    conversation = await engine.conversations.find(request.conversation_id)
    after = 0 if request.after_block_id is None else conversation.find_block(request.after_block_id).seq
    found = conversation.all_blocks()[after:]
    page = found[: request.limit]
    return t.SinceResponse(blocks=[_shown(conversation, block) for block in page], has_more=len(found) > len(page))


async def get(engine: Engine, request: t.GetRequest, _caller: Caller) -> t.GetResponse:
    conversation = await engine.conversations.find(request.conversation_id)
    return t.GetResponse(block=_shown(conversation, conversation.find_block(request.block_id)))


async def read(engine: Engine, request: t.ReadRequest, _caller: Caller) -> t.ReadResponse:
    conversation = await engine.conversations.find(request.conversation_id)
    block = conversation.find_block(request.block_id)
    page = read_block(engine, conversation, block, request.offset, request.max_bytes, request.encoding, request.view)
    return t.ReadResponse(
        data=page.data,
        encoding=page.encoding,
        offset_bytes=page.offset_bytes,
        next_offset=page.next_offset,
        total_bytes=page.total_bytes,
        eof=page.eof,
    )


async def search(engine: Engine, request: t.SearchRequest, _caller: Caller) -> t.SearchResponse:
    conversation = await engine.conversations.find(request.conversation_id)
    compiling = partial(compile_pattern, request.query, "regex" if request.regex else "substring", field="query")
    pattern = await asyncio.get_running_loop().run_in_executor(engine.search_threads, compiling)
    hits, following = await search_blocks(engine, conversation, pattern, request.after, request.limit)
    return t.SearchResponse(
        hits=[
            t.BlockHit(
                block_id=hit.block.block_id,
                span=t.Span(hit.start, hit.end),
                lines=hit.found.line,
                truncated=hit.found.truncated,
            )
            for hit in hits
        ],
        next_after=following,
        has_more=following is not None,
    )


def _shown(conversation: Conversation, block: Block) -> t.BlockInfo:
    start, end = span_of(conversation, block)
    return t.BlockInfo(
        block_id=block.block_id,
        seq=block.seq,
        cmd=block.cmd,
        cwd=block.cwd,
        interactive=block.interactive,
        ts_begin=block.ts_begin,
        ts_end=block.ts_end,
        status=block.status,
        exit_code=block.exit_code,
        signal=block.signal,
        ended_by=block.ended_by,
        span=None if block.start is None else t.Span(start, end),
        output_bytes=end - start,
    )


ROWS: Final = (
    Operation(
        name="blocks.since",
        request=t.SinceRequest,
        response=t.SinceResponse,
        handle=since,
        summary="Lists a conversation's blocks behind one of them, oldest first.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="blocks.get",
        request=t.GetRequest,
        response=t.GetResponse,
        handle=get,
        summary="Says all that is known of a block.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="blocks.read",
        request=t.ReadRequest,
        response=t.ReadResponse,
        handle=read,
        summary="Reads a block's own output, by offset.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="blocks.search",
        request=t.SearchRequest,
        response=t.SearchResponse,
        handle=search,
        summary="Finds text or a pattern in all blocks of a conversation, oldest first.",
        reads_only=True,
        repeatable=True,
    ),
)
