"""The one way to say no: a refusal with a stable code, words for a person and fields for a program."""

from typing import Any, Final

CODES: Final[dict[str, int]] = {
    "invalid_argument": 400,
    "unauthorized": 401,
    "policy_denied": 403,
    "not_found": 404,
    "busy": 409,
    "conflict": 409,
    "gone": 410,
    "too_large": 413,
    "limit_exceeded": 429,
    "internal": 500,
    "unavailable": 503,
}
"""Every code of a failure and its HTTP status."""


TAKEN: Final = frozenset({"ok", "error", "type", "title", "status", "detail"})
"""Names that an answer or its HTTP dress (RFC 9457) uses itself: no extra field may have them."""


class Refusal(Exception):  # noqa: N818  (it says no; nothing went wrong)
    """What was asked is not done; `message` says what was wrong and what to do, `reason` is a finer name."""

    def __init__(self, code: str, message: str, *, reason: str | None = None, **fields: Any) -> None:
        super().__init__(message)
        if clash := TAKEN & fields.keys():
            raise ValueError(f"a refusal's extra field cannot be named {', '.join(sorted(clash))}")
        self.code = code
        self.message = message
        self.reason = reason
        self.fields: dict[str, Any] = fields

    def answer(self) -> dict[str, Any]:
        """The failure as every surface shows it."""
        named: dict[str, Any] = {"ok": False, "error": self.code, "message": self.message}
        if self.reason is not None:
            named["reason"] = self.reason
        return named | self.fields

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"
