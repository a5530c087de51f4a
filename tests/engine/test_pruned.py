"""`pruned.journal`: nothing in it is forgotten, what cannot be read is set aside, a lost database is told again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import limpet
from limpet.model.tombstone import Tombstone
from limpet.store.pruned import PrunedJournal


def stone(number: int) -> Tombstone:
    return Tombstone(run_id=f"r{number}", key=f"k{number}", request_digest="d", pruned_at=number)


@pytest.mark.requirement("1.12", "F25")
@pytest.mark.parametrize("damage", ["torn", "flipped"])
def test_goes_on_behind_what_can_be_read(tmp_path: Path, damage: str) -> None:
    """Injector: the last record is cut in the middle, or one of its bits is turned over."""
    path = tmp_path / "pruned.journal"
    PrunedJournal(path).append([stone(1), stone(2), stone(3)])
    data = path.read_bytes()
    path.write_bytes(data[:-20] if damage == "torn" else data[:-20] + bytes([data[-20] ^ 1]) + data[-19:])
    journal = PrunedJournal(path)
    assert journal.read() == [stone(1), stone(2)]
    journal.append([stone(4)])
    assert PrunedJournal(path).read() == [stone(1), stone(2), stone(4)]
    assert len(list(tmp_path.glob("pruned.journal.broken-*"))) == (damage == "flipped")


async def prune_and_lose_the_database(home: Path) -> None:
    async with limpet.open(home) as engine:
        first = await engine.call("shell", command="true", key="k")
        pruned: list[str] = []
        async with asyncio.timeout(30):  # its keeper seals what it kept behind the answer: until then it is left alone
            while not pruned:
                pruned = (await engine.call("runs.prune", keep_bytes=0))["runs"]
        assert pruned == [first["run_id"]]
    for path in (home / "memory").glob("sessions.db*"):
        path.unlink()
    async with limpet.open(home) as engine:
        for answer in (
            await engine.call("shell", action="poll", run_id=first["run_id"]),
            await engine.call("shell", command="true", key="k"),
        ):
            assert (answer["error"], answer["reason"], answer["run_id"]) == ("gone", "pruned", first["run_id"])


@pytest.mark.requirement("0.9", "1.12", "F30")
def test_a_key_stays_gone_without_the_database(tmp_path: Path) -> None:
    """Injector: the database is deleted after its run was pruned."""
    asyncio.run(prune_and_lose_the_database(tmp_path / "h"))
