"""What watchers, waits, searches and sinks tell of a match: the names that 1.8 and 0.11 leave open stand here alone."""

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from .home import Answer
from .items import all_items, events
from .surface import Surface

# A watcher's event item carries these (1.8); a wait's answer carries them under WAIT_HIT.
HIT_FIELDS = {"match", "span", "stream", "line"}
WAIT_HIT = "hit"
GROUPS = "groups"
SUPPRESSED = "watch_suppressed"
# Said where bytes were gone before they could be watched: their stream, start and end.
MISSED = "watch_missed"
TEXT_MAX_BYTES = 4096


class Hit(NamedTuple):
    """Where a match is, in bytes of the spool, and what it is."""

    start: int
    end: int
    match: str


def watch(regex: str, event: str = "hit", **params: Any) -> Answer:
    return {"regex": regex, "event": event, **params}


def hit_of(data: Answer) -> Hit:
    assert set(data) >= HIT_FIELDS, data
    assert set(data["span"]) == {"start", "end"}, data
    assert data["stream"] in ("stdout", "stderr", "pty"), data
    return Hit(data["span"]["start"], data["span"]["end"], data["match"])


def hits(surface: Surface, run_id: str, event: str = "hit", stream: str = "stdout") -> list[Hit]:
    """What a watcher found in one stream, in the order of the items."""
    told = events(all_items(surface, run_id), event)
    return [hit_of(data) for data in told if data["stream"] == stream]


def groups_of(data: Answer) -> dict[str, str | None]:
    """The groups of a match by line, under their numbers and their names."""
    groups: dict[str, str | None] = data[GROUPS]
    return groups


def said_cut(data: Answer) -> bool:
    """Does it say that a text in it was cut, whatever the field's whole name?"""
    return any(value is True for name, value in data.items() if "truncated" in name or "cut" in name)


def wait_params(
    run_ids: Sequence[str], *conditions: Answer, timeout_ms: int = 60_000, since: Answer | None = None
) -> Answer:
    """`since` is an earlier answer's `from`."""
    params: Answer = {"run_ids": list(run_ids), "for": list(conditions), "timeout_ms": timeout_ms}
    return params if since is None else {**params, "from": since}


def wait(surface: Surface, run_ids: Sequence[str], *conditions: Answer, **params: Any) -> Answer:
    """Waits until a condition holds; the answer says of which run, and which of the conditions."""
    answer = surface.ok("runs.wait", wait_params(run_ids, *conditions, **params))
    assert answer["run_id"] in run_ids, answer
    assert answer["met"] in conditions, answer
    return answer


def waited(answer: Answer) -> Hit:
    return hit_of(answer[WAIT_HIT])


def timed_out(
    surface: Surface, run_ids: Sequence[str], *conditions: Answer, timeout_ms: int = 100, **params: Any
) -> Answer:
    """None of the conditions holds within that time; the answer has the cursor to go on from."""
    answer = surface.refused("runs.wait", wait_params(run_ids, *conditions, timeout_ms=timeout_ms, **params), "timeout")
    assert set(answer["from"]) >= set(run_ids), answer
    return answer


def chain(surface: Surface, run_id: str, condition: Answer, since: Answer | None = None) -> Iterator[tuple[str, Hit]]:
    """Every hit in a run that is over: each call goes on from the last one's answer, until only the end is left."""
    while True:
        answer = wait(surface, [run_id], condition, {"exit": True}, since=since)
        if answer["met"] == {"exit": True}:
            return
        yield answer[WAIT_HIT]["stream"], waited(answer)
        assert since != answer["from"], answer
        since = answer["from"]


def feed(surface: Surface, run_id: str, pieces: Sequence[bytes], *, stream: str = "stdout", close: bool = True) -> None:
    """Gives a `cat` its input piece by piece, each once the one before it has come out again; then the end."""
    at = surface.read(run_id, stream)["total_bytes"]
    for piece in pieces:
        surface.ok("runs.write", {"run_id": run_id, "data_base64": base64.b64encode(piece).decode()})
        reached, at = at, at + len(piece)
        while reached < at:
            page = surface.read(run_id, stream, reached, encoding="base64", wait_ms=60_000)
            assert page["next_offset"] > reached, page
            reached = page["next_offset"]
    if close:
        surface.ok("runs.write", {"run_id": run_id, "text": "", "close": True})


def names(refusal: Answer, *fields: str) -> bool:
    """Does a refusal name one of these fields?"""
    return any(field in json.dumps(refusal) for field in fields)
