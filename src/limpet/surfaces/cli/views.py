"""`limpet ps`: runs in a table."""

import time
from collections.abc import Sequence
from typing import Any, Final

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.ends import exit_code_of
from limpet.surfaces.cli.say import say_json, visible

RECENT: Final = 20
_PAGE: Final = 200
_COMMAND_WIDTH: Final = 60


def ps(*, every: bool, as_json: bool) -> int:
    """The newest first; without `every` the live ones and the latest."""
    runs = with_client(_every if every else _recent)
    if as_json:
        for run in runs:
            say_json(run)
        return 0
    now_ms = time.time_ns() // 1_000_000
    rows = [("RUN", "STATUS", "CODE", "AGE", "SESSION", "COMMAND"), *(_row(run, now_ms) for run in runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
        print("  ".join([*cells, row[5]]))
    return 0


async def _recent(client: AsyncClient) -> list[dict[str, Any]]:
    latest = succeeded(await client.call_raw("runs.list", {"limit": RECENT}))["runs"]
    known = {run["run_id"] for run in latest}
    older = [run for run in await _listed(client, {"status": "running"}) if run["run_id"] not in known]
    return [*latest, *older]


async def _every(client: AsyncClient) -> list[dict[str, Any]]:
    return await _listed(client, {})


async def _listed(client: AsyncClient, asked: dict[str, Any]) -> list[dict[str, Any]]:
    runs: list[dict[str, Any]] = []
    cursor: dict[str, str] = {}
    while True:
        answer = succeeded(await client.call_raw("runs.list", {**asked, **cursor, "limit": _PAGE}))
        runs += answer["runs"]
        if not answer.get("next_cursor"):
            return runs
        cursor = {"cursor": answer["next_cursor"]}


def _row(run: dict[str, Any], now_ms: int) -> Sequence[str]:
    over = run.get("finished_at") is not None
    command = visible(run["command"])
    return (
        visible(run["run_id"]),
        run["status"] + (" (stopping)" if run.get("stopping") and not over else ""),
        str(exit_code_of(run)) if over else "",
        _age(now_ms - run["created_at"]) if run.get("created_at") else "",
        visible(run["session_id"]),
        command if len(command) <= _COMMAND_WIDTH else f"{command[: _COMMAND_WIDTH - 1]}…",
    )


def _age(ms: int) -> str:
    seconds = max(0, ms) // 1000
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
