"""`runs.snapshot`, `runs.resize`, and what a terminal needs that somebody attaches: `runs.attend`, `runs.answer`."""

import base64
import binascii
from typing import Final

import msgspec

from limpet.dialects.runs import types
from limpet.engine import steering
from limpet.engine.engine import Engine
from limpet.model.errors import Refusal
from limpet.model.ids import check_id
from limpet.model.operation import Caller, Operation


async def snapshot(engine: Engine, request: types.SnapshotRequest, _caller: Caller) -> types.Snapshot:
    live = engine.find(request.run_id)
    shown, end = await engine.screens.look(live, request.format, request.replay_bytes)
    return types.Snapshot(**msgspec.structs.asdict(shown), run_id=live.run.run_id, total_bytes=end)


async def resize(engine: Engine, request: types.ResizeRequest, _caller: Caller) -> types.ResizeResponse:
    live = engine.find(request.run_id)
    await steering.resize(live, request.rows, request.cols)
    return types.ResizeResponse(run_id=live.run.run_id)


async def attend(engine: Engine, request: types.AttendRequest, _caller: Caller) -> types.AttendResponse:
    live, attendance = engine.find(request.run_id), engine.answering.attendance
    check_id("terminal", request.terminal)
    if live.run.rows is None:
        raise Refusal("conflict", f"the run {live.run.run_id} has no terminal: it was started without `pty`")
    run_id = live.run.run_id
    with attendance.of(run_id, request.terminal):
        was_first = attendance.is_first(run_id, request.terminal)
        await live.wait_until(
            lambda run: run.is_over or attendance.is_first(run_id, request.terminal) != was_first,
            request.wait_ms / 1000,
        )
        return types.AttendResponse(
            run_id=run_id, answers=attendance.is_first(run_id, request.terminal), terminals=attendance.count(run_id)
        )


async def answer(engine: Engine, request: types.AnswerRequest, _caller: Caller) -> types.AnswerResponse:
    live = engine.find(request.run_id)
    try:
        data = base64.b64decode(request.data_base64, validate=True)
    except binascii.Error:
        raise Refusal("invalid_argument", "`data_base64`: not base64", field="data_base64") from None
    return types.AnswerResponse(run_id=live.run.run_id, typed=await steering.answer(live, data))


ROWS: Final = (
    Operation(
        name="runs.snapshot",
        request=types.SnapshotRequest,
        response=types.Snapshot,
        handle=snapshot,
        summary="Shows what stands on the screen of a run's terminal, as a person would see it.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="runs.resize",
        request=types.ResizeRequest,
        response=types.ResizeResponse,
        handle=resize,
        summary="Tells a run's terminal its size.",
        reads_only=False,
        repeatable=True,
    ),
    Operation(
        name="runs.attend",
        request=types.AttendRequest,
        response=types.AttendResponse,
        handle=attend,
        summary="Says, for as long as it waits, that a terminal looks at a run; whether that one answers for it.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="runs.answer",
        request=types.AnswerRequest,
        response=types.AnswerResponse,
        handle=answer,
        summary="Answers a program that asked the terminal, if it still can be.",
        reads_only=False,
        repeatable=False,
    ),
)
