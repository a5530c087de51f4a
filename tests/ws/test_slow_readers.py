"""Whoever reads too slowly loses output events alone, is told where to read them, and holds up nobody (F60)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from limpet.surfaces.ws.connection import REQUESTS_MAX
from limpet.surfaces.ws.slow import HELD_MAX_BYTES
from tests.ws.gateway import CLOSE, Client, Stage, connected, stage

SIZE = 4000


async def until_last(client: Client) -> list[dict[str, Any]]:
    """All frames up to the one of the run named last."""
    frames: list[dict[str, Any]] = []
    async with asyncio.timeout(30):
        while not frames or frames[-1].get("payload", {}).get("execId") != "last":
            frames.append((await client.frame()).json())
    return frames


def say_much(here: Stage, count: int = 1000) -> None:
    """Output of two runs, and an end now and then."""
    for place in range(count):
        here.say("exec.output", f"r{place % 2}", offset=place // 2 * SIZE, size=SIZE)
        if place % 100 == 99:
            here.say("exec.completed", f"end{place}")
    here.say("exec.completed", "last")


@pytest.mark.requirement("2.6", "F60", "0.7")
@pytest.mark.parametrize("tcp", [False, True])
def test_a_client_that_does_not_read_loses_output_only_and_is_told(tmp_path: Path, tcp: bool) -> None:
    """Injector: a client that takes nothing off its socket while 4 MB of events are published."""

    async def scenario() -> None:
        async with (
            stage(tmp_path) as here,
            connected(here, tcp=tcp, receive_bytes=4096) as slow,
            connected(here) as fast,
        ):
            for place in range(600):
                here.say("exec.output" if place % 100 else "exec.completed", offset=place * SIZE, size=SIZE)
                assert (await fast.frame()).json()["seq"] == place + 1
            here.say("exec.completed", "last")
            frames = await until_last(slow)
        dropped = [frame for frame in frames if frame["type"] == "dropped"]
        assert dropped
        heard = [frame["seq"] for frame in frames if frame["type"] == "event"]
        assert heard == sorted(heard)
        assert len(heard) + sum(frame["count"] for frame in dropped) == here.feed.last_seq
        ends = [frame for frame in frames if frame.get("event") == "exec.completed"]
        assert len(ends) == 6 + 1

    asyncio.run(scenario())


@pytest.mark.requirement("2.6", "F60")
def test_the_cursors_say_where_the_first_lost_bytes_are(tmp_path: Path) -> None:
    """Injector: a client that takes nothing off its socket. What it got and what it is pointed to leave no gap."""

    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here, receive_bytes=4096) as slow:
            say_much(here)
            frames = await until_last(slow)
        told = {"r0": 0, "r1": 0}
        for frame in frames:
            if frame.get("event") == "exec.output":
                told[frame["payload"]["execId"]] += SIZE
            if frame["type"] == "dropped":
                assert frame.keys() == {"type", "count", "cursors"}
                assert {run_id: streams["stdout"] for run_id, streams in frame["cursors"].items()} == told
                assert frame["count"] == 1000 - sum(told.values()) // SIZE
                return
        raise AssertionError("nothing was dropped")

    asyncio.run(scenario())


@pytest.mark.requirement("2.6", "F60")
def test_who_falls_behind_for_good_is_cut_and_may_come_back(tmp_path: Path) -> None:
    """Injector: a client that takes nothing while more than may be held for it is published."""

    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here, receive_bytes=4096) as slow, connected(here) as other:
            (gone, _) = here.gateway.clients
            size = 100_000
            for place in range(HELD_MAX_BYTES // size + 10):
                here.say("exec.completed", f"r{place}", size=size)
                assert (await other.frame()).json()["payload"]["execId"] == f"r{place}"
            assert gone not in here.gateway.clients
            async with asyncio.timeout(30):
                frames = [await slow.frame()]
                while frames[-1].opcode != CLOSE:
                    frames.append(await slow.frame())
                assert frames[-1].code == 1013
                last = frames[-2].json()["seq"]
            async with connected(here) as again:
                answer = await again.ask("subscribe", {"after": last})
                assert answer["payload"]["missed"] == 0
                assert (await again.frame()).json()["seq"] == last + 1

    asyncio.run(scenario())


@pytest.mark.requirement("2.6")
def test_more_requests_than_are_answered_at_once_wait_and_none_is_lost(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here) as client:
            engine = here.place.engine
            engine.awaited_calls = REQUESTS_MAX
            for place in range(300):
                client.request("try.wait", place)
            async with asyncio.timeout(30):
                await engine.entered.wait()
            async with connected(here) as other:  # whose answer comes behind all that the first one's could
                assert (await other.ask("try.nothing"))["ok"]
            assert engine.calls == REQUESTS_MAX + 1
            engine.released.set()
            answers = [(await client.frame()).json() for _ in range(300)]
        assert sorted(answer["id"] for answer in answers) == list(range(300))
        assert all(answer["ok"] for answer in answers)

    asyncio.run(scenario())


@pytest.mark.requirement("0.2", "0.3", "9.common")
def test_answers_failures_and_timeouts_in_their_frames(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here) as client:
            good = await client.ask("try.echo", {"text": "é"}, "a")
            assert good == {"type": "res", "id": "a", "ok": True, "payload": {"ok": True, "text": "é", "calls": 1}}
            bad = await client.ask("try.refuse", {}, -7)
            assert (bad["id"], bad["ok"], bad["error"]["ok"], bad["error"]["reason"]) == (-7, False, False, "mode")
            late = await client.ask("try.time_out")
            assert (late["ok"], late["payload"]["ok"], late["payload"]["error"]) == (True, False, "timeout")
            failed = await client.ask("try.fail")
            assert failed["error"]["error"] == "internal"
            assert "secret" not in str(failed)

    asyncio.run(scenario())


@pytest.mark.requirement("2.6")
def test_a_client_that_goes_lets_go_of_what_it_waited_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with stage(tmp_path) as here:
            async with connected(here) as client:
                client.request("try.wait")
                await here.place.engine.entered.wait()
            async with asyncio.timeout(30):
                await here.place.engine.let_go.wait()
            assert not here.gateway.clients

    asyncio.run(scenario())
