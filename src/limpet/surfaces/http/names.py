"""What a request is called: its id, in its answer and in the log, and the trace that it belongs to."""

import itertools
import re
import secrets
from typing import Final

_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,128}")
_PARENT: Final = re.compile(rb"([0-9a-f]{2})-([0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2})(-.*)?")
_STATE: Final = re.compile(rb"[\x20-\x7e]{1,512}")
_ours: Final = secrets.token_hex(5)
_numbers: Final = itertools.count(1)


def request_id_of(given: bytes) -> str:
    """The id that the caller gave, if it is one; else one of ours, which no other request has."""
    if given and _ID.fullmatch(given):
        return given.decode()
    return f"{_ours}-{next(_numbers):x}"


def trace_of(found: dict[bytes, bytes]) -> dict[str, str] | None:
    """Its trace (W3C Trace Context) as environment variables; none where the header is none, as the standard has it."""
    parent = found.get(b"traceparent")
    if parent is None or not (match := _PARENT.fullmatch(parent)):
        return None
    version, ids, more = match.groups()
    if version == b"ff" or (version == b"00" and more) or b"0" * 32 + b"-" in ids or b"-" + b"0" * 16 + b"-" in ids:
        return None
    trace = {"TRACEPARENT": f"00-{ids.decode()}"}
    state = found.get(b"tracestate", b"")
    if _STATE.fullmatch(state):
        trace["TRACESTATE"] = state.decode()
    return trace
