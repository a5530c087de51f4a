"""A row: one operation's name, types and handler, and the JSON at its edge."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Generic, TypeVar

import msgspec

from limpet.model.errors import Refusal
from limpet.model.misfit import explain, explain_encoding

Request = TypeVar("Request", bound=msgspec.Struct)
Response = TypeVar("Response", bound=msgspec.Struct)


class Caller(msgspec.Struct, frozen=True):
    """Who asks, and from where: ambient, so never part of the request."""

    surface: str
    cwd: str | None = None
    env: dict[str, str] | None = None
    stays: bool = True
    """Whether it waits for the end of what it starts; one that does not is told at once how that stands."""
    room_bytes: int | None = None
    """How much of one text it can take; what a longer one leaves out is said. None: whatever it is."""
    request_id: str = ""
    """What the request is called in answers and logs."""
    trace: dict[str, str] | None = None
    """The trace that it belongs to, as variables for what it starts: `TRACEPARENT` and `TRACESTATE`."""
    context: dict[str, str] = {}


class Timeout(msgspec.Struct, frozen=True, kw_only=True):
    """A wait that ended without its event: an answer, not a failure. Rows inherit it and add their cursor."""

    ok: bool = False
    error: str = "timeout"
    message: str = "nothing happened in time; ask again from the cursor in this answer"


@dataclass(frozen=True, slots=True)
class Operation(Generic[Request, Response]):
    """One row. `handle` gets the engine, the request and the caller.

    It may be cancelled at any await, when its caller has gone or the daemon stops: what must not be cut in half, the
    engine shields. It refuses by raising `Refusal`; a wait that timed out answers with a `Timeout`.
    """

    name: str
    request: type[Request]
    response: type[Response]
    handle: Callable[[Any, Request, Caller], Awaitable[Response | Timeout]]
    summary: str
    reads_only: bool
    repeatable: bool
    """Safe to ask again after a lost connection: reads and waits."""


_encoder: Final = msgspec.json.Encoder()
_untyped: Final = msgspec.json.Decoder()


@cache
def _decoder(request: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(request)


def decode(operation: Operation[Request, Any], body: bytes | bytearray) -> Request:
    """The request in a JSON body; whatever does not fit is refused in plain words, nothing is coerced."""
    try:
        request: Request = _decoder(operation.request).decode(body)
        if body.count(b":") > 1:
            _refuse_duplicates(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise explain(error, body, operation.request) from None
    return request


def convert(operation: Operation[Request, Any], params: dict[str, Any]) -> Request:
    """The request in a dict of Python values, judged exactly as the JSON of it would be."""
    try:
        body = _encoder.encode(params)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise explain_encoding(error) from None
    return decode(operation, body)


def encode(response: msgspec.Struct) -> bytes:
    """The answer as JSON: `"ok": true` first, unless the response says itself whether it is ok."""
    body = _encoder.encode(response)
    if "ok" in response.__struct_fields__:
        return body
    return b'{"ok":true,' + body[1:] if len(body) > 2 else b'{"ok":true}'


def answer_of(response: msgspec.Struct) -> dict[str, Any]:
    """The same answer as a dict, for callers in this process."""
    named: dict[str, Any] = msgspec.to_builtins(response)
    return named if "ok" in named else {"ok": True} | named


def _refuse_duplicates(body: bytes | bytearray) -> None:
    """A dropped member takes its colon with it, so the count shows it; colons in strings count alike on both sides."""
    if b"\\u003" not in body:  # an escaped colon would count on one side only
        kept = _encoder.encode(_untyped.decode(body))
        if body.count(b":") == kept.count(b":"):
            return
    json.loads(body, object_pairs_hook=_members)


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))[:80]
        raise Refusal("invalid_argument", f"`{twice}` is given twice: give it once", field=twice)
    return members
