"""An engine that starts over files it cannot read to their end loses no run over it, and no byte of one."""

from __future__ import annotations

import asyncio
import fcntl
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.store.run_directory import RunDirectory
from tests.keeper.driver import Foreign, Keeper

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
    """The directory of a run that has ended, whose engine is gone, and its keeper too: both journals are whole."""
    async with limpet.open(home) as engine:
        done = await engine.call("shell", command="echo precious")
        assert done["stdout"] == "precious\n"
    directory = home / "runs" / done["run_id"]
    with (directory / "1" / "keeper.journal").open() as journal:
        fcntl.flock(journal, fcntl.LOCK_SH)
    return directory


def forget(home: Path) -> None:
    """Without its database the engine looks at each run's files again."""
    databases = list((home / "memory").glob("*.db*"))  # elsewhere idle keepers may just be removing theirs
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
@pytest.mark.parametrize("name", ["daemon.journal", "1/keeper.journal"])
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
    assert (directory / "1" / "stdout.spool").read_bytes() == b"precious\n"


async def told_of(home: Path, run_id: str) -> dict[str, Any]:
    """What an engine that starts now says of the run, and all it said itself."""
    async with limpet.open(home) as engine:
        described = await engine.call("runs.get", run_id=run_id)
        page = await engine.call("runs.read", run_id=run_id, stream="stdout")
        listed = await engine.call("runs.list")
        assert [run["run_id"] for run in listed["runs"]] == [run_id]
    return {**described, "said": page["data"], "is_all": page["eof"]}


@pytest.mark.requirement("F25", "0.7", "1.12")
@pytest.mark.parametrize("name", ["daemon.journal", "1/keeper.journal"])
@pytest.mark.parametrize("damage", [flipped, of_another_version, zeroed, cut], ids=lambda each: each.__name__)
def test_a_run_with_a_damaged_journal_is_told_of(home: Path, name: str, damage: Callable[[bytes], bytes]) -> None:
    """Injector: as above. What is left is answered, and says what is not; looked at again it is the same."""
    directory = run_now(a_run(home))
    journal = directory / name
    damaged = damage(journal.read_bytes())
    journal.write_bytes(damaged)
    forget(home)
    seen = run_now(told_of(home, directory.name))
    assert (seen["said"], seen["is_all"], list(seen["damaged"])) == ("precious\n", True, [journal.name])
    assert "record 1, at byte 0" in seen["damaged"][journal.name]
    end = {"status": "completed", "exit_code": 0, "ended_by": "self", "command": ""}
    if journal.name == "keeper.journal":
        end = {"status": "failed", "exit_code": None, "ended_by": "lost", "command": "echo precious"}
        assert journal.read_bytes() == damaged
    else:
        assert [path.read_bytes() for path in directory.glob("daemon.journal.broken-*")] == [damaged]
    assert {field: seen[field] for field in end} == end
    assert seen["created_at"] > 0
    forget(home)
    assert run_now(told_of(home, directory.name)) == seen


async def damage_while_away(home: Path, stack: ExitStack) -> None:
    asked: dict[str, Any] = {"command": "read x; echo said $x", "stdin": "open", "key": "k1", "labels": ["l"]}
    async with limpet.open(home) as engine:
        started = (await engine.call("shell", action="spawn", **asked))["run_id"]
        before = await engine.call("runs.get", run_id=started)
        stack.callback(end, Foreign(before["pid"]))
    journal = home / "runs" / started / "daemon.journal"
    journal.write_bytes(flipped(journal.read_bytes()))
    async with limpet.open(home) as engine:
        after = await engine.call("runs.get", run_id=started)
        assert list(after["damaged"]) == ["daemon.journal"]
        assert after | {"damaged": {}} == before
        assert (await engine.call("shell", action="spawn", **asked))["run_id"] == started
        await engine.call("runs.write", run_id=started, text="yes\n")
        ended = await engine.call("runs.wait", run_ids=[started], timeout_ms=30_000)
        assert (ended["run"]["status"], ended["run"]["exit_code"]) == ("completed", 0)
        assert (await engine.call("runs.read", run_id=started))["data"] == "said yes\n"


@pytest.mark.requirement("F25", "0.9", "1.11")
def test_a_run_that_goes_on_keeps_its_key_from_the_database(home: Path) -> None:
    """Injector: a bit of the only record of what was asked is flipped while no engine runs."""
    with ExitStack() as stack:
        run_now(damage_while_away(home, stack))


def start_request(directory: Path) -> None:
    RunDirectory(directory).write_private("start.json", b'{"run": "1m7rrt5ba0599", "argv": ["true"]}')


def spool(directory: Path) -> None:
    (directory / "1" / "stdout.spool").write_bytes(b"x")


def torn(directory: Path) -> None:
    (directory / "daemon.journal").write_bytes(b"1 0")


def foreign(directory: Path) -> None:
    (directory / "notes").write_bytes(b"")


@pytest.mark.requirement("0.7", "F02")
@pytest.mark.parametrize("what", [None, start_request, spool, torn, foreign])
def test_only_a_bare_preparation_is_removed(home: Path, what: Callable[[Path], None] | None) -> None:
    """Injector: directories as an engine leaves that is killed before it records a start, and others."""
    run_now(start(home))
    claimed, stranger = home / "runs" / "1m7rrt5ba0599", home / "runs" / "not-a-run"
    stranger.mkdir()
    RunDirectory(claimed).lay_out()
    with Keeper(home / "nursery" / "1") as keeper:
        keeper.directory.rename(RunDirectory(claimed).kept)
    assert RunDirectory(claimed).keeper_journal.stat().st_size > 0
    if what is not None:
        what(claimed)
    run_now(start(home))
    assert claimed.exists() == (what not in (None, start_request))
    assert stranger.exists()
