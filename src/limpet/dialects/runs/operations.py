"""The handlers and rows of `runs.*`."""

import asyncio
import base64
import binascii
import functools
from typing import Final

import msgspec

from limpet.dialects.runs import types
from limpet.dialects.runs.types import shown_now
from limpet.engine import clock, reading, steering
from limpet.engine.engine import Engine
from limpet.engine.live_run import LiveRun
from limpet.model.errors import Refusal
from limpet.model.ids import check_id, check_made_id
from limpet.model.operation import Caller, Operation
from limpet.model.run import Run
from limpet.model.signals import check_signal
from limpet.store.runs import RunFilter


async def list_runs(engine: Engine, request: types.ListRequest, _caller: Caller) -> types.ListResponse:
    if request.session_id is not None:
        check_id("session_id", request.session_id)
    if request.cursor is not None:
        check_made_id("cursor", request.cursor)
    found = await engine.list(
        RunFilter(
            session_id=request.session_id,
            status=request.status,
            dialect=request.dialect,
            label=request.label,
            text=request.text,
            before=request.cursor,
            limit=request.limit + 1,
        )
    )
    page = found[: request.limit]
    has_more = len(found) > request.limit
    next_cursor = page[-1].run_id if has_more else None
    return types.ListResponse(runs=[shown_now(engine, run) for run in page], next_cursor=next_cursor, has_more=has_more)


async def get_run(engine: Engine, request: types.GetRequest, _caller: Caller) -> types.GetResponse:
    run = engine.find(request.run_id).run
    shown = msgspec.structs.asdict(shown_now(engine, run))
    asked = {name: getattr(run, name) for name in ("argv", "env", "key", "timeout_ms", "limits")}
    return types.GetResponse(**shown, **asked)


async def read(engine: Engine, request: types.ReadRequest, _caller: Caller) -> types.ReadResponse:
    live = engine.find(request.run_id)
    ways = [name for name in ("offset", "last_bytes", "last_lines") if getattr(request, name) is not None]
    if len(ways) > 1:
        raise Refusal("invalid_argument", f"`{ways[1]}` cannot go with `{ways[0]}`: give one of them", field=ways[1])
    stream = request.stream or ("pty" if live.run.rows is not None else "stdout")
    if request.last_bytes is not None:
        offset = reading.last_bytes_offset(live.run, engine.blobs, stream, request.last_bytes, request.encoding)
    elif request.last_lines is not None:
        offset = await asyncio.to_thread(reading.last_lines_offset, live.run, engine.blobs, stream, request.last_lines)
    else:
        offset = request.offset or 0
    if request.view == "terminal" and (stream != "pty" or request.encoding != "base64"):
        message = '`view`: "terminal" is for the bytes of a terminal: with stream "pty" and encoding "base64"'
        raise Refusal("invalid_argument", message, field="view")
    reading.check_offset(live.run, stream, offset)
    page = await _page(engine, live, request, stream, offset)
    return types.ReadResponse(run_id=live.run.run_id, stream=stream, **msgspec.structs.asdict(page))


async def _page(engine: Engine, live: LiveRun, request: types.ReadRequest, stream: str, offset: int) -> reading.Range:
    """The page, once there is something to show; half a character is nothing yet."""
    deadline = clock.passed_s() + request.wait_ms / 1000
    seen = offset
    while True:
        if request.wait_ms:
            left_s = deadline - clock.passed_s()
            await live.wait_until(functools.partial(_has_more, name=stream, offset=seen), left_s, output=True)
        page = reading.read_range(
            live.run, engine.blobs, stream, offset, request.max_bytes, request.encoding, view=request.view
        )
        if page.next_offset > offset or page.eof or clock.passed_s() >= deadline:
            return page
        seen = page.total_bytes


def _has_more(run: Run, *, name: str, offset: int) -> bool:
    stream = reading.stream_of(run, name)
    return stream.bytes > offset or not stream.open


async def kill(engine: Engine, request: types.KillRequest, _caller: Caller) -> types.KillResponse:
    live = engine.find(request.run_id)
    await steering.kill(live, check_signal("signal", request.signal))
    shown = shown_now(engine, live.run)
    return types.KillResponse(run_id=shown.run_id, status=shown.status, stopping=shown.stopping)


async def send_signal(engine: Engine, request: types.SignalRequest, _caller: Caller) -> types.SignalResponse:
    signal_name = check_signal("signal", request.signal)
    sent = await steering.send_signal(engine.find(request.run_id), signal_name)
    return types.SignalResponse(run_id=request.run_id, sent=sent)


async def write(engine: Engine, request: types.WriteRequest, _caller: Caller) -> types.WriteResponse:
    if request.text is not None and request.data_base64 is not None:
        raise Refusal("invalid_argument", "`data_base64` cannot go with `text`: give one of them", field="data_base64")
    if request.text is None and request.data_base64 is None and not request.close:
        raise Refusal("invalid_argument", "`text` is missing: give `text`, `data_base64` or `close`", field="text")
    data = (request.text or "").encode()
    if request.data_base64 is not None:
        try:
            data = base64.b64decode(request.data_base64, validate=True)
        except (binascii.Error, ValueError):
            raise Refusal("invalid_argument", "`data_base64` must be base64", field="data_base64") from None
    once = steering.Once.of(request.key, b"%d %b" % (request.close, data), secret=request.secret)
    live = engine.find(request.run_id)
    written = await steering.write(live, data, close=request.close, secret=request.secret, once=once)
    return types.WriteResponse(run_id=request.run_id, written=written)


ROWS: Final = (
    Operation(
        name="runs.list",
        request=types.ListRequest,
        response=types.ListResponse,
        handle=list_runs,
        summary="Lists runs, the newest first, narrowed by session, status, dialect, label or command text.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="runs.get",
        request=types.GetRequest,
        response=types.GetResponse,
        handle=get_run,
        summary="Tells all that is known of one run.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="runs.read",
        request=types.ReadRequest,
        response=types.ReadResponse,
        handle=read,
        summary="Reads a range of a run's output by offset, or its end; can wait for more to come.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="runs.kill",
        request=types.KillRequest,
        response=types.KillResponse,
        handle=kill,
        summary="Ends a run with every process of it: the signal, a grace, then a kill that nothing escapes.",
        reads_only=False,
        repeatable=True,
    ),
    Operation(
        name="runs.signal",
        request=types.SignalRequest,
        response=types.SignalResponse,
        handle=send_signal,
        summary="Sends one signal to what a run does now, and nothing more.",
        reads_only=False,
        repeatable=False,
    ),
    Operation(
        name="runs.write",
        request=types.WriteRequest,
        response=types.WriteResponse,
        handle=write,
        summary="Writes input to a run with an open stdin or a terminal.",
        reads_only=False,
        repeatable=False,
    ),
)
