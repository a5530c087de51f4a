"""The facts: any bytes decode to one or are refused, and any sequence of them folds to a run that can be shown."""

from __future__ import annotations

import types
from typing import Any, get_args, get_origin

import msgspec

from fuzz import seeds as recorded
from fuzz.feed import Feed
from limpet.dialects.runs.types import describe
from limpet.model.facts import AnyFact, DaemonFact, KeeperFact, decode_fact
from limpet.model.run import Run, fold
from limpet.model.status import STATUSES, status_of

KINDS: tuple[type[msgspec.Struct], ...] = (*get_args(KeeperFact), *get_args(DaemonFact))
TEXTS = ("stdout", "stderr", "pty", "self", "kill", "timeout", "oom", "lost", "ENOSPC", "SIGTERM", "")
NUMBERS = (0, 1, 2, 3, 100, 4096, -1, 1 << 31, (1 << 63) - 1, 1 << 64)


def seeds() -> list[bytes]:
    """Real journals' records, one to a line, and choices for made ones."""
    real = [b"\0" + b"\n".join(recorded.bodies(journal)) for journal in recorded.journals()]
    return [*real, *(b"\1" + bytes([kind]) * 20 for kind in range(len(KINDS)))]


def check(data: bytes) -> None:
    feed = Feed(data)
    facts = decoded(feed.rest().split(b"\n")) if feed.number(2) == 0 else made(feed)
    check_fold(facts)


def decoded(bodies: list[bytes]) -> list[AnyFact]:
    facts: list[AnyFact] = []
    for body in bodies:
        try:
            fact = decode_fact(body)
        except msgspec.DecodeError:  # ValidationError is one of them
            continue
        if fact is not None:
            facts.append(fact)
    return facts


def made(feed: Feed) -> list[AnyFact]:
    """Facts with fields of the right types and any values, by way of their JSON."""
    facts: list[AnyFact] = []
    while feed and len(facts) < 20:
        kind = feed.pick(KINDS)
        fields = {name: value_of(hint, feed) for name, hint in msgspec_hints(kind).items()}
        body = msgspec.json.encode({"fact": kind.__struct_config__.tag, **fields})
        fact = decode_fact(body)
        assert fact is not None
        assert type(fact) is kind, f"{body!r} decodes to {fact!r}"
        facts.append(fact)
    return facts


def msgspec_hints(kind: type[msgspec.Struct]) -> dict[str, Any]:
    return {field.encode_name: field.type for field in msgspec.structs.fields(kind)}


def value_of(hint: Any, feed: Feed) -> Any:
    """Some value of a field's type."""
    if get_origin(hint) is types.UnionType:
        return value_of(feed.pick(get_args(hint)), feed)
    if get_origin(hint) is list:
        return [value_of(get_args(hint)[0], feed) for _ in range(feed.number(3))]
    if get_origin(hint) is tuple:
        return [value_of(each, feed) for each in get_args(hint)]
    if get_origin(hint) is dict:
        return {value_of(str, feed): value_of(get_args(hint)[1], feed) for _ in range(feed.number(3))}
    if hint is bool:
        return feed.flag()
    if hint is int:
        return feed.pick(NUMBERS) if feed.flag() else feed.number(1 << 16)
    if hint is str:
        return feed.pick(TEXTS) if feed.number(8) else feed.piece(8).decode("utf-8", "replace")
    if hint is types.NoneType:
        return None
    return {name: value_of(each, feed) for name, each in msgspec_hints(hint).items()}


def check_fold(facts: list[AnyFact]) -> None:
    """Total and pure; every state on the way can be shown and stored."""
    run = Run(run_id="r1")
    for fact in facts:
        before = msgspec.json.encode(run)
        after = fold(run, fact)
        assert msgspec.json.encode(run) == before, "the fold changed what it was given"
        assert fold(run, fact) == after, "the fold is not a function"
        assert status_of(after) in STATUSES
        msgspec.json.encode(describe(after))
        assert msgspec.json.decode(msgspec.json.encode(after), type=Run) == after, "it does not come back from storage"
        run = after
