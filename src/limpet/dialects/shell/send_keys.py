"""`shell` with action `send_keys`: text and keys, typed into a run's terminal."""

import asyncio

import msgspec

from limpet.dialects.shell.types import ShellRequest, ShellResponse
from limpet.engine import steering
from limpet.engine.cursor_mode import is_application_cursor
from limpet.engine.engine import Engine
from limpet.model.errors import Refusal
from limpet.model.keys import encode_keys
from limpet.model.status import status_of


async def send_keys(engine: Engine, request: ShellRequest) -> ShellResponse:
    """The text first, then the keys; answers once the terminal has taken all of it."""
    if request.text is None and not request.keys:
        raise Refusal("invalid_argument", "`keys` is missing: say which keys to send, or `text`", field="keys")
    live = engine.find(request.run_id or "")
    if live.run.rows is None:
        message = f"the run {live.run.run_id} has no terminal: start it with `pty`, or write to its stdin (runs.write)"
        raise Refusal("conflict", message, reason="no_terminal")
    asked = msgspec.json.encode([request.text, request.keys])
    once = steering.Once.of(request.key, b"keys " + asked, secret=request.secret)
    # Most keys are the same in either mode; only for the others is it worth looking.
    typed = encode_keys(request.keys, application_cursor=False)
    if typed != encode_keys(request.keys, application_cursor=True) and await asyncio.to_thread(
        is_application_cursor, live.run, engine.blobs
    ):
        typed = encode_keys(request.keys, application_cursor=True)
    data = (request.text or "").encode() + typed
    written = await steering.write(live, data, close=False, secret=request.secret, once=once)
    return ShellResponse(run_id=live.run.run_id, status=status_of(live.run), written=written)
