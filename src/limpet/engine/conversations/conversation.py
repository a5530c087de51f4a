"""One conversation: its run, what is known of it by the facts, its blocks, and the lock of whoever writes to it."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

from limpet.engine import clock
from limpet.engine.conversations.shells import SHELLS, ShellName
from limpet.engine.durable import Durable
from limpet.engine.live_run import LiveRun
from limpet.model.blocks import Block, Standing, fold_block
from limpet.model.errors import Refusal
from limpet.model.facts import AnyFact, Delivered, Prompt, ShellGone
from limpet.model.merge import merge_attempts
from limpet.store.journals import JournalReader
from limpet_keeper.shells import EXPORTED_NAME

STREAM: Final = "pty"
# How long a shell may take to show its first prompt.
READY_WITHIN_S: Final = 30.0

_log: Final = logging.getLogger("limpet.engine")


class Conversation:
    """Follows the run's facts. Made anew from its files whenever an engine first hears of it."""

    def __init__(self, conversation_id: str, live: LiveRun, sync_s: float) -> None:
        self.conversation_id = conversation_id
        self.live = live
        self._sync_s = sync_s
        self._sync: asyncio.TimerHandle | None = None
        self.standing = Standing()
        # Those that have ended, in their order; and where the lines of genuine prompts stand.
        self.blocks: list[Block] = []
        self.prompts: list[Prompt] = []
        # For each of these, the block that it ended, or whose shell had gone before it.
        self.prompted: list[Block | None] = []
        # Blocks that ended and shells that went, in their order; and who hears of more, and of blocks that begin.
        self.told: list[Block | ShellGone] = []
        self.on_told: Callable[[], None] = lambda: None
        self._without_prompt: Block | None = None
        self._writing = asyncio.Lock()
        self._recall()
        live.on_fact = self._take

    def _recall(self) -> None:
        """Takes in both journals as far as the run did; whole where it is over and nobody follows it any more."""
        is_past = self.live.is_settled
        self.catch_up()
        until = self.live.place()
        facts: list[list[AnyFact]] = []
        for path, most in (
            (self.live.directory.keeper_journal, until.keeper_records),
            (self.live.directory.daemon_journal, until.daemon_records),
        ):
            reader = JournalReader(path)
            facts.append([fact for fact in reader.read_new() if is_past or fact.n <= most])
            reader.close()
        for fact in merge_attempts([facts[0]], facts[1]):
            self._take(fact)

    def catch_up(self) -> None:
        """Takes in what the keeper wrote since the last time."""
        if not self.live.is_settled:
            self.live.catch_up()

    def _take(self, fact: AnyFact) -> None:
        self.standing, ended = fold_block(self.standing, fact)
        if isinstance(fact, Prompt):
            self.prompts.append(fact)
            self.prompted.append(ended or self._without_prompt)
            self._without_prompt = None
        elif ended is not None:
            self._without_prompt = ended
        if ended is not None:
            self.blocks.append(ended)
            self.told.append(ended)
        if isinstance(fact, ShellGone):
            self.told.append(fact)
        if ended is not None or isinstance(fact, ShellGone | Delivered) or self.standing.is_over:
            self.on_told()
        if self.standing.is_over:
            # It may hold secrets, and nobody will want it.
            with contextlib.suppress(OSError):
                (self.live.directory.kept / EXPORTED_NAME).unlink(missing_ok=True)

    @property
    def shell(self) -> ShellName:
        """The shell that it is held in."""
        return next(shell for shell in SHELLS if shell == self.live.run.command)

    def sync_soon(self, durable: Durable) -> None:
        """Puts on disk what was recorded of it, within the time in which output is put there."""
        if self._sync is None:
            self._sync = asyncio.get_running_loop().call_later(self._sync_s, self._begin_sync, durable)

    def _begin_sync(self, durable: Durable) -> None:
        self._sync = None
        if not self.live.is_settled:
            durable.begin(self.live.daemon_journal).add_done_callback(_hear_of_sync)

    @property
    def size(self) -> int:
        """How many bytes the spool has."""
        stream = self.live.run.streams.get(STREAM)
        return 0 if stream is None else stream.bytes

    def all_blocks(self) -> list[Block]:
        """Oldest first, the one that runs included."""
        active = self.standing.active
        return self.blocks if active is None else [*self.blocks, active]

    def find_block(self, block_id: str) -> Block:
        """The block, or a refusal."""
        for block in reversed(self.all_blocks()):
            if block.block_id == block_id:
                return block
        message = f"there is no block {block_id[:80]} in this conversation: see blocks.since"
        raise Refusal("not_found", message)

    def block_of_key(self, key: str, digest: str) -> Block | None:
        """What was begun under that key; a refusal when that was something else."""
        for block in self.all_blocks():
            if block.key == key:
                if block.digest != digest:
                    message = f"the key {key} was used for another command (block {block.block_id}): take a new key"
                    raise Refusal("conflict", message, reason="key_reused")
                return block
        return None

    @contextlib.asynccontextmanager
    async def writing(self, timeout_ms: int) -> AsyncGenerator[None]:
        """Alone at writing; `busy` when others do not let go in time."""
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                await self._writing.acquire()
        except TimeoutError:
            message = f"somebody else has been writing to {self.conversation_id} for {timeout_ms} ms: ask again"
            raise Refusal("busy", message, reason="writing", mode=self.standing.mode) from None
        try:
            yield
        finally:
            self._writing.release()

    async def wait_ready(self, within_s: float = READY_WITHIN_S) -> None:
        """Returns when the shell waits at its prompt."""
        until = clock.passed_s() + within_s
        while not self.standing.is_ready:
            self.check_open()
            left_s = until - clock.passed_s()
            if left_s <= 0 or not await self.live.wait_until(lambda _: self.standing.is_ready, left_s):
                self.check_open()
                message = f"the shell of {self.conversation_id} does not come to its prompt: pty.reset begins another"
                raise Refusal("unavailable", message, reason="shell_not_ready")

    def check_open(self) -> None:
        """Refuses what needs a shell when there will be none any more."""
        if self.live.run.is_over or self.live.is_settled:
            why = self.live.run.error_message
            words = f"the conversation {self.conversation_id} is closed" + (f": {why}" if why else "")
            raise Refusal("gone", words, reason="closed", run_id=self.live.run.run_id)

    async def ask_keeper(self, do: str, **fields: Any) -> dict[str, Any]:
        """The keeper's answer, or its refusal as ours."""
        link = self.live.link
        if link is None:
            self.check_open()
            message = "the run's keeper does not answer (stopped, perhaps): the run goes on; ask again"
            raise Refusal("unavailable", message, reason="unresponsive")
        try:
            reply = await link.ask(do, **fields)
        except ConnectionResetError:
            raise Refusal("gone", f"the conversation {self.conversation_id} has just ended", reason="closed") from None
        if not reply.get("ok"):
            raise Refusal("conflict", str(reply.get("message")), reason=str(reply.get("error")))
        self.live.catch_up()
        return reply


def _hear_of_sync(synced: asyncio.Future[None]) -> None:
    if not synced.cancelled() and (error := synced.exception()) is not None:
        _log.warning("what was recorded of a conversation's blocks is not on disk: %r", str(error))
