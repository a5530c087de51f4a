"""`pty.snapshot`: what a person would see of a conversation's terminal."""

from typing import Final

import msgspec

from limpet.dialects.pty import types as t
from limpet.engine.engine import Engine
from limpet.model.operation import Caller, Operation


async def snapshot(engine: Engine, request: t.SnapshotRequest, _caller: Caller) -> t.Snapshot:
    conversation = await engine.conversations.find(request.conversation_id)
    shown, end = await engine.screens.look(conversation.live, request.format, request.replay_bytes)
    return t.Snapshot(**msgspec.structs.asdict(shown), resume_cursor=end)


ROWS: Final = (
    Operation(
        name="pty.snapshot",
        request=t.SnapshotRequest,
        response=t.Snapshot,
        handle=snapshot,
        summary="Shows what stands on a conversation's screen, as a person would see it.",
        reads_only=True,
        repeatable=True,
    ),
)
