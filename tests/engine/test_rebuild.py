"""A database that is damaged while an engine works: it is filled again, and nobody hears a wrong answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.daemon import InProcess

RUNS = 30
DEADLINE_S = 30.0


async def answers(engine: InProcess, run_ids: list[str]) -> list[dict[str, Any]]:
    return [await engine.call("shell", action="poll", run_id=run_id) for run_id in run_ids]


async def damaged_at_work(home: Path) -> None:
    async with limpet.open(home) as engine:
        done = [await engine.call("shell", command=f"echo é{n}; exit {n % 3}", key=f"k{n}") for n in range(RUNS)]
        run_ids = [each["run_id"] for each in done]
        before = await answers(engine, run_ids)
    database = home / "memory" / "sessions.db"
    async with limpet.open(home) as engine:
        going_on = (await engine.call("shell", action="spawn", command="read x; echo $x", stdin="open"))["run_id"]
        whole = database.read_bytes()
        database.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))  # in place: the same file stays open
        refusals = 0
        async with asyncio.timeout(DEADLINE_S):
            while True:
                after = await answers(engine, run_ids)
                wrong = [answer for answer in after if not answer["ok"] and answer["error"] != "unavailable"]
                assert wrong == []
                refusals += sum(not answer["ok"] for answer in after)
                if after == before:
                    break
                await asyncio.sleep(0)
        assert list(database.parent.glob("sessions.db.broken-*")), "the damage was never met"
        assert refusals > 0
        again = await engine.call("shell", command="echo é1; exit 1", key="k1")
        assert again["run_id"] == run_ids[1]
        await engine.call("runs.write", run_id=going_on, text="on\n")
        assert (await engine.call("runs.wait", run_ids=[going_on]))["run"]["exit_code"] == 0
        assert (await engine.call("runs.verify"))["findings"] == []


@pytest.mark.requirement("F29", "1.12", "0.9")
def test_damage_that_is_met_at_work(tmp_path: Path) -> None:
    """Injector: all pages of the open database but its first are overwritten."""
    asyncio.run(damaged_at_work(tmp_path / "h"))
