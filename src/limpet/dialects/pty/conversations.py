"""What is done to conversations: opened, given commands and input, looked at, signalled, reset, closed."""

import asyncio
import os
from typing import Final

from msgspec import UNSET

from limpet.dialects.pty import types as t
from limpet.dialects.pty.finding import conversation_of, opened
from limpet.engine import clock, reading, steering
from limpet.engine.conversations import acting
from limpet.engine.conversations.conversation import STREAM, Conversation
from limpet.engine.conversations.looking import check_cursor
from limpet.engine.engine import Engine
from limpet.engine.screens.input_wanted import UNKNOWN, input_of
from limpet.model.blocks import Block
from limpet.model.errors import Refusal
from limpet.model.operation import Caller, Operation
from limpet.model.signals import check_signal

CLOSED_WITHIN_S: Final = 10.0


async def open_(engine: Engine, request: t.OpenRequest, caller: Caller) -> t.Opened:
    conversation = await opened(engine, request, caller)
    await conversation.wait_ready()
    return t.Opened(
        conversation_id=conversation.conversation_id,
        run_id=conversation.live.run.run_id,
        mode=conversation.standing.mode,
        resume_cursor=conversation.size,
    )


async def begin(
    engine: Engine, request: t.ExecRequest | t.RunRequest, caller: Caller, *, interactive: bool
) -> tuple[Conversation, Block]:
    """Hands the shell a command."""
    conversation = await conversation_of(engine, request.conversation_id, caller)
    cwd = None if request.cwd is None else os.path.join(conversation.standing.cwd or "/", request.cwd)  # noqa: PTH118
    block = await acting.begin_block(
        conversation,
        engine.durable,
        engine.conversations.ids,
        request.cmd,
        cwd,
        interactive=interactive,
        key=request.key,
        timeout_ms=request.timeout_ms,
        now_ms=clock.now_ms(),
    )
    return conversation, block


async def exec_block(engine: Engine, request: t.ExecRequest, caller: Caller) -> t.ExecBlockResponse:
    _, block = await begin(engine, request, caller, interactive=False)
    return t.ExecBlockResponse(block_id=block.block_id, seq=block.seq, ts=block.ts_begin)


async def exec_interactive(engine: Engine, request: t.ExecRequest, caller: Caller) -> t.ExecInteractiveResponse:
    _, block = await begin(engine, request, caller, interactive=True)
    return t.ExecInteractiveResponse(
        session_id=session_of(block), block_id=block.block_id, ts_begin=block.ts_begin, resume_cursor=block.start or 0
    )


def session_of(block: Block) -> str:
    """An interactive session is one block's, and named after it."""
    return f"session-{block.block_id}"


async def send(engine: Engine, request: t.SendRequest, caller: Caller) -> t.Done | t.Unsent:
    conversation = await conversation_of(engine, request.conversation_id, caller)
    data = request.data.encode(errors="surrogatepass")
    once = steering.Once.of(request.key, data, secret=request.secret)
    if request.now:
        written = await acting.send(conversation, data, secret=request.secret, timeout_ms=request.timeout_ms, once=once)
    else:
        async with conversation.writing(request.timeout_ms):
            written = await acting.send(
                conversation, data, secret=request.secret, timeout_ms=request.timeout_ms, once=once
            )
    return t.Done() if written == len(data) else t.Unsent(written=written)


async def read_spool(engine: Engine, request: t.ReadSpoolRequest, _caller: Caller) -> t.SpoolRead:
    conversation = await engine.conversations.find(request.conversation_id)
    check_cursor(conversation, request.from_cursor)
    page = reading.read_range(
        conversation.live.run,
        engine.blobs,
        STREAM,
        request.from_cursor,
        request.max_bytes,
        request.encoding,
        view=request.view,
    )
    return t.SpoolRead(data=page.data, cursor=request.from_cursor, resume_cursor=page.next_offset)


async def status(engine: Engine, request: t.Of, _caller: Caller) -> t.StatusResponse:
    conversation = await engine.conversations.find(request.conversation_id)
    standing, run = conversation.standing, conversation.live.run
    active = standing.active
    wanted = UNKNOWN if run.is_over or run.pid is None else await asyncio.to_thread(input_of, run.pid)
    return t.StatusResponse(
        mode=standing.mode,
        active_session_id=session_of(active) if active is not None and active.interactive else UNSET,
        active_block_id=UNSET if active is None else active.block_id,
        shell_id=UNSET if standing.shell_pid is None else str(standing.shell_pid),
        resume_cursor=conversation.size,
        conversation_id=conversation.conversation_id,
        run_id=run.run_id,
        closed=run.is_over,
        cwd=standing.cwd,
        resets=standing.resets,
        blocks=standing.blocks,
        input=wanted,
    )


async def resize(engine: Engine, request: t.ResizeRequest, caller: Caller) -> t.Done:
    conversation = await conversation_of(engine, request.conversation_id, caller)
    await conversation.ask_keeper("resize", rows=request.rows, cols=request.cols)
    return t.Done()


async def signal(engine: Engine, request: t.SignalRequest, caller: Caller) -> t.SignalResponse:
    name = check_signal("signal", request.signal)
    conversation = await conversation_of(engine, request.conversation_id, caller)
    if conversation.standing.active is None:
        message = "nothing runs in the conversation that a signal could be for: pty.close ends it"
        raise Refusal("conflict", message, reason="idle")
    return t.SignalResponse(sent=await steering.send_signal(conversation.live, name))


async def end_session(engine: Engine, request: t.EndSessionRequest, _caller: Caller) -> t.EndSessionResponse:
    conversation = await engine.conversations.find(request.conversation_id)
    by = await acting.end_session(conversation, force=request.force)
    return t.EndSessionResponse(
        ended=by != "none", by=by, mode=conversation.standing.mode, resume_cursor=conversation.size
    )


async def reset(engine: Engine, request: t.Of, _caller: Caller) -> t.ModeResponse:
    conversation = await engine.conversations.find(request.conversation_id)
    await acting.reset(conversation)
    return t.ModeResponse(mode=conversation.standing.mode, resume_cursor=conversation.size)


async def close(engine: Engine, request: t.Of, _caller: Caller) -> t.CloseResponse:
    conversation = await engine.conversations.find(request.conversation_id)
    live = conversation.live
    await steering.kill(live, "SIGHUP")
    await live.wait_until(lambda run: run.is_over, CLOSED_WITHIN_S)
    return t.CloseResponse(run_id=live.run.run_id, closed=live.run.is_over, resume_cursor=conversation.size)


ROWS: Final = (
    Operation(
        name="pty.open",
        request=t.OpenRequest,
        response=t.Opened,
        handle=open_,
        summary="Opens a conversation: a shell on a terminal that lives on between commands.",
        reads_only=False,
        repeatable=True,
    ),
    Operation(
        name="pty.exec_block",
        request=t.ExecRequest,
        response=t.ExecBlockResponse,
        handle=exec_block,
        summary="Begins a command in a conversation's shell, as a block of its own.",
        reads_only=False,
        repeatable=False,
    ),
    Operation(
        name="pty.exec_interactive",
        request=t.ExecRequest,
        response=t.ExecInteractiveResponse,
        handle=exec_interactive,
        summary="Begins a program that is to be talked to: an installer, a REPL, an editor.",
        reads_only=False,
        repeatable=False,
    ),
    Operation(
        name="pty.send",
        request=t.SendRequest,
        response=t.Done,
        handle=send,
        summary="Types text into what runs in a conversation.",
        reads_only=False,
        repeatable=False,
    ),
    Operation(
        name="pty.read_spool",
        request=t.ReadSpoolRequest,
        response=t.SpoolRead,
        handle=read_spool,
        summary="Reads a conversation's spool from a cursor on.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="pty.status",
        request=t.Of,
        response=t.StatusResponse,
        handle=status,
        summary="Says what a conversation is at.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="pty.resize",
        request=t.ResizeRequest,
        response=t.Done,
        handle=resize,
        summary="Tells a conversation's terminal its size.",
        reads_only=False,
        repeatable=True,
    ),
    Operation(
        name="pty.signal",
        request=t.SignalRequest,
        response=t.SignalResponse,
        handle=signal,
        summary="Sends a signal to what runs in the terminal's foreground.",
        reads_only=False,
        repeatable=False,
    ),
    Operation(
        name="pty.end_session",
        request=t.EndSessionRequest,
        response=t.EndSessionResponse,
        handle=end_session,
        summary="Brings the prompt back: by Ctrl-C, then TERM, and with `force` by a new shell.",
        reads_only=False,
        repeatable=True,
    ),
    Operation(
        name="pty.reset",
        request=t.Of,
        response=t.ModeResponse,
        handle=reset,
        summary="Ends all that runs in a conversation, its shell too, and begins another; history is kept.",
        reads_only=False,
        repeatable=False,
    ),
    Operation(
        name="pty.close",
        request=t.Of,
        response=t.CloseResponse,
        handle=close,
        summary="Ends a conversation and all that runs in it; what it said can still be read.",
        reads_only=False,
        repeatable=True,
    ),
)
