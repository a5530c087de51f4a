"""`limpet wait`: for the ends of runs, or for the first thing of several that they say or do."""

import asyncio
import time
from typing import Any

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.ends import TIMED_OUT, exit_code_of
from limpet.surfaces.cli.say import note, say_json, visible

LONG_MS = 3_600_000


def wait(
    *,
    run_ids: tuple[str, ...],
    regexes: tuple[str, ...],
    by_line: bool,
    new: bool,
    quiet: float | None,
    port: float | None,
    timeout: float | None,
    as_json: bool,
) -> int:
    """Of ends: the code of the first that failed. Else 0 when a condition held, 1 when none can any more."""
    conditions: list[dict[str, Any]] = [
        {"regex": regex, "match_type": "line" if by_line else "regex"} for regex in regexes
    ]
    if quiet is not None:
        conditions.append({"quiet_ms": round(quiet * 1000)})
    if port is not None:
        conditions.append({"port": int(port)})
    if not conditions:
        return _for_ends(run_ids, timeout, as_json)
    return _for_first({"run_ids": list(dict.fromkeys(run_ids)), "for": conditions}, timeout, new=new, as_json=as_json)


def _for_first(asked: dict[str, Any], timeout: float | None, *, new: bool, as_json: bool) -> int:

    async def wait_for_one(client: AsyncClient) -> dict[str, Any]:
        until = None if timeout is None else time.monotonic() + timeout
        if new:
            asked["from"] = {run_id: await _ends_now(client, run_id) for run_id in asked["run_ids"]}
        while True:
            left_ms = LONG_MS if until is None else max(0, round((until - time.monotonic()) * 1000))
            answer = await client.call_raw("runs.wait", asked | {"timeout_ms": min(left_ms, LONG_MS)})
            if answer.get("error") != "timeout" or answer.get("reason") == "ended" or left_ms <= LONG_MS:
                return answer
            asked["from"] = answer["from"]

    answer = with_client(wait_for_one)
    if answer.get("error") == "timeout":
        if as_json:
            say_json(answer)
        has_ended = answer.get("reason") == "ended"
        waited_for = " or ".join(str(next(iter(each.values()))) for each in asked["for"])
        note(
            answer["message"]
            if has_ended
            else f"not within {timeout:g} s: {waited_for} ({', '.join(asked['run_ids'])})"
        )
        return 1 if has_ended else TIMED_OUT
    succeeded(answer)
    if as_json:
        say_json(answer)
    elif "hit" in answer:
        print(visible(answer["hit"]["line"]))
    return 0


async def _ends_now(client: AsyncClient, run_id: str) -> dict[str, int]:
    """How long each stream of the run is by now."""
    run = succeeded(await client.call_raw("runs.get", {"run_id": run_id}))
    return {name: stream["bytes"] for name, stream in run["streams"].items()}


def _for_ends(run_ids: tuple[str, ...], timeout: float | None, as_json: bool) -> int:
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
