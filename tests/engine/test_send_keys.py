"""`send_keys`: what a program in a terminal gets, what is refused, and that a key sends at most once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.daemon import InProcess

# Says in hex what it reads, byte for byte, after whatever it was told to say first.
_HEX = """python3 -c '
import os, sys, tty
tty.setraw(0)
sys.stdout.write({first}); sys.stdout.write("ready\\n"); sys.stdout.flush()
while (data := os.read(0, 4096)) != b"\\x04":
    sys.stdout.write(data.hex()); sys.stdout.flush()
'"""


async def said(engine: InProcess, run_id: str, least: int) -> str:
    """Everything on the terminal, once there is so much."""
    text = ""
    while len(text) < least:
        page = await engine.call_checked("runs.read", run_id=run_id, offset=len(text.encode()), wait_ms=20_000)
        assert page["data"], text
        text += page["data"]
    return text


async def keys(engine: InProcess, run_id: str, **fields: Any) -> dict[str, Any]:
    return await engine.call("shell", action="send_keys", run_id=run_id, **fields)


def with_engine(home: Path, work: Callable[[InProcess], Awaitable[None]]) -> None:
    async def run() -> None:
        async with limpet.open(home) as engine:
            try:
                await work(engine)
            finally:
                engine.engine.stop_kills_runs = True

    asyncio.run(run())


async def started(engine: InProcess, first: str = "") -> tuple[str, int]:
    """A program that says what it gets, and how much it has said before that."""
    spawned = await engine.call_checked("shell", action="spawn", pty=True, command=_HEX.format(first=json.dumps(first)))
    return spawned["run_id"], len(await said(engine, spawned["run_id"], len(first) + len("ready\n")))


@pytest.mark.requirement("1.2", "1.7")
@pytest.mark.parametrize(("first", "up"), [("", "1b5b41"), ("\x1b[?1h\x1b=", "1b4f41"), ("\x1b[?1h\x1b[?1l", "1b5b41")])
def test_text_then_keys_reach_the_program(tmp_path: Path, first: str, up: str) -> None:
    async def work(engine: InProcess) -> None:
        run_id, before = await started(engine, first)
        answer = await keys(engine, run_id, text="Up", keys=["Up", "C-c", "x y"])
        assert answer == {"ok": True, "run_id": run_id, "status": "running", "written": 2 + 3 + 1 + 3}
        expected = f"{b'Up'.hex()}{up}03{b'x y'.hex()}"
        assert (await said(engine, run_id, before + len(expected)))[before:] == expected

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("0.9", "1.7")
def test_one_key_sends_once(tmp_path: Path) -> None:
    async def work(engine: InProcess) -> None:
        run_id, before = await started(engine)
        same = [keys(engine, run_id, keys=["a", "F1"], key="k") for _ in range(5)]
        answers = await asyncio.gather(*same)
        assert {(answer["ok"], answer["written"]) for answer in answers} == {(True, 4)}
        assert (await keys(engine, run_id, keys=["b"], key="k"))["reason"] == "key_reused"
        assert (await keys(engine, run_id, keys=["a"], text="F1", key="k"))["reason"] == "key_reused"
        await keys(engine, run_id, keys=["z"])
        expected = "611b4f507a"
        assert (await said(engine, run_id, before + len(expected)))[before:] == expected

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("0.10", "1.7")
def test_a_secret_is_recorded_by_its_length(tmp_path: Path) -> None:
    async def work(engine: InProcess) -> None:
        run_id, before = await started(engine)
        answer = await keys(engine, run_id, text="hunter2-hunter2", keys=["Enter"], secret=True, key="k")
        assert answer["written"] == 16
        await said(engine, run_id, before + 32)
        directory = tmp_path / "h" / "runs" / run_id
        records = (directory / "daemon.journal").read_text() + (directory / "1" / "keeper.journal").read_text()
        assert '"secret":true' in records
        for told in ("hunter2-hunter2", "aHVudGVyMi1odW50ZXIy"):
            assert told not in records
        # Not even a digest of it, from which a short one could be found by trying.
        assert (await keys(engine, run_id, text="another-secret!", keys=["Enter"], secret=True, key="k"))[
            "written"
        ] == 16

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("1.7", "F52")
def test_a_line_that_would_be_cut_is_refused(tmp_path: Path) -> None:
    """Injector: the terminal is in line mode, and the input has no end of a line within 4095 bytes."""

    async def work(engine: InProcess) -> None:
        spawned = await engine.call_checked("shell", action="spawn", pty=True, command="stty -echo; echo ok; wc -c")
        await said(engine, spawned["run_id"], 3)
        answer = await keys(engine, spawned["run_id"], text="x" * 5000, keys=["Enter"])
        assert (answer["error"], answer["reason"]) == ("conflict", "line_too_long_for_canonical")
        sent = await keys(engine, spawned["run_id"], text="y" * 4000, keys=["Enter", "C-d"])
        assert sent["written"] == 4002
        assert (await said(engine, spawned["run_id"], 8)).split()[-1] == "4001"

    with_engine(tmp_path / "h", work)


@pytest.mark.requirement("1.7")
def test_what_is_refused(tmp_path: Path) -> None:
    async def work(engine: InProcess) -> None:
        piped = await engine.call_checked("shell", action="spawn", command="cat", stdin="open")
        answer = await keys(engine, piped["run_id"], keys=["Enter"])
        assert (answer["error"], answer["reason"]) == ("conflict", "no_terminal")
        over = await engine.call_checked("shell", command="true", pty=True)
        answer = await keys(engine, over["run_id"], keys=["Enter"])
        assert (answer["error"], answer["reason"]) == ("conflict", "not_running")
        run_id, _ = await started(engine)
        for wrong, field in (
            ({}, "keys"),
            ({"keys": "Enter"}, "keys"),
            ({"keys": ["Enter", 3]}, "keys"),
            ({"keys": ["C-;"]}, "keys"),
            ({"text": 1}, "text"),
            ({"keys": ["a"], "key": "no id"}, "key"),
            ({"keys": ["a"], "command": "ls"}, "command"),
        ):
            answer = await keys(engine, run_id, **wrong)
            assert (answer["error"], answer["field"].partition("[")[0].partition(".")[0]) == ("invalid_argument", field)
        assert (await engine.call("shell", command="ls", keys=["a"]))["field"] == "keys"
        assert (await keys(engine, "0000000000000", keys=["a"]))["error"] == "not_found"

    with_engine(tmp_path / "h", work)
