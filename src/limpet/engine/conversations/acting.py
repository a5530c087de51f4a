"""What is done to a conversation: a command handed to its shell, input typed, its session ended, its shell reset."""

import asyncio
import hashlib

from limpet.engine import steering
from limpet.engine.conversations.conversation import Conversation
from limpet.engine.conversations.shells import line_for
from limpet.engine.durable import Durable
from limpet.model.blocks import Block
from limpet.model.errors import Refusal
from limpet.model.facts import BlockBegun, ResetAsked
from limpet.model.ids import IdMaker, check_id
from limpet_keeper import PROTOCOL

MAX_COMMAND_BYTES = 1 << 20
# How long Ctrl-C, and then a TERM, is given to bring the prompt back.
GRACE_S = 1.0
HAND_OVER_TIMES = 5
RESET_WITHIN_S = 10.0


async def begin_block(
    conversation: Conversation,
    durable: Durable,
    ids: IdMaker,
    cmd: str,
    cwd: str | None,
    *,
    interactive: bool,
    key: str | None,
    timeout_ms: int,
    now_ms: int,
) -> Block:
    """Hands the shell a command, once for each key; returns when that was recorded and the shell was handed it.

    With a key the record is on disk first; else it is as soon as output is.
    """
    _check_command(cmd, cwd)
    digest = hashlib.sha256(f"{interactive}\0{cwd}\0{cmd}".encode()).hexdigest() if key is not None else None
    if key is None:
        _check_idle(conversation)  # what cannot be does not wait for its turn
    async with conversation.writing(timeout_ms):
        if key is not None and digest is not None:
            before = conversation.block_of_key(check_id("key", key), digest)
            if before is not None:
                return before
        _check_idle(conversation)
        await conversation.wait_ready()
        _check_idle(conversation)
        block_id = ids.make(now_ms)
        begun = asyncio.ensure_future(
            _hand_over(conversation, durable, block_id, cmd, cwd, interactive=interactive, key=key, digest=digest)
        )
        await asyncio.shield(begun)
    return conversation.find_block(block_id)


async def _hand_over(
    conversation: Conversation,
    durable: Durable,
    block_id: str,
    cmd: str,
    cwd: str | None,
    *,
    interactive: bool,
    key: str | None,
    digest: str | None,
) -> None:
    live = conversation.live
    try:
        live.ask(
            lambda n, at, after: BlockBegun(
                n=n,
                at=at,
                after=after,
                block=block_id,
                cmd=cmd,
                cwd=cwd,
                interactive=interactive,
                key=key,
                digest=digest,
            )
        )
    except OSError as error:
        message = f"the block could not be recorded, so it was not begun: {error.strerror}; make room on the disk"
        raise Refusal("unavailable", message, reason="storage_full") from error
    if key is None:
        conversation.sync_soon(durable)
    else:
        await durable.begin(live.daemon_journal)
    await deliver(conversation)


async def deliver(conversation: Conversation) -> None:
    """Hands over the block that was begun; for one that was handed over already this changes nothing."""
    for _ in range(HAND_OVER_TIMES):
        block = conversation.standing.active
        if block is None or block.start is not None:
            return
        cwd = block.cwd if block.cwd != conversation.standing.cwd else None
        line = line_for(conversation.shell, cwd)
        try:
            await conversation.ask_keeper("deliver", line=line, text=block.cmd, block=block.block_id)
            return
        except Refusal as refusal:
            if refusal.code != "conflict":
                raise
        # Its shell has gone in this moment, and another comes.
        await conversation.wait_ready()


def _check_command(cmd: str, cwd: str | None) -> None:
    if not cmd.strip():
        raise Refusal("invalid_argument", "`cmd` is empty: say what to run", field="cmd")
    if "\0" in cmd:
        raise Refusal("invalid_argument", "`cmd` holds a NUL, which no command can", field="cmd")
    if len(cmd.encode()) > MAX_COMMAND_BYTES:
        message = f"`cmd` has more than {MAX_COMMAND_BYTES} bytes: put it into a file and run that"
        raise Refusal("too_large", message, field="cmd")
    if cwd is not None and (not cwd.startswith("/") or "\0" in cwd or "\n" in cwd):
        raise Refusal("invalid_argument", "`cwd` must be an absolute path", field="cwd")


def _check_idle(conversation: Conversation) -> None:
    conversation.check_open()
    mode, active = conversation.standing.mode, conversation.standing.active
    if active is None:
        return
    if mode == "interactive":
        message = f"the conversation is in interactive mode ({active.block_id}): send to it, or pty.end_session first"
    else:
        message = f"the block {active.block_id} still runs: wait for its prompt, or interrupt it"
    raise Refusal("busy", message, mode=mode, block_id=active.block_id)


async def send(
    conversation: Conversation, data: bytes, *, secret: bool, timeout_ms: int, once: steering.Once | None = None
) -> int:
    """Types into what runs; how many bytes it took. Where it does not read in time those are fewer, and stay so.

    Once for each key: who asks again is told what that came to, whatever runs by then.
    """
    live = conversation.live
    if once is not None and (written := await steering.written_before(live, once)) is not None:
        return written
    conversation.check_open()
    if conversation.standing.active is None:
        message = "nothing runs in the conversation, so nobody would read that: begin a block first"
        raise Refusal("conflict", message, reason="idle")
    before = conversation.standing.typed_bytes
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await steering.write(live, data, close=False, secret=secret, once=once)
    except TimeoutError:
        # The rest has been taken back: whatever the keeper says next, it says behind that.
        await conversation.ask_keeper("hello", protocol=PROTOCOL)
        typed = conversation.standing.typed_bytes - before
        if once is not None:
            steering.settle_input(live, once, typed)
        return typed


async def end_session(conversation: Conversation, *, force: bool) -> str:
    """Brings the prompt back: by which means, or `none` when nothing ran or helped."""
    if conversation.standing.active is None:
        return "none"
    for name in ("SIGINT", "SIGTERM"):
        await steering.send_signal(conversation.live, name)
        if await conversation.live.wait_until(lambda _: conversation.standing.active is None, GRACE_S):
            return name
    if force:
        await reset(conversation)
        return "reset"
    return "none"


async def reset(conversation: Conversation) -> None:
    """Ends all that the shell began, and the shell; returns when the next one is at its prompt."""
    conversation.check_open()
    before = conversation.standing.shells
    conversation.live.ask(lambda n, at, after: ResetAsked(n=n, at=at, after=after))
    await conversation.ask_keeper("reset")
    await conversation.live.wait_until(lambda _: conversation.standing.shells > before, RESET_WITHIN_S)
    await conversation.wait_ready()
