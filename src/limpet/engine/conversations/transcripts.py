"""Has each conversation's files written: soon after its blocks end, in a thread, and after a restart too."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Final

from limpet.engine import reading
from limpet.engine.conversations.conversation import STREAM, Conversation
from limpet.engine.conversations.transcript import Transcript, forget, state_of
from limpet_keeper import system

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from limpet.engine.engine import Engine

# Blocks that end meanwhile are written down together.
AFTER_S: Final = 0.2
# How often one looks how far a block has come that runs.
EVERY_S: Final = 1.0
CLOSE_WITHIN_S: Final = 2.0
DIRECTORY: Final = "agent_pty"

_log: Final = logging.getLogger("limpet.engine")


class Transcripts:
    """What disturbs it (a full disk, say) disturbs no conversation: it is tried again at the next change."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._thread: ThreadPoolExecutor | None = None
        # By run: those that are being written, and when they are next.
        self._open: dict[str, Transcript] = {}
        self._timers: dict[str, tuple[asyncio.TimerHandle, Conversation]] = {}

    def follow(self, conversation: Conversation) -> None:
        """From now on what becomes of its blocks is written down, and what has become of them."""
        conversation.on_told = partial(self._soon, conversation, AFTER_S)
        self._soon(conversation, AFTER_S)

    def _soon(self, conversation: Conversation, after_s: float) -> None:
        run_id = conversation.live.run.run_id
        if run_id not in self._timers:
            write = partial(self._engine.later, partial(self._write, conversation))
            self._timers[run_id] = (asyncio.get_running_loop().call_later(after_s, write), conversation)

    async def _write(self, conversation: Conversation) -> None:
        live, run_id = conversation.live, conversation.live.run.run_id
        known = -1
        try:
            conversation.catch_up()
            told, standing = conversation.told.copy(), conversation.standing
            known = len(told)
            transcript = self._open.get(run_id) or self._begun(conversation)
            step = partial(transcript.catch_up, told, standing.active, conversation.size, is_over=standing.is_over)
            self._thread = self._thread or ThreadPoolExecutor(1, "limpet-transcripts")
            await asyncio.get_running_loop().run_in_executor(self._thread, step)
        except Exception as error:  # noqa: BLE001  (whatever it is, the conversation goes on)
            _log.warning("the files of %s could not be written: %r", conversation.conversation_id, str(error))
            self._let_go(run_id)
        finally:
            self._timers.pop(run_id, None)
        if known >= 0 and len(conversation.told) > known:
            self._soon(conversation, AFTER_S)
        elif conversation.standing.active is not None:
            self._soon(conversation, EVERY_S)
        elif live.run.is_over:
            self._let_go(run_id)

    def _begun(self, conversation: Conversation) -> Transcript:
        live, blobs = conversation.live, self._engine.blobs
        transcript = Transcript(
            self._directory(conversation.conversation_id),
            live.run.run_id,
            live.directory.spool_path(STREAM),
            system.boot_id(),
            lambda start, end: reading.read_exactly(live.run, blobs, STREAM, start, end),
        )
        self._open[live.run.run_id] = transcript
        return transcript

    def _let_go(self, run_id: str) -> None:
        transcript = self._open.pop(run_id, None)
        if transcript is not None:
            transcript.close()

    def _directory(self, conversation_id: str) -> Path:
        return self._engine.home.conversations / conversation_id / DIRECTORY

    async def unfinished(self) -> list[str]:
        """The conversations whose files did not come to their end when an earlier engine went."""

        def look() -> list[str]:
            states = ((path.name, state_of(path / DIRECTORY)) for path in self._engine.home.conversations.iterdir())
            return [name for name, state in states if state is None or not state.is_whole]

        return await asyncio.to_thread(look)

    async def pruned(self, run_ids: Iterable[str]) -> None:
        """Nothing is to be left of these runs."""
        await asyncio.to_thread(forget, self._engine.home.conversations, set(run_ids))

    async def close(self) -> None:
        """Writes down what was not yet, and ends."""
        for handle, conversation in list(self._timers.values()):
            handle.cancel()
            conversation.on_told = lambda: None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_WITHIN_S):
                    await self._write(conversation)
        for handle, _ in self._timers.values():
            handle.cancel()
        if self._thread is not None:
            self._thread.shutdown()
        for transcript in self._open.values():
            transcript.close()
