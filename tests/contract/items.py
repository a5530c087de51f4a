"""What the shell dialect shows of a run: its items page by page, checked for the form that 1.4 gives them."""

import json
from collections.abc import Sequence
from typing import Any

from .home import Answer
from .surface import Surface

CHUNK_MAX_CHARS = 8192
SNIPPET_MAX_CHARS = 2000
LIMIT_MAX = 1000

ITEM_FIELDS = {"seq", "ts", "kind", "stream", "text", "event", "data"}


def poll(surface: Surface, run_id: str, **params: Any) -> Answer:
    return surface.ok("shell", {"action": "poll", "run_id": run_id, **params})


def log(surface: Surface, run_id: str, **params: Any) -> Answer:
    return surface.ok("shell", {"action": "log", "run_id": run_id, **params})


def checked_items(items: Sequence[Answer]) -> list[Answer]:
    for item in items:
        assert set(item) <= ITEM_FIELDS, item
        assert type(item["seq"]) is int, item
        assert type(item["ts"]) is int, item
        assert item["kind"] in ("output", "status", "event"), item
        if item["kind"] == "output":
            assert item["stream"] in ("stdout", "stderr", "pty"), item
            assert 0 < len(item["text"]) <= CHUNK_MAX_CHARS, item["seq"]
        elif item["kind"] == "event":
            assert isinstance(item["event"], str), item
        else:
            assert isinstance(item["data"]["status"], str), item
    return list(items)


def all_items(surface: Surface, run_id: str, limit: int = LIMIT_MAX, since_seq: int = 0, **params: Any) -> list[Answer]:
    """All items behind a cursor by `log`; seq rises by 1 from item to item unless a filter hides some."""
    found: list[Answer] = []
    while True:
        page = log(surface, run_id, limit=limit, since_seq=since_seq, **params)
        assert len(page["items"]) <= limit, page
        items = checked_items(page["items"])
        assert all(item["seq"] > since_seq for item in items), (since_seq, items)
        assert page["next_seq"] >= max([since_seq, *(item["seq"] for item in items)]), page
        found += items
        if not page["has_more"]:
            break
        assert page["next_seq"] > since_seq, page
        since_seq = page["next_seq"]
    seqs = [item["seq"] for item in found]
    assert seqs == sorted(set(seqs)), seqs
    if not params and seqs:
        assert seqs == list(range(seqs[0], seqs[0] + len(seqs))), seqs
    return found


def text_of(items: Sequence[Answer], stream: str = "stdout") -> str:
    return "".join(item["text"] for item in items if item["kind"] == "output" and item["stream"] == stream)


def statuses(items: Sequence[Answer]) -> list[str]:
    return [item["data"]["status"] for item in items if item["kind"] == "status"]


def events(items: Sequence[Answer], name: str) -> list[Answer]:
    return [item["data"] for item in items if item["kind"] == "event" and item["event"] == name]


def everything(surface: Surface, run_ids: Sequence[str]) -> str:
    """All that is answered of runs by runs.get, runs.list, shell poll and shell log, as text to compare."""
    told: list[Any] = [surface.ok("runs.list", {"limit": 1000})]
    for run_id in run_ids:
        told += [surface.facts(run_id), poll(surface, run_id), all_items(surface, run_id)]
    return json.dumps(told, indent=1, sort_keys=True)
