"""`runs.wait`: the first of several things to hold, for any of several runs."""

from typing import Annotated, Final, Literal

import msgspec
from msgspec import UNSET

from limpet.dialects.runs.types import RunInfo, Size, WaitMs, shown_now
from limpet.engine import reading, waiting
from limpet.engine.engine import Engine
from limpet.engine.live_run import LiveRun
from limpet.engine.shown import around, line_around, match_text
from limpet.engine.waiting import Matched, Met, Waiting
from limpet.model.errors import Refusal
from limpet.model.operation import Caller, Operation, Timeout
from limpet.model.watch import MATCH_MAX_BYTES

Unset = msgspec.UnsetType
StreamName = Literal["stdout", "stderr", "pty"]


class Condition(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One of `exit`, `regex`, `quiet_ms`, `port`, `seq` (an item behind it), `offset` (a byte behind it)."""

    exit: bool | Unset = UNSET
    regex: str | Unset = UNSET
    quiet_ms: WaitMs | Unset = UNSET
    port: Annotated[int, msgspec.Meta(ge=1, le=65535)] | Unset = UNSET
    seq: Size | Unset = UNSET
    offset: Size | Unset = UNSET
    match_type: Literal["regex", "line", "substring"] | Unset = UNSET
    stream: StreamName | Unset = UNSET


def _at_the_end() -> "list[Condition]":
    return [Condition(exit=True)]


Places = dict[str, dict[str, Size]]
"""For each run, how far each of its streams had come."""


class WaitRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"for_": "for", "from_": "from"}
):
    """Waits until one of the conditions holds for one of the runs; `from` is where an earlier wait left off.

    Output is looked through from there on, without it from its first byte on: what was said before counts.
    """

    run_ids: Annotated[list[str], msgspec.Meta(min_length=1, max_length=1000)]
    for_: Annotated[list[Condition], msgspec.Meta(min_length=1, max_length=16)] = msgspec.field(
        default_factory=_at_the_end
    )
    from_: Places = {}
    timeout_ms: WaitMs = 30_000


class Span(msgspec.Struct, frozen=True):
    """Bytes of a stream."""

    start: int
    end: int


class HitInfo(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What matched, and the line it stands on. Texts are cut at 4096 bytes, `truncated` says so; the span is true."""

    stream: str
    match: str
    span: Span
    line: str
    groups: dict[str, str | None] | Unset = UNSET
    truncated: bool = False


class WaitResponse(msgspec.Struct, frozen=True, kw_only=True, rename={"from_": "from"}):
    """Which run it was, which condition held, what matched, and where to go on."""

    run_id: str
    met: Condition
    hit: HitInfo | Unset = UNSET
    run: RunInfo
    runs: list[RunInfo]
    from_: Places


class WaitTimeout(Timeout, frozen=True, kw_only=True, rename={"from_": "from"}):
    """None held in time, or none can hold any more (`reason`: `ended`); how the runs stand, and where to go on."""

    reason: str | Unset = UNSET
    runs: list[RunInfo]
    from_: Places


async def wait(engine: Engine, request: WaitRequest, _caller: Caller) -> WaitResponse | WaitTimeout:
    conditions = [await _condition_of(engine, each, f"for[{place}]") for place, each in enumerate(request.for_)]
    lives = [engine.find(run_id) for run_id in dict.fromkeys(request.run_ids)]
    foreign = next((run_id for run_id in request.from_ if run_id not in request.run_ids), None)
    if foreign is not None:
        message = f"`from` speaks of the run {foreign}, which is not waited for: take the cursor of this wait's runs"
        raise Refusal("invalid_argument", message, reason="cursor_foreign", field="from")
    for run_id, places in request.from_.items():
        for name, offset in places.items():
            reading.check_offset(engine.find(run_id).run, name, offset)
    waited = Waiting(lives, conditions, request.from_, engine.blobs, engine.thread)
    try:
        met = await waited.first(request.timeout_ms / 1000)
    finally:
        waited.close()
    by_id = {live.run.run_id: shown_now(engine, live.run) for live in lives}
    shown = list(by_id.values())
    places = _places_behind(waited, met, lives, request.from_)
    if met is None and waited.can_come:
        return WaitTimeout(runs=shown, from_=places)
    if met is None:
        message = "the runs have ended and nothing more can come: what was waited for did not happen"
        return WaitTimeout(message=message, reason="ended", runs=shown, from_=places)
    run = met.live.run
    return WaitResponse(
        run_id=run.run_id,
        met=request.for_[met.condition],
        hit=_hit_info(engine, met.live, met.matched) if met.matched is not None else UNSET,
        run=by_id[run.run_id],
        runs=shown,
        from_=places,
    )


def _places_behind(waited: Waiting, met: Met | None, lives: list[LiveRun], began: Places) -> Places:
    """Behind what was told, or looked through in vain; what nobody looked through stays to be looked through."""
    places: Places = {}
    for live in lives:
        run_id = live.run.run_id
        asked = began.get(run_id, {})
        looked = waited.looked(live) if met is None or met.matched is None else {}
        places[run_id] = {
            name: looked.get(name, asked.get(name, stream.first_kept)) for name, stream in live.run.streams.items()
        }
    if met is not None and met.matched is not None:
        places[met.live.run.run_id][met.matched.stream] = met.matched.hit.end
    return places


async def _condition_of(engine: Engine, asked: Condition, field: str) -> waiting.Condition:
    kinds = ("exit", "regex", "quiet_ms", "port", "seq", "offset")
    given = [name for name in kinds if getattr(asked, name) is not UNSET]
    if len(given) != 1:
        what = (
            f"`{field}`: {' and '.join(given)} do not go together" if given else f"`{field}` says nothing to wait for"
        )
        raise Refusal("invalid_argument", f"{what}: give one of {', '.join(kinds)}", field=field)
    if asked.stream is not UNSET and given[0] not in ("regex", "offset"):
        raise Refusal("invalid_argument", f"`{field}.stream` does not go with {given[0]}", field=f"{field}.stream")
    if asked.match_type is not UNSET and given[0] != "regex":
        message = f"`{field}.match_type` does not go with {given[0]}"
        raise Refusal("invalid_argument", message, field=f"{field}.match_type")
    stream = None if asked.stream is UNSET else asked.stream
    if asked.regex is not UNSET:
        match_type = "regex" if asked.match_type is UNSET else asked.match_type
        return waiting.Match(await engine.compile(asked.regex, match_type, f"{field}.regex"), stream)
    if asked.quiet_ms is not UNSET:
        return waiting.Quiet(asked.quiet_ms)
    if asked.port is not UNSET:
        return waiting.Port(asked.port)
    if asked.seq is not UNSET:
        return waiting.Beyond(None, asked.seq)
    if asked.offset is not UNSET:
        return waiting.Beyond(stream or "stdout", asked.offset)
    if not asked.exit:
        raise Refusal("invalid_argument", f"`{field}`: `exit` can only be true", field=f"{field}.exit")
    return waiting.Exit()


def _hit_info(engine: Engine, live: LiveRun, matched: Matched) -> HitInfo:
    hit, run = matched.hit, live.run

    def read_anew(name: str, start: int, end: int) -> bytes:
        return reading.read_exactly(run, engine.blobs, name, start, end)

    read = around(run, matched.stream, hit.start, hit.end, read_anew)
    line = line_around(run, matched.stream, hit.start, hit.end, read)
    text = read(matched.stream, hit.start, min(hit.end, hit.start + MATCH_MAX_BYTES))
    match, is_cut = match_text(text, hit.end - hit.start)
    return HitInfo(
        stream=matched.stream,
        match=match,
        span=Span(hit.start, hit.end),
        line=line.text,
        groups=hit.groups or UNSET,
        truncated=is_cut or line.is_cut,
    )


ROWS: Final = (
    Operation(
        name="runs.wait",
        request=WaitRequest,
        response=WaitResponse,
        handle=wait,
        summary="Waits for the first of several things to hold for any of several runs: an end, output, quiet, a port.",
        reads_only=True,
        repeatable=True,
    ),
)
