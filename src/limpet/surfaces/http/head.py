"""What the head of a call must be, and what it says of the caller; the same on every path into the server."""

import binascii
from base64 import b64decode
from collections.abc import Iterable
from typing import Final

import msgspec

from limpet.model.errors import Refusal
from limpet.model.operation import Caller

CALL: Final = "/v1/call/"
CALLER: Final = b"limpet-caller"
BODY_MAX_BYTES: Final = 64 * 1024 * 1024
NOBODY: Final = Caller("http")
TOO_LARGE: Final = Refusal(
    "too_large",
    f"the body is larger than {BODY_MAX_BYTES} bytes: send less at once",
    limit_bytes=BODY_MAX_BYTES,
)
_NOT_JSON: Final = Refusal(
    "invalid_argument",
    "the body must be JSON: send it with the header Content-Type: application/json",
    field="Content-Type",
)


class _Ambient(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    cwd: str | None = None
    env: dict[str, str] | None = None
    surface: str = "http"


_decoder: Final = msgspec.json.Decoder(_Ambient)


def judge(headers: Iterable[tuple[bytes, bytes]], *, local: bool) -> Caller:
    """Who calls, or the refusal of a head that no call may have. Names are in lower case."""
    who = NOBODY
    is_json = False
    for name, value in headers:
        if name == b"content-type":
            is_json = value == b"application/json" or value.partition(b";")[0].strip().lower() == b"application/json"
        elif name == b"content-length":
            if len(value) > 12 or int(value) > BODY_MAX_BYTES:
                raise TOO_LARGE
        elif name == CALLER and local:
            who = _caller(value)
    if not is_json:
        raise _NOT_JSON
    return who


def _caller(value: bytes) -> Caller:
    try:
        ambient = _decoder.decode(b64decode(value, validate=True))
    except (msgspec.MsgspecError, binascii.Error, UnicodeError, RecursionError) as error:
        raise Refusal("invalid_argument", f"the header Limpet-Caller is not base64 of JSON: {error}") from None
    return Caller(ambient.surface, ambient.cwd, ambient.env)
