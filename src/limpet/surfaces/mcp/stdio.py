"""`limpet mcp`: serves MCP on stdin and stdout, and calls the home's daemon, which it starts when it needs one."""

import asyncio
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Mapping
from typing import Any, Final

from limpet.client.client import PATIENCE_S, AsyncClient
from limpet.dialects import ROWS
from limpet.model.errors import Refusal
from limpet.surfaces.mcp.calling import ROOM_BYTES, Answer, Calling, undressed
from limpet.surfaces.mcp.tools import Tools

_PAUSE_S: Final = 0.02


def serve(tools: str, ambient: Mapping[str, Any]) -> int:
    """Serves until stdin ends, or until it is told to go; runs go on. `ambient`: the caller's cwd and environment."""
    chosen = Tools(ROWS, tools)
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="limpet mcp: %(message)s")
    warnings.showwarning = _show_warning
    read_from, write_to = _take_standard_descriptors()
    asyncio.run(_serve(chosen, ambient, read_from, write_to))
    return 0


def _show_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
    sys.stderr.write(f"limpet: {message}\n")


def _take_standard_descriptors() -> tuple[int, int]:
    """What is printed by mistake, here or by a child, must not come between messages."""
    read_from, write_to = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return read_from, write_to


async def _serve(tools: Tools, ambient: Mapping[str, Any], read_from: int, write_to: int) -> None:
    from limpet.surfaces.mcp.server import build
    from limpet.surfaces.mcp.wire import Wire

    closing = asyncio.Event()
    wire = Wire(read_from, write_to, on_end=closing.set)
    calling = Calling(tools, DaemonBackend(ambient), closing.is_set)
    server = build(calling)
    wire.start()
    serving = asyncio.ensure_future(server.run(wire.messages, wire.answers, server.create_initialization_options()))
    writing = asyncio.ensure_future(wire.write())

    def go() -> None:
        closing.set()
        serving.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, go)
    await asyncio.wait((serving, writing), return_when=asyncio.FIRST_COMPLETED)
    closing.set()  # nobody reads any more, or nothing more is asked
    if not serving.done():
        serving.cancel()
    await asyncio.wait((serving,))
    await calling.settle()
    await asyncio.wait((writing,), timeout=1)
    writing.cancel()


class DaemonBackend:
    """Calls the home's daemon; a client is connected at the first call."""

    def __init__(self, ambient: Mapping[str, Any]) -> None:
        self._caller: Final = {**ambient, "surface": "mcp", "stays": False, "room_bytes": ROOM_BYTES}
        self._connecting: Final = asyncio.Lock()
        self._client: AsyncClient | None = None

    async def call(self, operation: str, params: Mapping[str, Any], wait: str | None = None) -> Answer:
        try:
            client = self._client or await self._connected()
            if wait is None:
                answer = await client.call_raw(operation, params, as_caller=True)
            else:
                answer = await self._wait(client, operation, params, wait)
            return undressed(answer)
        except Refusal as refusal:
            return refusal.answer()

    async def _connected(self) -> AsyncClient:
        async with self._connecting:
            if self._client is None:
                client = AsyncClient(caller=self._caller)
                await client.__aenter__()
                self._client = client
            return self._client

    async def _wait(self, client: AsyncClient, operation: str, params: Mapping[str, Any], field: str) -> Answer:
        """A wait that is lost with its daemon goes on with the next one, for what is left of its time."""
        asked_ms = params[field]
        if not isinstance(asked_ms, int) or isinstance(asked_ms, bool):
            return await client.call_raw(operation, params, as_caller=True)
        until = time.monotonic() + asked_ms / 1000
        left_ms = asked_ms
        while True:
            request = {**params, field: left_ms}
            try:
                answer = await client.call_raw(operation, request, repeat=False, as_caller=True)
            except Refusal as refusal:
                if refusal.reason != "connection_lost":
                    raise
                answer = refusal.answer()
            if answer.get("reason") not in ("connection_lost", "interrupted", "stopping"):
                return answer
            if time.monotonic() > until + PATIENCE_S:
                return answer
            await asyncio.sleep(_PAUSE_S)
            left_ms = max(0, round((until - time.monotonic()) * 1000))
