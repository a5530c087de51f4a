"""`limpet attach`: a run's terminal, or a conversation, on one's own."""

import os
import sys
from typing import Any

from limpet.client.client import AsyncClient
from limpet.model.errors import Refusal
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.ends import exit_code_of
from limpet.surfaces.cli.say import note, say_json


def attach(*, name: str, detach_keys: str | None, as_json: bool) -> int:
    """0 once detached; where the run ends meanwhile, the code that stands for its end."""
    from limpet.surfaces.cli.attaching.attached import Attached
    from limpet.surfaces.cli.attaching.terminal import OwnTerminal
    from limpet.surfaces.cli.attaching.typed import DETACH_KEYS, Typed

    keys = detach_keys if detach_keys is not None else os.environ.get("LIMPET_DETACH_KEYS") or DETACH_KEYS
    Typed(keys)  # refuses before anything happens to the terminal

    async def stay(client: AsyncClient) -> tuple[int | None, dict[str, Any]]:
        run_id, conversation_id = await run_of(client, name)
        run = succeeded(await client.call_raw("runs.get", {"run_id": run_id}))
        if not run.get("pty"):
            message = f"the run {run_id} has no terminal: `limpet logs -f {run_id}` shows what it says"
            raise Refusal("conflict", message)
        if run.get("finished_at") is not None:
            return -1, run
        with OwnTerminal() as terminal:
            how = await Attached(client, terminal, run_id, conversation_id, keys).attend()
        return how, succeeded(await client.call_raw("runs.get", {"run_id": run_id})) if how == -1 else run

    how, run = with_client(stay)
    sys.stdout.flush()
    if how is not None and how > 0:
        return 128 + how
    ended = how == -1
    if as_json:
        say_json({"ok": True, "run_id": run["run_id"], "detached": not ended})
    elif ended:
        note(f"{name} has ended: {run['status']}")
    else:
        note(f"detached from {name}, which goes on: limpet attach {name}")
    return exit_code_of(run) if ended else 0


async def run_of(client: AsyncClient, name: str) -> tuple[str, str | None]:
    """The run of that id, or of the conversation of that id; and the conversation's, if it is one."""
    answer = await client.call_raw("runs.get", {"run_id": name})
    if answer.get("ok"):
        return name, answer["session_id"] if answer.get("dialect") == "pty" else None
    status = await client.call_raw("pty.status", {"conversation_id": name})
    if status.get("ok"):
        return status["run_id"], name
    if status.get("error") == "not_found":
        raise Refusal("not_found", f"there is no run and no conversation {name}: see `limpet ps`")
    succeeded(status)
    raise AssertionError
