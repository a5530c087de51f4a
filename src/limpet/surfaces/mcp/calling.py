"""One call of a tool: bounded in time, told of as it waits, and ended with what it started if it is cancelled."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Protocol

from limpet.model.errors import TAKEN, Refusal
from limpet.surfaces.mcp.tools import Tool, Tools

LONGEST_S: Final = 45.0
"""What waits longer is answered with what is known; clients give up on a call after a minute."""
ROOM_BYTES: Final = 24 * 1024
"""Of one stream in the answer of a command that was waited for."""
_TELL_S: Final = 4.0
_END_S: Final = 5.0
_DRESS: Final = TAKEN - {"ok", "error"}
_log: Final = logging.getLogger("limpet.mcp")

Answer = dict[str, Any]
Tell = Callable[[float, float | None, str | None], Awaitable[None]]
"""Tells a client that asked for it how a call goes: what has passed, of how much, in words."""


class Backend(Protocol):
    """Where operations are called. What fails is an answer too, as on every surface."""

    async def call(self, operation: str, params: Mapping[str, Any], wait: str | None = None) -> Answer:
        """The answer.

        `wait` names the field with the time that a repeatable call waits: one that is lost with its daemon is asked
        again, for as long as is left of it.
        """
        ...


class Calling:
    """Calls the chosen tools. `is_closing` says whether calls are cut because this process ends: then runs go on."""

    def __init__(self, tools: Tools, backend: Backend, is_closing: Callable[[], bool]) -> None:
        self.tools: Final = tools
        self.backend: Final = backend
        self._is_closing: Final = is_closing
        self._ending: Final[set[asyncio.Task[None]]] = set()

    async def call(self, tool: Tool, arguments: dict[str, Any], tell: Tell, patience_s: float = LONGEST_S) -> Answer:
        """The answer. A command that is waited for is left to itself after `patience_s`, and the answer says so."""
        try:
            with _telling(tell):
                if is_one_shot(tool, arguments):
                    return await self._one_shot(tool, arguments, patience_s)
                return await self._call(tool, tool.filled(arguments))
        except Refusal as refusal:
            return refusal.answer()

    async def _call(self, tool: Tool, request: dict[str, Any]) -> Answer:
        if tool.takes_key and "action" not in tool.row.request.__struct_encode_fields__:
            request.setdefault("key", new_key())  # so that it is safe to ask again when the daemon is lost in between
        if tool.wait is None:
            return await self.backend.call(tool.row.name, request)
        field, default_ms = tool.wait
        asked_ms = request.get(field, default_ms)
        is_cut = isinstance(asked_ms, int) and asked_ms > LONGEST_S * 1000
        request[field] = int(LONGEST_S * 1000) if is_cut else asked_ms
        answer = await self.backend.call(tool.row.name, request, field if tool.row.repeatable else None)
        if is_cut and answer.get("error") == "timeout" and "reason" not in answer:
            answer["message"] = (
                f"one call waits {LONGEST_S:g} s at most, and nothing came in that time: what runs goes on; "
                "call again, from the cursor in this answer"
            )
        return answer

    async def _one_shot(self, tool: Tool, arguments: dict[str, Any], patience_s: float) -> Answer:
        """Started, waited for, and asked for again by its key: so it is the same run on every way in."""
        name = tool.row.name
        request = {"key": new_key(), **arguments}
        start = asyncio.ensure_future(self.backend.call(name, request))
        try:
            # not cancelled half-way: then nobody would know what was started
            begun = await asyncio.shield(start)
        except asyncio.CancelledError:
            self._end(start)
            raise
        if not goes_on(begun):
            return begun
        until = {"run_ids": [begun["run_id"]], "timeout_ms": max(0, int(patience_s * 1000))}
        try:
            await self.backend.call("runs.wait", until, "timeout_ms")
            answer = await self.backend.call(name, request)
        except asyncio.CancelledError:
            self._end(start)
            raise
        if goes_on(answer):
            answer["message"] = self._goes_on(answer, patience_s)
        return answer

    def _goes_on(self, answer: Answer, patience_s: float) -> str:
        run_id = answer["run_id"]
        what = f"still {answer['status']} after {patience_s:g} s; it goes on, do not start it again. "
        wait = f'runs_wait {{"run_ids": ["{run_id}"]}} waits for its end, '
        log = f'shell {{"action": "log", "run_id": "{run_id}", "since_seq": {answer.get("next_seq", 0)}}} reads on, '
        kill = f'shell {{"action": "kill", "run_id": "{run_id}"}} ends it'
        return what + (wait if self.tools.find("runs.wait") else "") + log + kill

    def _end(self, start: "asyncio.Future[Answer]") -> None:
        """Kills what was started, once that is known; unless the call was cut by the end of this process."""
        if self._is_closing():
            return
        task = asyncio.ensure_future(self._kill(start))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _kill(self, start: "asyncio.Future[Answer]") -> None:
        try:
            begun = await start
            if goes_on(begun):
                await self.backend.call("runs.kill", {"run_id": begun["run_id"]})
        except Refusal as refusal:
            _log.warning("a cancelled command may go on: %s", refusal)

    async def settle(self) -> None:
        """Waits until what was cancelled is being ended."""
        if self._ending:
            await asyncio.wait(tuple(self._ending), timeout=_END_S)


def new_key() -> str:
    """One that no other call has."""
    return f"mcp-{os.urandom(12).hex()}"


def is_one_shot(tool: Tool, arguments: Mapping[str, Any]) -> bool:
    """Whether this call starts a command and stays for its end; its handler answers at once who does not stay."""
    if tool.row.name != "shell":
        return False
    action = arguments.get("action")
    return action is None or (action == "spawn" and arguments.get("background") is False)


def undressed(answer: Answer) -> Answer:
    """A failure without what it wears over HTTP."""
    if answer.get("ok") or answer.get("error") == "timeout":
        return answer
    return {name: value for name, value in answer.items() if name not in _DRESS}


def goes_on(answer: Answer) -> bool:
    """Whether a started command is not over."""
    return bool(answer.get("ok")) and answer.get("status") in ("queued", "running")


@contextmanager
def _telling(tell: Tell) -> Generator[None]:
    """Tells every few seconds, as long as the call lasts."""
    task = asyncio.ensure_future(_tell_on(tell))
    task.add_done_callback(lambda done: done.cancelled() or done.exception())  # a client that hears nothing is no fault
    try:
        yield
    finally:
        task.cancel()


async def _tell_on(tell: Tell) -> None:
    began = time.monotonic()
    while True:
        await asyncio.sleep(_TELL_S)
        passed = time.monotonic() - began
        await tell(passed, None, f"waiting, {passed:.0f} s")
