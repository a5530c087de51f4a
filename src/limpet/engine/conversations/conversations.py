"""The conversations of a home: opened at first use, found again by their id."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
from typing import TYPE_CHECKING, Final

import msgspec

from limpet.engine.ask import Ask
from limpet.engine.conversations.acting import deliver
from limpet.engine.conversations.conversation import Conversation
from limpet.engine.conversations.shells import ShellName, begin
from limpet.engine.conversations.transcripts import Transcripts
from limpet.model.errors import Refusal
from limpet.model.ids import IdMaker, check_id
from limpet.store.runs import RunFilter

if TYPE_CHECKING:
    from pathlib import Path

    from limpet.engine.engine import Engine
    from limpet.engine.live_run import LiveRun

DIALECT: Final = "pty"


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """How a conversation is to be begun, if it is not there."""

    shell: ShellName = "bash"
    cwd: str
    env: dict[str, str]
    size: tuple[int, int] = (24, 80)
    rc: str | None = None
    labels: list[str] = []


class Conversations:
    """Those that this engine has heard of."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: dict[str, Conversation] = {}
        self._opening: dict[str, asyncio.Task[Conversation]] = {}
        self.transcripts: Final = Transcripts(engine)
        self.ids = IdMaker(int.from_bytes(os.urandom(2)))

    async def open(self, conversation_id: str, opening: Opening) -> Conversation:
        """The conversation of that id, which begins now where there is none that is open."""
        check_id("conversation_id", conversation_id)
        known = self._known.get(conversation_id)
        if known is not None and not known.live.run.is_over:
            known.catch_up()
            return known
        task = self._opening.get(conversation_id)
        if task is None:
            task = asyncio.ensure_future(self._open(conversation_id, opening))
            self._opening[conversation_id] = task
            task.add_done_callback(lambda _: self._opening.pop(conversation_id, None))
        return await asyncio.shield(task)

    async def _open(self, conversation_id: str, opening: Opening) -> Conversation:
        found = await self._find(conversation_id)
        if found is None or found.live.run.is_over:
            found = await self._begin(conversation_id, opening)
        await deliver(found)
        return found

    async def find(self, conversation_id: str) -> Conversation:
        """The conversation of that id, open or closed; a refusal when there was none."""
        check_id("conversation_id", conversation_id)
        known = self._known.get(conversation_id)
        if known is None:
            known = await self._find(conversation_id)
            if known is None:
                raise Refusal("not_found", f"there is no conversation {conversation_id}: pty.open begins one")
        known.catch_up()
        return known

    async def _find(self, conversation_id: str) -> Conversation | None:
        runs = await self._engine.list(RunFilter(session_id=conversation_id, dialect=DIALECT, limit=1))
        known = self._known.get(conversation_id)
        if not runs or (known is not None and known.live.run.run_id >= runs[0].run_id):
            return known  # somebody else found it meanwhile: of a run there is one that hears its facts
        return self._made(conversation_id, self._engine.find(runs[0].run_id))

    def _made(self, conversation_id: str, live: LiveRun) -> Conversation:
        conversation = Conversation(conversation_id, live, self._engine.config.run.sync_ms / 1000)
        self.transcripts.follow(conversation)
        self._known[conversation_id] = conversation
        return conversation

    async def resume(self) -> None:
        """Takes up what an earlier engine left: blocks that were not handed over, files that were not written."""
        for conversation_id in await self.transcripts.unfinished():
            with contextlib.suppress(Refusal):
                found = await self._find(check_id("conversation_id", conversation_id))
                if found is not None:
                    await deliver(found)

    async def _begin(self, conversation_id: str, opening: Opening) -> Conversation:
        directory = self._directory(conversation_id)
        for each in (directory.parent, directory):  # mkdir gives its mode to the last one alone
            each.mkdir(mode=0o700, exist_ok=True)
        argv, needs = begin(opening.shell, directory, opening.rc, opening.env)
        env = {name: value for name, value in opening.env.items() if name not in ("PS1", "PS2", "PROMPT_COMMAND")}
        ask = Ask(
            dialect=DIALECT,
            command=shlex.join([opening.shell]),
            argv=argv,
            cwd=opening.cwd,
            env=env | needs,
            session_id=conversation_id,
            size=opening.size,
            labels=opening.labels,
            shells=True,
        )
        live = await self._engine.submit(ask)
        conversation = self._made(conversation_id, live)
        conversation.check_open()
        return conversation

    def _directory(self, conversation_id: str) -> Path:
        return self._engine.home.conversations / conversation_id / "shell"
