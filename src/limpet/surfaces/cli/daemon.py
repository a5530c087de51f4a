"""`limpet serve`, `status`, `stop` and `restart`: the daemon itself."""

import asyncio
import os
import select
import socket
import struct
import sys
from importlib import import_module
from typing import Any, Final

from limpet.client.client import AsyncClient
from limpet.client.home import find_home, socket_of
from limpet.client.start import is_listening, start
from limpet.model.errors import Refusal
from limpet.model.version import VERSION
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.say import note, say_json, visible
from limpet.surfaces.cli.wait import ended

_PEER: Final = struct.Struct("3i")
_PORT_MAX: Final = 65_535
_GONE_S: Final = 30.0
_ANSWER_S: Final = 10.0


def serve(
    *, ready_json: bool, home: str | None, host: str | None, port: str | None, allow_remote: bool, detach: bool
) -> int:
    """Is the daemon until it is told to stop. One that has detached tells its starter when it cannot."""
    if port is not None and not (port.isascii() and port.isdigit() and int(port) <= _PORT_MAX):
        note(f"`--port`: {port!r} is no port: give a number up to {_PORT_MAX}, 0 for a free one")
        return 2
    try:
        daemon: Any = import_module("limpet.daemon")  # by name: it stands above the surfaces
        number = None if port is None else int(port)
        asked = {"host": host, "port": number, "allow_remote": allow_remote}
        return int(daemon.serve(home=find_home(home), ready_json=ready_json, **asked))
    except Refusal as refusal:
        if detach:
            say_json({"event": "failed", **refusal.answer()})
        raise


def status(*, as_json: bool) -> int:
    """Exit code 1 when none runs; starts nothing."""
    home = find_home()
    if not is_listening(socket_of(home)):
        if as_json:
            say_json({"ok": True, "running": False, "home": home, "version": None})
        else:
            print(f"no daemon runs for {visible(home)}; commands start one when they need it")
        return 1
    told = with_client(_told_soon, start=False)
    if as_json:
        say_json({**told, "running": True})
        return 0
    runs: dict[str, int] = told.get("runs", {})
    print(f"limpet {told['version']}, pid {told['pid']}, up {told['uptime_ms'] // 1000} s")
    if told.get("url") is not None:
        print(f"url {visible(str(told['url']))}")
    print(f"home {visible(str(told['home']))}, {runs.get('running', 0)} runs going on, {runs.get('total', 0)} kept")
    return 0


def stop(*, kill_runs: bool, as_json: bool) -> int:
    """Returns when its process is gone. Without a daemon there is nothing to stop, only runs to end."""
    home = find_home()
    path = socket_of(home)
    if not is_listening(path):
        if not kill_runs or not os.path.isdir(f"{home}/runs"):  # noqa: PTH112
            return _stopped(home, None, as_json=as_json)
        asyncio.run(start(home))  # what runs without a daemon can be ended by one only
    if kill_runs:
        with_client(_end_all, start=False)
    return _stopped(home, _stop(path), as_json=as_json)


def restart(*, as_json: bool) -> int:
    """A daemon of this version; runs do not notice. One that could not start anew is not stopped."""
    from pathlib import Path

    from limpet.config import Config

    home = find_home()
    Config.load(Path(home) / "config.toml")
    _stop(socket_of(home))
    told = with_client(_told)
    if as_json:
        say_json({**told, "running": True})
    else:
        print(f"limpet {told['version']}, pid {told['pid']}")
    if told["version"] != VERSION:
        note(f"the daemon is limpet {told['version']}, this is {VERSION}")
        return 1
    return 0


async def _told(client: AsyncClient) -> dict[str, Any]:
    return succeeded(await client.call_raw("daemon.status"))


async def _told_soon(client: AsyncClient) -> dict[str, Any]:
    try:
        return await asyncio.wait_for(_told(client), _ANSWER_S)
    except TimeoutError:
        raise Refusal("unavailable", f"a daemon listens in {client.home}, but does not answer", reason="hung") from None


async def _end_all(client: AsyncClient) -> None:
    """Also the runs that begin meanwhile."""
    while True:
        listed = [
            run
            for state in ("queued", "running")
            for run in succeeded(await client.call_raw("runs.list", {"status": state, "limit": 1000}))["runs"]
        ]
        if not listed:
            return
        for run in listed:
            await client.call_raw("runs.kill", {"run_id": run["run_id"]})
        await asyncio.gather(*(ended(client, run["run_id"]) for run in listed))


def _stopped(home: str, pid: int | None, *, as_json: bool) -> int:
    if as_json:
        say_json({"ok": True, "running": False, "home": home, "stopped_pid": pid})
    elif pid is None:
        print(f"no daemon runs for {visible(home)}")
    else:
        print(f"stopped, pid {pid}")
    sys.stdout.flush()
    return 0


def _stop(path: str) -> int | None:
    """Ends whoever listens there and waits until its process is gone; None if nobody did."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except (FileNotFoundError, ConnectionError):
            return None
        pid, _, _ = _PEER.unpack(probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size))
        process = os.pidfd_open(pid)  # while it holds our connection, the pid can be nobody else's
    try:
        with_client(_ask_to_stop, start=False)
        if not select.select([process], [], [], _GONE_S)[0]:
            raise Refusal("unavailable", f"the daemon (pid {pid}) has not stopped within {_GONE_S:g} s")
    finally:
        os.close(process)
    return pid


async def _ask_to_stop(client: AsyncClient) -> None:
    try:
        succeeded(await asyncio.wait_for(client.call_raw("daemon.stop", repeat=False), _ANSWER_S))
    except TimeoutError:
        message = f"the daemon of {client.home} does not answer: end it with `kill -KILL`, runs go on"
        raise Refusal("unavailable", message, reason="hung") from None
