"""Events in Python and on the command line: heard over kills of the daemon, each once (2.6, 6.2, 6.3)."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

import limpet

from .home import Home, json_lines, read_line
from .surface import Http

NewHome = Callable[..., Home]
CONFIG = "[hooks.exec]\ncommandWhitelist = ['printer']\noutputThrottleMs = 20\n"


def printer(home: Home, text: str) -> str:
    path = home.work / "printer"
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.requirement("2.6", "6.2", "2.3")
def test_a_client_listens_over_a_kill_of_the_daemon(new_home: NewHome) -> None:
    """Injector: SIGKILL to the daemon while a client listens; another is started by hand."""
    home = new_home(CONFIG)
    home.start()
    gate = home.work / "gate"
    os.mkfifo(gate)
    command = printer(home, f"echo one; read x <{gate}; echo two; exit 3")

    async def scenario() -> list[dict[str, Any]]:
        frames: list[dict[str, Any]] = []
        async with limpet.AsyncClient(home.path, start=False) as client, client.events("exec.*") as events:
            with limpet.exec_event_context(run_id="R", tool_call_id="T"):
                await client.call_checked("shell", action="spawn", command=command)
            async for frame in events:
                frames.append(frame)
                if frame["event"] == "exec.output" and len(frames) == 2:
                    await asyncio.to_thread(home.kill_daemon)
                    await asyncio.to_thread(gate.write_text, "go\n")
                    await asyncio.to_thread(home.start)
                if frame["event"] == "exec.completed":
                    return frames
        raise AssertionError(frames)

    frames = asyncio.run(scenario())
    told = [(frame["event"], frame["payload"]["seq"], frame["payload"].get("output")) for frame in frames]
    assert told == [
        ("exec.started", 1, None),
        ("exec.output", 2, "one\n"),
        ("exec.output", 3, "two\n"),
        ("exec.completed", 4, None),
    ]
    assert [frame["seq"] for frame in frames] == [1, 2, 3, 4]
    assert {(frame["payload"]["runId"], frame["payload"]["toolCallId"]) for frame in frames} == {("R", "T")}


@pytest.mark.requirement("2.6", "6.2")
def test_calls_over_a_websocket_of_the_client(house: Home) -> None:
    async def scenario() -> None:
        async with limpet.AsyncClient(house.path, start=False) as client:
            socket = await client.websocket()
            try:
                assert socket.hello["protocol"] == 1
                many = [socket.call("shell", {"command": f"echo {number}"}) for number in range(20)]
                assert [answer["stdout"] for answer in await asyncio.gather(*many)] == [f"{n}\n" for n in range(20)]
                assert (await socket.call("shell", {"commando": "x"}))["field"] == "commando"
            finally:
                socket.close()
            with pytest.raises(limpet.LimpetError, match="`events"):
                async with client.events(""):
                    pass

    asyncio.run(scenario())


@pytest.mark.requirement("2.6", "6.2", "F60", "0.7")
def test_a_program_that_reads_too_slowly_is_told_where_to_read(new_home: NewHome) -> None:
    """Injector: a program that listens and does not look while a run says three thousand things."""
    home = new_home("[hooks.exec]\ncommandWhitelist = ['printer']\noutputThrottleMs = 0\n")
    home.start()
    (home.work / "say.py").write_text(
        "import os, time\nfor _ in range(3000):\n os.write(1, b'z' * 4000)\n time.sleep(0.001)"
    )
    command = printer(home, f"exec {sys.executable} {home.work}/say.py")

    async def scenario() -> None:
        async with limpet.AsyncClient(home.path, start=False) as client, client.events() as events:
            run = await client.call_checked("shell", action="spawn", command=command, background=False)
            told, cursors = 0, list[int]()
            async for frame in events:
                if frame["type"] == "dropped":
                    cursors.append(frame["cursors"][run["run_id"]]["stdout"])
                    read = {"run_id": run["run_id"], "stream": "stdout", "offset": cursors[-1], "max_bytes": 10}
                    assert (await client.call_checked("runs.read", **read))["data"] == "z" * 10
                    assert cursors[-1] == told
                elif frame["event"] == "exec.output":
                    told = frame["payload"]["offset"] + frame["payload"]["bytes"]
                elif frame["event"] == "exec.completed":
                    assert frame["payload"]["status"] == "completed"
                    break
            assert cursors

    asyncio.run(scenario())


@pytest.mark.requirement("6.3")
def test_the_command_line_shows_and_follows(new_home: NewHome) -> None:
    home = new_home(CONFIG)
    home.start()
    command = printer(home, "printf 'hi\\033[31m'; exit 3")
    http = Http(home)
    run_id = http.spawn(command, session_id="s1")
    http.finish(run_id)
    followed = home.popen("events", "-f", "--json", "--event", "exec.c*", "--session", "s1")
    assert json.loads(read_line(followed))["payload"]["execId"] == run_id
    done = home.limpet("events")
    assert done.returncode == 0, done
    lines = done.stdout.decode().splitlines()
    assert [line.split()[1:4] for line in lines] == [
        ["exec.started", "printer", run_id],
        ["exec.output", "printer", run_id],
        ["exec.completed", "printer", run_id],
    ]
    assert "\033" not in done.stdout.decode()
    assert "failed, 3, after" in lines[-1]
    frames = json_lines(home.limpet("events", "--json", "--event", "exec.output").stdout)
    assert [frame["payload"]["output"] for frame in frames] == ["hi\033[31m"]
    http.finish(http.spawn(command, session_id="s2"))
    again = http.spawn(command, session_id="s1")
    assert json.loads(read_line(followed))["payload"]["execId"] == again
    followed.kill()
