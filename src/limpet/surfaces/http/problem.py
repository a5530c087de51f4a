"""A failure in its HTTP dress: application/problem+json (RFC 9457) around limpet's own fields."""

from typing import Any, Final

import msgspec

MEDIA_TYPE: Final = "application/problem+json"


def problem(status: int, answer: dict[str, Any]) -> bytes:
    """The body of a failure: our fields first, as on every surface, then the ones of the RFC."""
    code: str = answer["error"]
    dress = {
        "type": f"urn:limpet:error:{code}",
        "title": code.replace("_", " ").capitalize(),
        "status": status,
        "detail": answer["message"],
    }
    return msgspec.json.encode(answer | dress)
