"""From a conversation's id to the conversation, which the first use opens."""

import os

from limpet.dialects.pty.types import OpenRequest
from limpet.engine.conversations.conversation import Conversation
from limpet.engine.conversations.conversations import Opening
from limpet.engine.engine import Engine
from limpet.engine.environment import environment_for
from limpet.model.errors import Refusal
from limpet.model.operation import Caller


async def opened(engine: Engine, request: OpenRequest, caller: Caller) -> Conversation:
    """The conversation, begun as asked for where there is none that is open."""
    for name, value in request.env.items():
        if not name or "=" in name or "\0" in name + value:
            message = f"`env`: {name[:40]!r} cannot be set: names have no '=' and are not empty, and no NUL anywhere"
            raise Refusal("invalid_argument", message, field="env")
    conversation = await engine.conversations.open(request.conversation_id, _opening(engine, request, caller))
    if request.shell is not None and conversation.live.run.command != request.shell:
        message = (
            f"the conversation {request.conversation_id} is open, in {conversation.live.run.command}: close it first"
        )
        raise Refusal("conflict", message, reason="other_shell")
    return conversation


def _opening(engine: Engine, request: OpenRequest, caller: Caller) -> Opening:
    environment = environment_for(caller, engine.config.run.env, request.env)
    base = caller.cwd or environment.get("HOME") or "/"
    return Opening(
        shell=request.shell or "bash",
        cwd=os.path.normpath(os.path.join(base, request.cwd or "")),  # noqa: PTH118
        env=environment,
        size=(request.rows, request.cols),
        rc=None if request.rc is None else os.path.join(base, os.path.expanduser(request.rc)),  # noqa: PTH111, PTH118
        labels=request.labels,
    )


async def conversation_of(engine: Engine, conversation_id: str, caller: Caller) -> Conversation:
    """The conversation; the first use opens it as it is by default."""
    return await opened(engine, OpenRequest(conversation_id=conversation_id), caller)
