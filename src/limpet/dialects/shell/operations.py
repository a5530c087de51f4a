"""`shell`: one command string, waited for or left in the background; and runs looked at, read, typed to and ended."""

from functools import partial
from typing import Final

import msgspec

from limpet.dialects.shell.asking import ask_of, check_action
from limpet.dialects.shell.send_keys import send_keys
from limpet.dialects.shell.types import MOST_ITEMS, ItemInfo, Omitted, ShellRequest, ShellResponse
from limpet.engine import steering
from limpet.engine.engine import Engine
from limpet.engine.live_run import LiveRun
from limpet.engine.messages import hit_data
from limpet.engine.reading import read_exactly
from limpet.engine.shown import item_text, said, snippet
from limpet.model.errors import Refusal
from limpet.model.items import Item, is_hit
from limpet.model.operation import Caller, Operation
from limpet.model.plain import to_plain
from limpet.model.run import Phase
from limpet.model.status import status_of


async def shell(engine: Engine, request: ShellRequest, caller: Caller) -> ShellResponse:
    check_action(request)
    match request.action:
        case "poll":
            return _polled(engine, engine.find(request.run_id or ""), request, caller)
        case "log":
            return _page(engine, engine.find(request.run_id or ""), request, caller)
        case "kill":
            live = engine.find(request.run_id or "")
            await steering.kill(live, "SIGTERM")
            return ShellResponse(run_id=live.run.run_id, status=status_of(live.run), stopping=live.run.stopping)
        case "send_keys":
            return await send_keys(engine, request)
        case _:
            live = await engine.submit(await ask_of(engine, request, caller))
    if request.action == "spawn" and request.background:
        return _spawned(engine, live)
    if caller.stays:
        await live.wait_until(lambda run: run.is_over, None)
    if not live.run.is_over:
        # Nobody listened to output: what came since is in the answer all the same.
        live = engine.find(live.run.run_id)
    if request.action == "spawn":
        return _polled(engine, live, request, caller)
    told = _told(engine, live, request.view, caller.room_bytes)
    return told if live.run.is_over else _so_far(engine, live, told)


def _spawned(engine: Engine, live: LiveRun) -> ShellResponse:
    run = live.run
    answer = ShellResponse(run_id=run.run_id, session_id=run.session_id, status=status_of(run), next_seq=0)
    if run.phase is not Phase.QUEUED:
        return answer
    return msgspec.structs.replace(answer, waiting_for=engine.waits_for(run.run_id))


def _polled(engine: Engine, live: LiveRun, request: ShellRequest, caller: Caller) -> ShellResponse:
    """The run as it stands, what it said last, and its items behind the cursor."""
    run, page = live.run, _page(engine, live, request, caller)
    last = snippet(run, lambda name, start, end: read_exactly(run, engine.blobs, name, start, end))
    return msgspec.structs.replace(
        _spawned(engine, live),
        command=run.command,
        exit_code=run.exit_code,
        signal=run.signal,
        ended_by=run.ended_by,
        attempt=run.attempt,
        truncated=run.capped,
        error_message=run.error_message,
        created_at=run.created_at,
        started_at=run.started_at,
        finished_at=run.finished_at,
        snippet=to_plain(last) if request.view == "plain" else last,
        items=page.items,
        next_seq=page.next_seq,
        has_more=page.has_more,
    )


def _page(engine: Engine, live: LiveRun, request: ShellRequest, caller: Caller) -> ShellResponse:
    """Items behind the cursor. The next cursor moves past what the filter left out, too."""
    last_seq = live.run.last_seq
    if request.since_seq > last_seq:
        message = f"`since_seq` is beyond the end: the run has {last_seq} items so far"
        raise Refusal("invalid_argument", message, reason="cursor_ahead", field="since_seq", last_seq=last_seq)
    limit = min(request.limit, MOST_ITEMS)
    found = engine.items(live, request.since_seq, limit + 1, request.stream)
    page, has_more = found[:limit], len(found) > limit
    shown: list[ItemInfo] = []
    taken = 0
    for item in page:
        shown.append(_item(engine, live, item, request.view))
        taken += len(shown[-1].text or "")
        if caller.room_bytes is not None and taken >= caller.room_bytes and len(shown) < len(page):
            has_more = True
            break
    return ShellResponse(items=shown, next_seq=shown[-1].seq if has_more else last_seq, has_more=has_more)


def _item(engine: Engine, live: LiveRun, item: Item, view: str) -> ItemInfo:
    if is_hit(item):
        data = hit_data(live.run, item, partial(read_exactly, live.run, engine.blobs))
        return ItemInfo(seq=item.seq, ts=item.ts, kind=item.kind, event=item.event or "", data=data)
    if item.kind != "output":
        shown = ItemInfo(seq=item.seq, ts=item.ts, kind=item.kind)
        named = shown if item.event is None else msgspec.structs.replace(shown, event=item.event)
        return named if item.data is None else msgspec.structs.replace(named, data=item.data)
    text = item_text(live.run, item, lambda name, start, end: read_exactly(live.run, engine.blobs, name, start, end))
    text = to_plain(text) if view == "plain" else text
    return ItemInfo(seq=item.seq, ts=item.ts, kind=item.kind, stream=item.stream or "", text=text)


def _told(engine: Engine, live: LiveRun, view: str, room_bytes: int | None) -> ShellResponse:
    """How it ended, or how it stands, with what it said."""
    run = live.run
    started_at = run.started_at or run.finished_at or 0
    omitted: dict[str, Omitted] = {}
    texts: dict[str, str] = {}
    for name, stream in (("stdout", "pty" if run.rows is not None else "stdout"), ("stderr", "stderr")):
        text, left_out = said(run, stream, room_bytes, partial(read_exactly, run, engine.blobs, stream))
        texts[name] = to_plain(text) if view == "plain" else text
        if left_out is not None:
            omitted[stream] = Omitted(*left_out)
    finished_at = run.finished_at if run.is_over else engine.clock.now_ms()
    return ShellResponse(
        run_id=run.run_id,
        status=status_of(run),
        exit_code=run.exit_code,
        signal=run.signal,
        stdout=texts["stdout"],
        stderr=texts["stderr"],
        truncated=run.capped,
        timed_out=run.ended_by == "timeout",
        duration_ms=max(0, (finished_at or started_at) - started_at) if run.started_at else 0,
        error_message=run.error_message,
        omitted=omitted or msgspec.UNSET,
    )


def _so_far(engine: Engine, live: LiveRun, told: ShellResponse) -> ShellResponse:
    """It goes on: with the cursor behind all that is told."""
    spawned = _spawned(engine, live)
    return msgspec.structs.replace(
        told, session_id=spawned.session_id, waiting_for=spawned.waiting_for, next_seq=live.run.last_seq
    )


ROWS: Final = (
    Operation(
        name="shell",
        request=ShellRequest,
        response=ShellResponse,
        handle=shell,
        summary="Runs a shell command: waits for its result, or leaves it in the background, to be polled and read.",
        reads_only=False,
        repeatable=False,
    ),
)
