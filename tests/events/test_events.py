"""Events of real runs in an engine of our own: which runs, in which order, with what in them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.daemon import InProcess

PROGRAM = "#!/bin/sh\necho hi\necho oops >&2\nexit 3\n"


@pytest.fixture
def codex(tmp_path: Path) -> Path:
    """A program of a whitelisted name."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "codex"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    return program


@asynccontextmanager
async def engine_at(tmp_path: Path, config: str = "") -> AsyncGenerator[InProcess]:
    home = tmp_path / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    (home / "config.toml").write_text(config)
    async with limpet.open(home) as engine:
        yield engine


async def told(engine: InProcess, completed: int = 1) -> list[dict[str, Any]]:
    """All events, once so many runs are completed."""
    found: list[dict[str, Any]] = []
    after = 0
    while sum(each["event"] == "exec.completed" for each in found) < completed:
        answer = await engine.call_checked("exec_events.recent", after=after, wait_ms=30_000)
        assert answer["events"], found
        assert not answer["missed"]
        found += answer["events"]
        after = answer["next_after"]
    return found


@pytest.mark.requirement("2.1", "2.2")
def test_a_run_is_told_from_start_to_end(tmp_path: Path, codex: Path) -> None:
    async def scenario() -> None:
        async with engine_at(tmp_path) as engine:
            command = f"FOO=1 {codex} run"
            run = await engine.call_checked("shell", command=command, cwd=str(tmp_path), session_id="s1")
            events = await told(engine)
        assert [each["seq"] for each in events] == [1, 2, 3, 4]
        assert [each["payload"]["seq"] for each in events] == [1, 2, 3, 4]
        assert events[0]["event"] == "exec.started"
        assert events[-1]["event"] == "exec.completed"
        for event in events:
            payload = event["payload"]
            assert payload["execId"] == run["run_id"]
            assert (payload["commandName"], payload["command"]) == ("codex", command)
            assert (payload["cwd"], payload["sessionId"]) == (str(tmp_path), "s1")
            assert isinstance(payload["pid"], int)
            assert isinstance(payload["ts"], int)
        output = {each["payload"]["stream"]: each["payload"] for each in events[1:-1]}
        assert (output["stdout"]["output"], output["stderr"]["output"]) == ("hi\n", "oops\n")
        for payload in output.values():
            assert (payload["offset"], payload["truncated"], payload["droppedBytes"]) == (0, False, 0)
        done = events[-1]["payload"]
        assert (done["exitCode"], done["signal"], done["status"]) == (3, None, "failed")
        assert done["durationMs"] == run["duration_ms"]

    asyncio.run(scenario())


@pytest.mark.requirement("2.1", "2.7")
def test_of_others_nothing_is_told(tmp_path: Path, codex: Path) -> None:
    async def scenario() -> None:
        async with engine_at(tmp_path) as engine:
            for command in ("echo hi", "echo codex", "ls codex.txt", f"cat {codex} # codex"):
                await engine.call_checked("shell", command=command)
            for live in engine.engine.living():
                assert not live.is_followed
            run = await engine.call_checked("shell", command=str(codex))
            assert {each["payload"]["execId"] for each in await told(engine)} == {run["run_id"]}

    asyncio.run(scenario())


@pytest.mark.requirement("2.1", "2.4")
def test_the_whitelist_is_the_configurations(tmp_path: Path, codex: Path) -> None:
    async def scenario() -> None:
        config = "[hooks.exec]\ncommandWhitelist = ['/usr/bin/Echo', 'node']\n"
        async with engine_at(tmp_path, config) as engine:
            await engine.call_checked("shell", command=str(codex))
            await engine.call_checked("shell", command="cd / && bash -c 'nice -n 1 echo hi'")
            assert {each["payload"]["commandName"] for each in await told(engine)} == {"echo"}

    asyncio.run(scenario())


@pytest.mark.requirement("2.4", "2.7")
def test_with_events_off_nothing_is_told_and_no_run_followed(tmp_path: Path, codex: Path) -> None:
    async def scenario() -> None:
        async with engine_at(tmp_path, "[hooks.exec]\nemitEvents = false\n") as engine:
            await engine.call_checked("shell", command=str(codex))
            assert engine.engine.feed.last_seq == 0
            assert (await engine.call_checked("exec_events.recent"))["events"] == []
        assert (tmp_path / "home" / "acks" / "events.journal").read_bytes() == b""

    asyncio.run(scenario())


@pytest.mark.requirement("2.1")
def test_one_that_could_not_start_is_completed_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_at(tmp_path) as engine:
            run = await engine.call_checked("shell", command="codex", cwd="/no/such/place")
            (event,) = await told(engine)
            assert event["event"] == "exec.completed"
            assert event["payload"]["execId"] == run["run_id"]
            assert "/no/such/place" in event["payload"]["error"]
            assert (event["payload"]["exitCode"], event["payload"]["status"]) == (None, "failed")

    asyncio.run(scenario())


@pytest.mark.requirement("2.1")
def test_a_queued_one_that_is_killed_is_completed_alone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_at(tmp_path) as engine:
            first = await engine.call_checked("shell", action="spawn", command="sleep 60", session_id="s")
            second = await engine.call_checked("shell", action="spawn", command="codex x", session_id="s")
            assert second["status"] == "queued"
            await engine.call_checked("shell", action="kill", run_id=second["run_id"])
            (event,) = await told(engine)
            assert (event["event"], event["payload"]["status"]) == ("exec.completed", "killed")
            await engine.call_checked("shell", action="kill", run_id=first["run_id"])

    asyncio.run(scenario())


@pytest.mark.requirement("2.1", "0.8")
def test_what_survivors_write_later_is_no_event(tmp_path: Path) -> None:
    """The one that goes on writes when the test lets it: by then the run has been over for as long as it took."""

    async def scenario() -> None:
        gate = tmp_path / "gate"
        os.mkfifo(gate)
        (tmp_path / "pi").write_text(f"#!/bin/sh\n(read x <{gate}; echo late) &\necho early\n")
        (tmp_path / "pi").chmod(0o755)
        async with engine_at(tmp_path) as engine:
            run = await engine.call_checked("shell", command=str(tmp_path / "pi"))
            events = await told(engine)
            await asyncio.to_thread(gate.write_text, "go\n")
            read = {"run_id": run["run_id"], "stream": "stdout", "offset": 6, "max_bytes": 100, "wait_ms": 30_000}
            assert (await engine.call_checked("runs.read", **read))["data"] == "late\n"
            again = await told(engine)
        assert again == events
        assert [each["payload"]["output"] for each in events if each["event"] == "exec.output"] == ["early\n"]

    asyncio.run(scenario())


@pytest.mark.requirement("2.3")
def test_the_context_is_taken_at_the_start_and_stays(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with engine_at(tmp_path) as engine:
            command = f"exec {tmp_path}/codex"
            os.mkfifo(tmp_path / "gate")
            (tmp_path / "codex").write_text(f"#!/bin/sh\nread x <{tmp_path}/gate\n")
            (tmp_path / "codex").chmod(0o755)
            with limpet.exec_event_context(run_id="R1", session_key="S1"), limpet.exec_event_context(tool_call_id="T1"):
                await engine.call_checked("shell", action="spawn", command=command)
            with limpet.exec_event_context(run_id="R2"):
                await asyncio.to_thread((tmp_path / "gate").write_text, "\n")
                events = await told(engine)
            assert len(events) == 2
            for event in events:
                given = {name: event["payload"].get(name) for name in ("runId", "toolCallId", "sessionKey")}
                assert given == {"runId": "R1", "toolCallId": "T1", "sessionKey": "S1"}

    asyncio.run(scenario())


@pytest.mark.requirement("2.3")
def test_what_a_request_says_stands_above_the_variable(tmp_path: Path, codex: Path) -> None:
    async def scenario() -> None:
        async with engine_at(tmp_path) as engine:
            with limpet.exec_event_context(run_id="around", tool_call_id="around"):
                asked = {"command": str(codex), "context": {"runId": "asked"}, "key": "k1"}
                first = await engine.call_checked("shell", **asked)
            with limpet.exec_event_context(run_id="another"):  # is no part of the request that the key stands for
                assert (await engine.call_checked("shell", **asked))["run_id"] == first["run_id"]
            for event in await told(engine):
                assert (event["payload"]["runId"], event["payload"]["toolCallId"]) == ("asked", "around")

    asyncio.run(scenario())


@pytest.mark.requirement("2.2", "0.10")
def test_a_secret_is_in_no_event(tmp_path: Path, codex: Path) -> None:
    async def scenario() -> None:
        async with engine_at(tmp_path) as engine:
            secret = "hunter2-and-more"
            await engine.call_checked("shell", command=f"{codex} --with {secret}", env={"API_TOKEN": secret})
            events = await told(engine)
        assert all(secret not in str(each["payload"]["command"]) for each in events)
        assert "[redacted]" in events[0]["payload"]["command"]

    asyncio.run(scenario())


@pytest.mark.requirement("2.1", "2.5")
def test_a_long_script_and_much_output_add_up(tmp_path: Path) -> None:
    """A command too long for an argv is read from its file's text; what is not told is counted."""

    async def scenario() -> None:
        (tmp_path / "gog").write_text("#!/bin/sh\nhead -c 3000000 /dev/zero | tr '\\0' z\n")
        (tmp_path / "gog").chmod(0o755)
        script = "# " + "x" * 150_000 + f"\n{tmp_path}/gog\n"
        async with engine_at(tmp_path) as engine:
            run = await engine.call_checked("shell", action="spawn", command=script, background=False)
            events = await told(engine)
            got = await engine.call_checked("runs.get", run_id=run["run_id"])
        chunks = [each["payload"] for each in events if each["event"] == "exec.output"]
        assert got["streams"]["stdout"]["bytes"] == 3_000_000
        assert sum(each["bytes"] + each["droppedBytes"] for each in chunks) == 3_000_000
        assert all(len(each["output"]) <= 4096 for each in chunks)

    asyncio.run(scenario())
