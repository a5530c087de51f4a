"""Idle keepers: more of them where many are taken, few again after a rest, and nothing left behind."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from limpet.engine.nursery import IDLE_KEEPERS, MOST_IDLE_KEEPERS, IdleKeeper, Nursery
from limpet.model.errors import Refusal

WITHIN_S = 60.0


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not holds():  # noqa: ASYNC110  (what it waits for are files of other processes)
            await asyncio.sleep(0.01)


def laid_out(slots: Path) -> int:
    """How many keepers are ready: each has its journal below the directory that will be a run's."""
    return len(list(slots.glob("*/1/control.sock")))


async def taken(nursery: Nursery, count: int) -> list[IdleKeeper]:
    return [await nursery.take() for _ in range(count)]


def test_many_taken_leave_more_ready_until_a_rest(tmp_path: Path) -> None:
    asyncio.run(_many_taken_leave_more_ready_until_a_rest(tmp_path))


async def _many_taken_leave_more_ready_until_a_rest(tmp_path: Path) -> None:
    slots = tmp_path / "slots"
    slots.mkdir()
    nursery = Nursery(slots, tmp_path / "log", None, rest_after_s=0.5)
    nursery.open()
    try:
        await until(lambda: laid_out(slots) == IDLE_KEEPERS)
        for keeper in await taken(nursery, 2 * IDLE_KEEPERS):
            keeper.let_go()
        most = 0

        def has_rested() -> bool:
            nonlocal most
            most = max(most, laid_out(slots))
            return most > IDLE_KEEPERS and laid_out(slots) == IDLE_KEEPERS

        await until(has_rested)
        assert most <= MOST_IDLE_KEEPERS
    finally:
        await nursery.close()
    await until(lambda: not list(slots.iterdir()))


def test_what_cannot_be_laid_out_is_refused(tmp_path: Path) -> None:
    """Injector: a file where the directories are to be."""
    asyncio.run(_what_cannot_be_laid_out_is_refused(tmp_path))


async def _what_cannot_be_laid_out_is_refused(tmp_path: Path) -> None:
    slots = tmp_path / "slots"
    slots.mkdir()
    nursery = Nursery(slots, tmp_path / "log", None)
    slots.rmdir()
    slots.write_text("in the way")
    try:
        for _ in range(3):
            with pytest.raises(Refusal, match="ENOTDIR"):
                await nursery.take()
    finally:
        await nursery.close()
