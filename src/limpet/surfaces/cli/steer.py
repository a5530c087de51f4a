"""`limpet kill`."""

from typing import Any

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import with_client
from limpet.surfaces.cli.ends import signal_name
from limpet.surfaces.cli.say import say_failure, say_json


def kill(*, run_ids: tuple[str, ...], signal: str | None, as_json: bool) -> int:
    """Asks for the end of each; does not wait for it."""

    async def kill_all(client: AsyncClient) -> list[dict[str, Any]]:
        first = {} if signal is None else {"signal": signal_name(signal)}
        return [await client.call_raw("runs.kill", {"run_id": run_id, **first}) for run_id in run_ids]

    answers = with_client(kill_all)
    for answer in answers:
        if not answer.get("ok"):
            say_failure(answer, as_json=as_json)
        elif as_json:
            say_json(answer)
    return 0 if all(answer.get("ok") for answer in answers) else 1
