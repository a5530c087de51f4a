"""The composition root: an engine, the rows, and the surfaces that lead to them."""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from limpet.client.client import as_error
from limpet.client.home import find_home
from limpet.client.methods.inherited import AsyncMethods
from limpet.dialects import ROWS
from limpet.engine.engine import Engine
from limpet.engine.sinks import ExecEventSink
from limpet.model.errors import Refusal
from limpet.model.operation import Caller, answer_of, convert
from limpet.surfaces.http.app import build
from limpet.surfaces.http.serve import listen
from limpet.surfaces.http.serve import serve as serve_http


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
    async with Engine(Path(find_home(home)), sinks=sinks) as engine:
        yield InProcess(engine)


def serve(*, home: str | os.PathLike[str] | None = None, ready_json: bool = False) -> int:
    """Runs the daemon of a home in the foreground until it is told to stop; its exit code. A refusal says why not."""
    _log_to_stderr()
    run = asyncio.run
    if sys.platform in ("linux", "darwin"):
        import uvloop

        run = uvloop.run
    run(_serve(Path(find_home(home)), ready_json=ready_json))
    return 0


def _log_to_stderr() -> None:
    """One line a record; a daemon that was started by a command has its stderr in `daemon.log`."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    log = logging.getLogger("limpet")
    log.addHandler(handler)
    log.setLevel(logging.INFO)


async def _serve(home: Path, *, ready_json: bool) -> None:
    async with Engine(home) as engine:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, engine.stop_asked.set)
        listener = listen(engine.home.socket)
        try:
            app = build(ROWS, engine)
            serving = asyncio.ensure_future(serve_http(app, listener, stop=engine.stop_asked))
            _announce(engine, ready_json=ready_json)
            await serving
        finally:
            engine.home.socket.unlink(missing_ok=True)
            listener.close()


def _announce(engine: Engine, *, ready_json: bool) -> None:
    home, socket = str(engine.home.path), str(engine.home.socket)
    if ready_json:
        line = json.dumps({"event": "ready", "pid": os.getpid(), "socket": socket, "url": None, "home": home})
    else:
        line = f"limpet serves {home} (pid {os.getpid()}); stop it with Ctrl-C or `limpet stop`: runs go on"
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
    if ready_json:
        os.dup2(2, 1)  # whoever waited for that line may be gone: what else is said goes to the log
