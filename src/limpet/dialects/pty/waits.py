"""`pty.wait_for`, `wait_prompt`, `expect_send`, and `pty.run`: a block and its prompt in one call."""

import time
from typing import Any, Final

from msgspec import UNSET

from limpet.dialects.pty import types as t
from limpet.dialects.pty.conversations import begin
from limpet.dialects.pty.finding import conversation_of
from limpet.engine import steering
from limpet.engine.conversations import acting
from limpet.engine.conversations.conversation import Conversation
from limpet.engine.conversations.looking import Seen, wait_for
from limpet.engine.conversations.output import tail_of
from limpet.engine.engine import Engine
from limpet.model.operation import Caller, Operation


async def wait(engine: Engine, request: t.WaitForRequest, caller: Caller) -> t.Matched | t.Unmatched:
    conversation = await conversation_of(engine, request.conversation_id, caller)
    seen = await wait_for(
        engine, conversation, request.match, request.match_type, request.from_cursor, request.timeout_ms
    )
    return _unmatched(conversation) if seen is None else _matched(seen)


def _unmatched(conversation: Conversation) -> t.Unmatched:
    if conversation.live.run.is_over:
        message = "the conversation is closed and nothing more can come: what was waited for did not happen"
        return t.Unmatched(message=message, reason="closed", resume_cursor=conversation.size)
    return t.Unmatched(resume_cursor=conversation.size)


def _matched(seen: Seen) -> t.Matched:
    extra: dict[str, Any] = {}
    if seen.line is not None:
        extra["line"] = seen.line
    if seen.groups is not None:
        extra["groups"] = seen.groups
    if seen.truncated:
        extra["truncated"] = True
    if seen.block is not None:
        block = seen.block
        extra |= {"block_id": block.block_id, "exit_code": block.exit_code, "status": block.status}
    return t.Matched(
        match_text=seen.text,
        match_cursor=seen.start,
        match_span=t.Span(seen.start, seen.end),
        resume_cursor=seen.end,
        extra=extra or UNSET,
    )


async def wait_prompt(engine: Engine, request: t.WaitPromptRequest, caller: Caller) -> t.PromptSeen | t.Unmatched:
    conversation = await conversation_of(engine, request.conversation_id, caller)
    until = time.monotonic() + request.timeout_ms / 1000
    seen = await wait_for(engine, conversation, "", "prompt", request.from_cursor, request.timeout_ms)
    is_idle = await conversation.live.wait_until(
        lambda _: conversation.standing.active is None, max(0.0, until - time.monotonic())
    )
    if seen is None or not is_idle:
        return _unmatched(conversation)
    block = seen.block
    return t.PromptSeen(
        match_text=seen.text,
        match_cursor=seen.start,
        match_span=t.Span(seen.start, seen.end),
        resume_cursor=seen.end,
        mode=conversation.standing.mode,
        exit_code=None if block is None else block.exit_code,
        block_id=None if block is None else block.block_id,
        status=None if block is None else block.status,
    )


async def expect_send(engine: Engine, request: t.ExpectSendRequest, caller: Caller) -> t.Matched | t.Unmatched:
    conversation = await conversation_of(engine, request.conversation_id, caller)
    until = time.monotonic() + request.timeout_ms / 1000
    data = request.send.encode(errors="surrogatepass")
    what = f"{request.match_type}\0{request.from_cursor}\0{request.expect}\0".encode(errors="surrogatepass")
    once = steering.Once.of(request.key, what + (b"%d" % len(data) if request.secret else data), secret=False)
    async with conversation.writing(request.timeout_ms):
        if once is not None:
            steering.check_same(conversation.live, once)
        left_ms = max(0, round((until - time.monotonic()) * 1000))
        seen = await wait_for(engine, conversation, request.expect, request.match_type, request.from_cursor, left_ms)
        if seen is None:
            return _unmatched(conversation)
        left_ms = max(1, round((until - time.monotonic()) * 1000))
        if await acting.send(conversation, data, secret=request.secret, timeout_ms=left_ms, once=once) < len(data):
            message = "it matched, but what runs did not read all that was sent in time; nothing more will be typed"
            return t.Unmatched(message=message, matched=True, reason="not_read", resume_cursor=seen.end)
    return _matched(seen)


async def run(engine: Engine, request: t.RunRequest, caller: Caller) -> t.RunResponse | t.RunTimeout:
    until = time.monotonic() + request.timeout_ms / 1000
    conversation, block = await begin(engine, request, caller, interactive=False)
    block_id = block.block_id

    def is_over(_: object) -> bool:
        active = conversation.standing.active
        return active is None or active.block_id != block_id

    if not await conversation.live.wait_until(is_over, max(0.0, until - time.monotonic())):
        # Nobody listened to output: what came since is in the answer all the same.
        conversation.catch_up()
    block = conversation.find_block(block_id)
    output, truncated = tail_of(engine, conversation, block, request.max_bytes, request.view)
    if block.ts_end is None:
        return t.RunTimeout(
            block_id=block_id,
            status=block.status,
            output=output,
            truncated=truncated,
            resume_cursor=conversation.size,
        )
    return t.RunResponse(
        block_id=block_id,
        exit_code=block.exit_code,
        status=block.status,
        output=output,
        truncated=truncated,
        resume_cursor=conversation.size,
    )


ROWS: Final = (
    Operation(
        name="pty.wait_for",
        request=t.WaitForRequest,
        response=t.Matched,
        handle=wait,
        summary="Waits for text, a pattern, the prompt, quiet, or the end of what runs, from a cursor on.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="pty.wait_prompt",
        request=t.WaitPromptRequest,
        response=t.PromptSeen,
        handle=wait_prompt,
        summary="Waits until the shell is back at its prompt; answers with the block's exit code.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="pty.expect_send",
        request=t.ExpectSendRequest,
        response=t.Matched,
        handle=expect_send,
        summary="Waits, and types at once what is to follow, with nobody's writing in between.",
        reads_only=False,
        repeatable=False,
    ),
    Operation(
        name="pty.run",
        request=t.RunRequest,
        response=t.RunResponse,
        handle=run,
        summary="Runs a command in a conversation's shell and waits for its prompt.",
        reads_only=False,
        repeatable=False,
    ),
)
