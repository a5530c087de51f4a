"""An engine that starts over files it cannot read to their end loses no run over it, and no byte of one."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import limpet
from tests.keeper.driver import Foreign

MIB = 1 << 20


@pytest.fixture
def home() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="lmp", dir="/tmp", ignore_cleanup_errors=True) as base:
        yield Path(base) / "h"


def end(process: Foreign) -> None:
    """Whatever became of the run: its command goes, and with it the keeper."""
    with suppress(ProcessLookupError):
        process.kill()


async def start_again_with_a_large_environment(home: Path, stack: ExitStack) -> None:
    env = {f"V{number}": "x" * 100_000 for number in range(11)}
    asked: dict[str, Any] = {"command": "read x; echo said", "pty": True, "env": env, "key": "k1"}
    async with limpet.open(home) as engine:
        started = await engine.call("shell", action="spawn", **asked)
        described = await engine.call("runs.get", run_id=started["run_id"])
        stack.callback(end, Foreign(described["pid"]))
        directory = home / "runs" / started["run_id"]
        assert (directory / "daemon.journal").stat().st_size > MIB
    async with limpet.open(home) as engine:
        assert directory.exists(), "the directory of a run that goes on was removed"
        again = await engine.call("shell", action="spawn", **asked)
        assert again["run_id"] == started["run_id"]
        await engine.call("runs.kill", run_id=started["run_id"])
        ended = await engine.call("runs.wait", run_ids=[started["run_id"]], timeout_ms=30_000)
        assert ended["run"]["status"] == "killed"


@pytest.mark.requirement("1.11", "F01", "0.9")
def test_a_run_with_a_large_environment_outlives_its_engine(home: Path) -> None:
    """The record of its start is longer than what is read of a journal at once."""
    with ExitStack() as stack:
        asyncio.run(start_again_with_a_large_environment(home, stack))


async def a_run(home: Path) -> Path:
    """The directory of a run that has ended, whose engine is gone."""
    async with limpet.open(home) as engine:
        done = await engine.call("shell", command="echo precious")
        assert done["stdout"] == "precious\n"
    return home / "runs" / done["run_id"]


def forget(home: Path) -> None:
    """Without its database the engine looks at each run's files again."""
    databases = [path for path in home.rglob("*.db*") if path.is_file()]
    assert databases
    for path in databases:
        path.unlink()


async def start(home: Path) -> None:
    async with limpet.open(home):
        pass


def flipped(data: bytes) -> bytes:
    return data[:40] + bytes([data[40] ^ 1]) + data[41:]


def of_another_version(data: bytes) -> bytes:
    return b"2" + data[1:]


def zeroed(data: bytes) -> bytes:
    return bytes(4096) + data[4096:]


def cut(data: bytes) -> bytes:
    return data[:60]


def run_now(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(coroutine)


@pytest.mark.requirement("F25", "0.7", "1.12")
@pytest.mark.parametrize("name", ["daemon.journal", "keeper.journal"])
@pytest.mark.parametrize("damage", [flipped, of_another_version, zeroed, cut], ids=lambda each: each.__name__)
def test_a_damaged_journal_costs_no_output(home: Path, name: str, damage: Callable[[bytes], bytes]) -> None:
    """Injector: the first record of a finished run's journal is changed, and the database removed."""
    directory = run_now(a_run(home))
    journal = directory / name
    sound = journal.read_bytes()
    journal.write_bytes(damage(sound))
    assert journal.read_bytes() != sound
    forget(home)
    run_now(start(home))
    assert directory.exists(), "what was intact of the run was removed with what was not"
    assert (directory / "stdout.spool").read_bytes() == b"precious\n"
