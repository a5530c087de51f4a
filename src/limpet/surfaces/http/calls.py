"""Calls rows by name: JSON in, JSON out, and every failure made into an answer."""

import asyncio
import contextlib
import difflib
import logging
import os
import time
import traceback
from collections.abc import Iterable
from typing import Any, Final

from limpet.model.context import context_of
from limpet.model.errors import CODES, Refusal
from limpet.model.operation import Caller, Operation, Timeout, decode, encode
from limpet.surfaces.http.metrics import UNKNOWN, Tally

_NO_CONTEXT: Final = contextlib.nullcontext()
_log: Final = logging.getLogger("limpet.http")


class Calls:
    """The rows of one engine, and the calls that are under way."""

    def __init__(self, rows: Iterable[Operation[Any, Any]], engine: Any) -> None:
        self.rows: Final[dict[str, Operation[Any, Any]]] = {row.name: row for row in rows}
        self._engine: Final = engine
        self.tally: Final = Tally()
        self._under_way: Final[set[asyncio.Task[Any]]] = set()
        self._stopping = False

    async def answer(self, name: str, body: bytes | bytearray, caller: Caller) -> tuple[int, bytes | dict[str, Any]]:
        """The status and the answer: bytes of JSON if it went well, a failure to be dressed if not.

        Cancelled because its caller has gone, it stays cancelled; cancelled by `stop`, it says so.
        """
        task = asyncio.current_task()
        assert task is not None
        self._under_way.add(task)
        began = time.perf_counter()
        known = name if name in self.rows else UNKNOWN
        outcome = "ok"
        try:
            row = self._find(name)
            with context_of(caller.context) if caller.context else _NO_CONTEXT:
                response = await row.handle(self._engine, decode(row, body or b"{}"), caller)
            if isinstance(response, Timeout):
                outcome = "timeout"
            return 200, encode(response)
        except Refusal as refusal:
            outcome = refusal.code
            return CODES.get(refusal.code, 500), refusal.answer()
        except asyncio.CancelledError:
            outcome = "cancelled"
            if not self._stopping:
                raise
            task.uncancel()
            return 503, _INTERRUPTED.answer()
        except Exception as error:  # noqa: BLE001  (whatever it is, the caller gets an answer and the log one line)
            outcome = "internal"
            return 500, incident(f"call {name}, request {caller.request_id}", error)
        finally:
            self._under_way.discard(task)
            self.tally.call(known, outcome, time.perf_counter() - began)

    def stop(self) -> None:
        """Cuts every call under way, so that its caller is told and can ask the next daemon."""
        self._stopping = True
        for task in self._under_way:
            task.cancel()

    def _find(self, name: str) -> Operation[Any, Any]:
        row = self.rows.get(name)
        if row is not None and not self._stopping:
            return row
        if self._stopping:
            raise Refusal("unavailable", "the daemon is stopping: ask the next one", reason="stopping")
        near = difflib.get_close_matches(name, self.rows, n=3)
        hint = f"did you mean {' or '.join(near)}?" if near else "GET /v1/operations lists them"
        raise Refusal("not_found", f"there is no operation {name[:80]!r}: {hint}", near=near)


_INTERRUPTED: Final = Refusal(
    "unavailable",
    "the daemon stopped before this was answered: runs go on, ask the next one",
    reason="interrupted",
)


def incident(where: str, error: BaseException) -> dict[str, Any]:
    """Logs what nobody expected, once and in one line, and makes the answer that names the line by its id."""
    name = f"inc-{time.time_ns() // 1_000_000:x}-{os.urandom(3).hex()}"
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    path = " < ".join(f"{frame.filename.rsplit('/', 1)[-1]}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    _log.error("%s in %s: %s(%.500r) at %s", name, where, type(error).__name__, str(error), path)
    return Refusal(
        "internal",
        f"limpet failed at this; its log says why under {name}",
        incident=name,
    ).answer()
