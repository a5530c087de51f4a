"""The composition root: an engine, the rows, and the surfaces that lead to them."""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

from limpet.client.client import as_error
from limpet.client.home import find_home
from limpet.client.methods.inherited import AsyncMethods
from limpet.dialects import ROWS
from limpet.dialects.exec_events.events import ExecEvents
from limpet.engine.engine import Engine
from limpet.engine.sinks import ExecEventSink
from limpet.model.errors import Refusal
from limpet.model.operation import Caller, answer_of, convert
from limpet.surfaces.http.app import App
from limpet.surfaces.http.calls import Calls
from limpet.surfaces.http.doors import CALLER, Door
from limpet.surfaces.http.metrics import measures_of
from limpet.surfaces.http.serve import listen
from limpet.surfaces.http.serve import serve as serve_http
from limpet.surfaces.http.tcp import listen_tcp, url_of
from limpet.surfaces.http.token import token_of
from limpet.surfaces.mcp.http import MCP_METHODS, MCP_PATH, McpOverHttp
from limpet.surfaces.ws.gateway import PATH, Gateway


class InProcess(AsyncMethods):
    """The same operations as a client of the daemon has, on an engine in this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine: Final = engine
        self._rows: Final = {row.name: row for row in ROWS}

    async def call(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """The answer, failures too."""
        return await self.call_raw(operation, params)

    async def call_checked(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """The answer. A failure raises `limpet.LimpetError`; a wait's timeout is an answer, with `ok: false`."""
        answer = await self.call_raw(operation, params)
        if not answer["ok"] and answer["error"] != "timeout":
            raise as_error(answer)
        return answer

    async def call_raw(self, operation: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer as it is, failures too."""
        row = self._rows.get(operation)
        if row is None:
            return Refusal("not_found", f"there is no operation {operation[:80]!r}").answer()
        caller = Caller("python", str(Path.cwd()), dict(os.environ))
        try:
            return answer_of(await row.handle(self.engine, convert(row, params or {}), caller))
        except Refusal as refusal:
            return refusal.answer()


@asynccontextmanager
async def open(  # noqa: A001
    home: str | os.PathLike[str] | None = None, *, sinks: Sequence[ExecEventSink] = ()
) -> AsyncGenerator[InProcess]:
    """An engine of one's own: `async with limpet.open(home) as engine`. The home must not be held by a daemon.

    Each of the `sinks` is told of what runs do, in a thread of its own.
    """
    async with Engine(Path(find_home(home)), sinks=sinks) as engine, ExecEvents(engine):
        yield InProcess(engine)


def serve(
    *,
    home: str | os.PathLike[str] | None = None,
    ready_json: bool = False,
    host: str | None = None,
    port: int | None = None,
    allow_remote: bool = False,
) -> int:
    """Runs the daemon of a home in the foreground until it is told to stop; its exit code. A refusal says why not.

    It listens on TCP when a `host` or a `port` is given here or a port in the configuration (`http.port`).
    """
    _log_to_stderr()
    run = asyncio.run
    if sys.platform in ("linux", "darwin"):
        import uvloop

        run = uvloop.run
    run(_serve(Path(find_home(home)), ready_json=ready_json, host=host, port=port, allow_remote=allow_remote))
    return 0


def _log_to_stderr() -> None:
    """One line a record; a daemon that was started by a command has its stderr in `daemon.log`."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    log = logging.getLogger("limpet")
    log.addHandler(handler)
    log.setLevel(logging.INFO)


async def _serve(home: Path, *, ready_json: bool, host: str | None, port: int | None, allow_remote: bool) -> None:
    async with AsyncExitStack() as stack:
        engine = await stack.enter_async_context(Engine(home))
        await stack.enter_async_context(ExecEvents(engine))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, engine.stop_asked.set)
        http = engine.config.http
        listeners: list[socket.socket] = []
        token = None
        if host is not None or port is not None or http.port is not None:
            token = token_of(engine.home.token)
            named = host if host is not None else http.host
            asked = port if port is not None else http.port or 0
            listeners.append(
                stack.enter_context(listen_tcp(named, asked, allow_remote=allow_remote or http.allow_remote))
            )
            engine.url = url_of(listeners[0], named)
        listeners.append(stack.enter_context(listen(engine.home.socket)))
        stack.callback(engine.home.socket.unlink, missing_ok=True)
        app = _application(engine, token)
        serving = asyncio.ensure_future(
            serve_http(app, *listeners, stop=engine.stop_asked, max_remote=http.max_connections)
        )
        _announce(engine, ready_json=ready_json)
        await serving


def _application(engine: Engine, token: str | None) -> App:
    """Every surface that leads in over a socket, behind one gate."""
    calls = Calls(ROWS, engine)
    gateway = Gateway(engine.feed, calls.rows, calls.answer)
    mcp = McpOverHttp(ROWS, calls.answer, engine.stop_asked, CALLER)
    doors = [Door(PATH, upgrade=gateway.upgrade), Door(MCP_PATH, MCP_METHODS, serve=mcp)]
    http = engine.config.http
    return App(
        calls,
        lambda: True,
        measures=lambda: measures_of(engine),
        doors=doors,
        token=token,
        hosts=http.hosts,
        origins=http.origins,
    )


def _announce(engine: Engine, *, ready_json: bool) -> None:
    home, socket = str(engine.home.path), str(engine.home.socket)
    if ready_json:
        said = {"event": "ready", "pid": os.getpid(), "socket": socket, "url": engine.url, "home": home}
        line = json.dumps(said)
    else:
        place = home if engine.url is None else f"{home} and {engine.url}"
        line = f"limpet serves {place} (pid {os.getpid()}); stop it with Ctrl-C or `limpet stop`: runs go on"
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    if ready_json:
        os.dup2(2, 1)  # whoever waited for that line may be gone: what else is said goes to the log
