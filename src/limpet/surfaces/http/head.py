"""What a request's head says, as far as it decides who gets in and who calls; each such header once."""

import binascii
from base64 import b64decode
from collections.abc import Iterable
from typing import Annotated, Final

import msgspec

from limpet.model.context import FIELDS
from limpet.model.errors import Refusal
from limpet.model.operation import Caller
from limpet.surfaces.http.names import request_id_of, trace_of

CALL: Final = "/v1/call/"
BODY_MAX_BYTES: Final = 64 * 1024 * 1024
TOKEN_PROTOCOL: Final = b"limpet.token."
"""How a WebSocket of a browser, which can set no header, says its token: as one of the subprotocols that it offers."""
_LISTS: Final = frozenset(
    {b"sec-websocket-protocol", b"transfer-encoding", b"traceparent", b"tracestate", b"x-request-id"}
)
_ONCE: Final = frozenset(
    {
        b"authorization",
        b"content-length",
        b"content-type",
        b"host",
        b"limpet-caller",
        b"origin",
        b"sec-fetch-site",
        b"upgrade",
    }
)
_WEIGHED: Final = _LISTS | _ONCE

Headers = Iterable[tuple[bytes, bytes]]


class _Ambient(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cwd: str | None = None
    env: dict[str, str] | None = None
    surface: str = "http"
    stays: bool = True
    room_bytes: Annotated[int, msgspec.Meta(ge=1)] | None = None
    context: dict[str, str] = {}


_decoder: Final = msgspec.json.Decoder(_Ambient)


def weigh(headers: Headers) -> dict[bytes, bytes]:
    """The headers that the gate looks at. Names are in lower case; one that may stand once and stands twice is refused.

    Two readers of the same head, a proxy and limpet say, must not pick different ones of the two.
    """
    found: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _WEIGHED:
            if name in found:
                if name in _ONCE:
                    raise Refusal("invalid_argument", f"the header {name.decode()} stands there twice: send it once")
                found[name] += b"," + value
            else:
                found[name] = value
    return found


def without_token(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The same headers, as they may go on behind the gate."""
    kept: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name == b"sec-websocket-protocol":
            offered = [each.strip() for each in value.split(b",")]
            value = b", ".join(each for each in offered if not each.startswith(TOKEN_PROTOCOL))
            if not value:
                continue
        if name != b"authorization":
            kept.append((name, value))
    return kept


def too_large() -> Refusal:
    """What a body of more than `BODY_MAX_BYTES` gets."""
    message = f"the body is larger than {BODY_MAX_BYTES} bytes: send less at once"
    return Refusal("too_large", message, limit_bytes=BODY_MAX_BYTES)


def caller_of(found: dict[bytes, bytes], *, is_local: bool) -> Caller:
    """Who calls: over the Unix socket as the header Limpet-Caller describes it, else somebody over HTTP."""
    request_id, trace = request_id_of(found.get(b"x-request-id", b"")), trace_of(found)
    if not is_local or b"limpet-caller" not in found:
        return Caller("http", request_id=request_id, trace=trace)
    try:
        ambient = _decoder.decode(b64decode(found[b"limpet-caller"], validate=True))
    except (msgspec.MsgspecError, binascii.Error, UnicodeError, RecursionError) as error:
        raise Refusal("invalid_argument", f"the header Limpet-Caller is not base64 of JSON: {error}") from None
    context = {name: value for name, value in ambient.context.items() if name in FIELDS}
    return Caller(
        ambient.surface, ambient.cwd, ambient.env, ambient.stays, ambient.room_bytes, request_id, trace, context
    )
