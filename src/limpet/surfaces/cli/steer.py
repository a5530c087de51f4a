"""`limpet wait` and `limpet kill`."""

import asyncio
from typing import Any

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.ends import TIMED_OUT, exit_code_of, signal_name
from limpet.surfaces.cli.say import note, say_failure, say_json

LONG_MS = 3_600_000


def wait(*, run_ids: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
    """Exits with the code of the first run that failed, 124 when time was over."""

    async def wait_for_all(client: AsyncClient) -> list[dict[str, Any]] | None:
        waits = asyncio.gather(*(ended(client, run_id) for run_id in dict.fromkeys(run_ids)))
        try:
            return await asyncio.wait_for(waits, timeout)
        except TimeoutError:
            return None

    runs = with_client(wait_for_all)
    if runs is None:
        message = f"not ended within {timeout:g} s: {', '.join(run_ids)}"
        if as_json:
            say_json({"ok": False, "error": "timeout", "message": message})
        note(message)
        return TIMED_OUT
    if as_json:
        for run in runs:
            say_json({"ok": True, **run})
    return next((code for code in map(exit_code_of, runs) if code), 0)


async def ended(client: AsyncClient, run_id: str) -> dict[str, Any]:
    """The facts of a run, once it has ended."""
    asked = {"run_ids": [run_id], "for": [{"exit": True}], "timeout_ms": LONG_MS}
    answer = await client.call_raw("runs.wait", asked)
    while answer.get("error") == "timeout":
        answer = await client.call_raw("runs.wait", asked)
    return next(run for run in succeeded(answer)["runs"] if run["run_id"] == run_id)


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
