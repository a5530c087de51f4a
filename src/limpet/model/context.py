"""Where in a caller's own work a command belongs: a context variable, taken once when a run starts."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_context: ContextVar[dict[str, str]] = ContextVar("limpet_exec_event_context")
_NOTHING: Final[dict[str, str]] = {}
FIELDS: Final = ("runId", "toolCallId", "sessionKey")


@contextmanager
def exec_event_context(
    *, run_id: str | None = None, tool_call_id: str | None = None, session_key: str | None = None
) -> Generator[None]:
    """Whatever is started within belongs there, as its events say, for as long as it runs.

    What is left out stays as it is around it. Each task has its own, as context variables do.
    """
    given = zip(FIELDS, (run_id, tool_call_id, session_key), strict=True)
    known = _context.set(current_context() | {name: value for name, value in given if value is not None})
    try:
        yield
    finally:
        _context.reset(known)


def current_context() -> dict[str, str]:
    """The one that holds here, in the words of requests: `runId`, `toolCallId`, `sessionKey`."""
    return _context.get(_NOTHING)


@contextmanager
def context_of(context: dict[str, str]) -> Generator[None]:
    """The same, for a caller who is somewhere else and has sent its own."""
    known = _context.set(context)
    try:
        yield
    finally:
        _context.reset(known)
