"""`shell`: one command string, waited for or left in the background; and runs looked at, read, typed to and ended."""

from functools import partial
from typing import Final

import msgspec

from limpet.dialects.shell.asking import ask_of, check_action
from limpet.dialects.shell.send_keys import send_keys
from limpet.dialects.shell.types import MOST_ITEMS, ItemInfo, ShellRequest, ShellResponse
from limpet.engine import steering
from limpet.engine.engine import Engine
from limpet.engine.live_run import LiveRun
from limpet.engine.messages import hit_data
from limpet.engine.reading import read_exactly
from limpet.engine.shown import item_text, snippet
from limpet.model.characters import whole_characters
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
            return _polled(engine, engine.find(request.run_id or ""), request)
        case "log":
            return _page(engine, engine.find(request.run_id or ""), request)
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
    await live.wait_until(lambda run: run.is_over, None)
    return _polled(engine, live, request) if request.action == "spawn" else _finished(engine, live, request.view)


def _spawned(engine: Engine, live: LiveRun) -> ShellResponse:
    run = live.run
    answer = ShellResponse(run_id=run.run_id, session_id=run.session_id, status=status_of(run), next_seq=0)
    if run.phase is not Phase.QUEUED:
        return answer
    return msgspec.structs.replace(answer, waiting_for=engine.waits_for(run.run_id))


def _polled(engine: Engine, live: LiveRun, request: ShellRequest) -> ShellResponse:
    """The run as it stands, what it said last, and its items behind the cursor."""
    run, page = live.run, _page(engine, live, request)
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


def _page(engine: Engine, live: LiveRun, request: ShellRequest) -> ShellResponse:
    """Items behind the cursor. The next cursor moves past what the filter left out, too."""
    last_seq = live.run.last_seq
    if request.since_seq > last_seq:
        message = f"`since_seq` is beyond the end: the run has {last_seq} items so far"
        raise Refusal("invalid_argument", message, reason="cursor_ahead", field="since_seq", last_seq=last_seq)
    limit = min(request.limit, MOST_ITEMS)
    found = engine.items(live, request.since_seq, limit + 1, request.stream)
    page, has_more = found[:limit], len(found) > limit
    return ShellResponse(
        items=[_item(engine, live, item, request.view) for item in page],
        next_seq=page[-1].seq if has_more else last_seq,
        has_more=has_more,
    )


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


def _finished(engine: Engine, live: LiveRun, view: str) -> ShellResponse:
    run = live.run
    started_at = run.started_at or run.finished_at or 0
    said, complained = _head(engine, live, "pty" if run.rows is not None else "stdout"), _head(engine, live, "stderr")
    return ShellResponse(
        run_id=run.run_id,
        status=status_of(run),
        exit_code=run.exit_code,
        signal=run.signal,
        stdout=to_plain(said) if view == "plain" else said,
        stderr=to_plain(complained) if view == "plain" else complained,
        truncated=run.capped,
        timed_out=run.ended_by == "timeout",
        duration_ms=max(0, (run.finished_at or started_at) - started_at),
        error_message=run.error_message,
    )


def _head(engine: Engine, live: LiveRun, name: str) -> str:
    """What came first of a stream, up to the run's `max_output_bytes` over all of them."""
    stream = live.run.streams.get(name)
    if stream is None:
        return ""
    data = read_exactly(live.run, engine.blobs, name, 0, stream.kept_up_to(0, stream.head_end))
    end = stream.bytes if stream.ended_at is None else stream.ended_at
    return (whole_characters(data) if stream.head_end < end else data).decode("utf-8", errors="replace")


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
