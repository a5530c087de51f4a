"""Events: what a client more costs the gateway, what stopped ones cost a run, and what events cost other runs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import selectors
import socket
import subprocess
import sys
import time
from pathlib import Path

import uvloop

from bench.daemons import Caller, Daemon, answer
from bench.measure import Row, Series, Setting
from limpet.engine.feed import Feed
from limpet.model.operation import Caller as Who
from limpet.surfaces.http.app import App
from limpet.surfaces.http.calls import Calls
from limpet.surfaces.http.doors import Door
from limpet.surfaces.http.serve import Server, listen
from limpet.surfaces.ws.gateway import PATH, Gateway

CLIENTS = 100
EVENT_BYTES = 300
# What the system and the daemon together keep for one that reads nothing.
BUFFERS_BYTES = 400_000
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


def connected(path: str) -> socket.socket:
    """A client that was taken for one; what it is sent is its own affair."""
    client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    client.connect(path)
    client.sendall(HANDSHAKE)
    if not client.recv(12).startswith(b"HTTP/1.1 101"):
        raise RuntimeError("the gateway takes no WebSocket")
    return client


def drain(path: str, count: int) -> None:
    """A process of its own: so many clients that take what comes, until the server goes."""
    with contextlib.ExitStack() as stack:
        selector = stack.enter_context(selectors.DefaultSelector())
        for _ in range(count):
            selector.register(stack.enter_context(connected(path)), selectors.EVENT_READ)
        print("ready", flush=True)
        buffer = bytearray(1 << 18)
        while selector.get_map():
            for key, _ in selector.select():
                taken: socket.socket = key.fileobj  # type: ignore[assignment]
                if not taken.recv_into(buffer):
                    selector.unregister(taken)


async def _fan_out(path: Path, bursts: int, burst: int) -> float:
    """Deliveries for each second of this process's CPU time."""
    feed = Feed(("exec.completed",))
    calls = Calls((), None)
    gateway = Gateway(feed, (), calls.answer)

    def upgrade(head: bytes, caller: Who, wire: object) -> object:
        return gateway.upgrade(head, caller, wire)  # type: ignore[arg-type]

    app = App(calls, lambda: True, doors=[Door(PATH, upgrade=upgrade)])  # type: ignore[arg-type]
    with listen(path) as listener:
        server = Server(app, listener)
        await server.start()
        drainer = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "bench.gateway", str(path), str(CLIENTS), stdout=subprocess.PIPE
        )
        assert drainer.stdout is not None
        await drainer.stdout.readline()
        payload = {"execId": "x" * 13, "output": "y" * (EVENT_BYTES - 80)}
        began = time.process_time()
        for _ in range(bursts):
            for _ in range(burst):
                feed.publish("exec.completed", payload, run_id="x", sessions=("s",))
            await asyncio.sleep(0)
            while not all(client.flows for client in gateway.clients):  # noqa: ASYNC110 - the time is not what is measured
                await asyncio.sleep(0.001)
        took_s = time.process_time() - began
        if len(gateway.clients) != CLIENTS:
            raise RuntimeError(f"{len(gateway.clients)} of {CLIENTS} clients are left")
        await server.close()
        await drainer.wait()
    return bursts * burst * CLIENTS / took_s


def fan_out(setting: Setting) -> list[Row]:
    """One event to a hundred clients that read, from inside the daemon's loop."""
    rows: list[Row] = []
    for burst in (1, 10):
        figures: Series = [
            uvloop.run(_fan_out(setting.scratch / f"s{burst}-{place}", setting.rounds(4000, 500) // burst, burst))
            for place in range(setting.rounds(5, 2))
        ]
        what = f"deliveries of {EVENT_BYTES} bytes to {CLIENTS} clients for a CPU-second, {burst} at once"
        rows.append(Row("WS", what, "1/s", figures, at_least=300_000, of_value=True))
    return rows


async def _pairs(setting: Setting, on: Daemon, off: Daemon) -> list[Row]:
    each = setting.rounds(40, 10)
    took: dict[str, Series] = {"on": [], "off": []}
    async with on.client() as with_events, off.client() as without:
        sides = {"on": with_events, "off": without}
        for place in range(setting.rounds(30, 5) + 1):
            for name in ("on", "off") if place % 2 else ("off", "on"):
                began = time.perf_counter()
                for _ in range(each):
                    await answer(sides[name], "shell", command="echo hi")
                if place:  # the first warms both
                    took[name].append((time.perf_counter() - began) * 1000 / each)
    what = "a run that is not whitelisted, events on (limit: off)"
    return [Row("EVENTS", what, "ms", took["on"], took["off"], at_most=1.01)]


def pairs(setting: Setting) -> list[Row]:
    """Two daemons side by side, in turns."""
    off = setting.directory("off")
    (off / "config.toml").write_text("[hooks.exec]\nemitEvents = false\n")
    off.chmod(0o700)
    with Daemon(setting.directory("on") / "home") as on, Daemon(off) as without:
        return asyncio.run(_pairs(setting, on, without))


async def _stopped(setting: Setting, daemon: Daemon) -> list[Row]:
    count, rounds, size = setting.rounds(500, 50), setting.rounds(10, 3), 200_000_000
    program = setting.scratch / "codex"
    program.write_text(f"#!/bin/sh\nexec head -c {size} /dev/zero\n")
    program.chmod(0o755)
    took: dict[str, Series] = {"alone": [], "beside": []}
    rss_kb: dict[str, Series] = {"alone": [], "beside": []}
    async with daemon.client() as client:
        for _ in range(rounds):
            for name in took:
                with contextlib.ExitStack() as stack:
                    if name == "beside":
                        for _ in range(count):
                            stack.enter_context(connected(str(daemon.home / "daemon.sock")))
                    took[name].append(await _timed(client, str(program)))
                    rss_kb[name].append(_rss_kb(daemon))
    what = f"a run of {size // 1_000_000} MB, told of each ms, beside {count} clients that read nothing (limit: alone)"
    return [
        Row("F60", what, "ms", took["beside"], took["alone"], at_most=1.05),
        Row("F60", "the daemon's memory beside them (limit: alone)", "KiB", rss_kb["beside"], rss_kb["alone"]),
    ]


async def _timed(client: Caller, program: str) -> float:
    """What the run took; an error where its events are less than buffers hold, so that nobody fell behind."""
    after = 0
    while (page := await answer(client, "exec_events.recent", after=after, limit=1000))["has_more"]:
        after = page["next_after"]
    after = page["next_after"]
    began = time.perf_counter()
    await answer(client, "shell", action="spawn", background=False, command=program, max_output_bytes=1)
    took_ms = (time.perf_counter() - began) * 1000
    told = await answer(client, "exec_events.recent", after=after, limit=1000)
    if len(json.dumps(told)) < BUFFERS_BYTES:
        raise RuntimeError("the run was told of too seldom: nobody fell behind")
    return took_ms


def _rss_kb(daemon: Daemon) -> float:
    status = Path(f"/proc/{daemon.process.pid}/status").read_text()
    return float(status.split("VmRSS:")[1].split()[0])


def stopped_readers(setting: Setting) -> list[Row]:
    """The same run with nobody there, and with clients that take nothing; told of so often that they fall behind."""
    home = setting.directory("of-readers")
    (home / "config.toml").write_text("[hooks.exec]\noutputThrottleMs = 1\n")
    home.chmod(0o700)
    with Daemon(home) as daemon:
        return asyncio.run(_stopped(setting, daemon))


if __name__ == "__main__":
    os.nice(5)
    drain(sys.argv[1], int(sys.argv[2]))
