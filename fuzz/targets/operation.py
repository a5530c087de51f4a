"""Requests at the edge: whatever the body, each row takes it as it is or refuses it in words; nothing is converted."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Final

import msgspec

from fuzz.feed import Feed, is_a
from limpet.dialects import ROWS
from limpet.model.errors import Refusal
from limpet.model.operation import Operation, decode

Row = Operation[Any, Any]
ODD: Final[list[Any]] = [
    *json.loads('[null, true, false, 0, -1, 1.0, 1e2, 1.5, "", "1", "true", "é", [], {}, [[]], {"exit": true}]'),
    *(1 << 63, 1 << 64, 10**400, "x" * 40),
]
ODD_BODIES: Final = (
    *(b"", b"[]", b"null", b'{"run_id":1e999}', b'{"a":{"a":1,"a":2}}', b"{" * 1100, b"[" * 1100),
    *(b'{"command":"\\ud800"}', b'{"command":"\xff"}', b'{"command":"\x01"}', b"\xef\xbb\xbf{}"),
    b'{"env":{"a":"","a":""},"command":":"}',
)
# Some 150 KB of JSON: a thousandth part of 100 ms for each of them is plenty.
MOST_MEMBERS = 16000


def seeds() -> list[bytes]:
    """An example of each row's request, with every field; bodies that are no request of any row; crowds."""
    rows = range(len(ROWS))
    examples = [bytes([0, row]) + body for row in rows for body in (b"{}", example(row))]
    odd = [bytes([0, place % len(ROWS)]) + body for place, body in enumerate(ODD_BODIES)]
    values = [(row, field, value) for row in rows for field in range(4) for value in range(0, len(ODD), 3)]
    bend = [bytes([1, row, 2, field, value, 1]) for row, field, value in values]
    return examples + odd + bend + [b"\2\0\0\x30" + bytes([name, 2, 0]) for name in range(5)]


@cache
def example(place: int) -> bytes:
    schema: dict[str, Any] = msgspec.json.schema(ROWS[place].request)
    return json.dumps(sample(schema, schema.get("$defs", {}))).encode()


def sample(schema: dict[str, Any], known: dict[str, Any]) -> Any:
    """Some value that fits the schema."""
    if "$ref" in schema:
        return sample(known[schema["$ref"].rpartition("/")[2]], known)
    if "anyOf" in schema:
        return sample(schema["anyOf"][0], known)
    if "enum" in schema:
        return schema["enum"][0]
    match schema.get("type"):
        case "object":
            if "properties" in schema:
                return {name: sample(each, known) for name, each in schema["properties"].items()}
            return {"A": sample(schema.get("additionalProperties", {}), known)}
        case "array":
            return [sample(schema.get("items", {}), known)]
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case "null":
            return None
        case _:
            return "text"


def check(data: bytes) -> None:
    feed = Feed(data)
    how, place = feed.number(3), feed.number(len(ROWS))
    match how:
        case 0:
            check_body(ROWS[place], feed.rest())
        case 1:
            check_body(ROWS[place], bent(place, feed))
        case _:
            check_body(ROWS[place], crowded(feed))


def bent(place: int, feed: Feed) -> bytes:
    """The example with fields replaced, left out, renamed or doubled."""
    fields: dict[str, Any] = json.loads(example(place))
    members = list(fields.items())
    for _ in range(feed.number(5)):
        which = feed.number(len(members) + 1)
        name = members[which][0] if which < len(members) else feed.piece(9).decode("utf-8", "replace")
        value = feed.pick(ODD)
        match feed.number(4):
            case 0 if which < len(members):
                del members[which]
            case 1 if which < len(members):
                members[which] = (name, [value] if isinstance(members[which][1], list) else {"A": value})
            case 2 if which < len(members):
                members[which] = (name, value)
            case _:
                members.append((name, value))
    return ("{" + ",".join(f"{json.dumps(name)}:{json.dumps(value)}" for name, value in members) + "}").encode()


def crowded(feed: Feed) -> bytes:
    """Many members in `env`, the last of them twice, long names and long lists: what a short body can cost."""
    count = feed.number(MOST_MEMBERS)
    name = feed.pick(("env", "context", "labels", "run_ids", "x" * count))
    members = [f'"{number:x}":""' for number in range(count)] + ['"z":""'] * feed.number(3)
    listed = "[" + ",".join(f'"{number:x}"' for number in range(count)) + "]"
    value = listed if feed.flag() else "{" + ",".join(members) + "}"
    return f'{{"command":"c",{json.dumps(name)}:{value}}}'.encode()


def check_body(row: Row, body: bytes) -> None:
    """Only a request or a refusal comes back, and a request says what the body says."""
    try:
        request = decode(row, body)
    except Refusal as refused:
        assert_is_clear(refused)
        return
    assert type(request) is row.request
    assert_as_given(msgspec.to_builtins(request), json.loads(body, object_pairs_hook=no_doubles))
    assert decode(row, msgspec.json.encode(request)) == request, "it does not come back from its own JSON"


def assert_is_clear(refused: Refusal) -> None:
    assert refused.code == "invalid_argument"
    assert refused.message
    msgspec.json.encode(refused.answer())


def no_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), "a doubled member was let through"
    return dict(pairs)


def assert_as_given(taken: Any, given: Any) -> None:
    """What was taken is what was given; only defaults may stand beside it."""
    one_number = is_a(taken, float) and is_a(given, int)  # JSON knows one kind of number
    assert one_number or kind_of(taken) == kind_of(given), f"{given!r} was taken as {taken!r}"
    if is_a(given, dict):
        for name in given:
            assert name in taken, f"{name} was left out in silence"
            assert_as_given(taken[name], given[name])
    elif is_a(given, list):
        for one, other in zip(taken, given, strict=True):
            assert_as_given(one, other)
    else:
        assert taken == given, f"{given!r} was taken as {taken!r}"


def kind_of(value: Any) -> str:
    return type(value).__name__
