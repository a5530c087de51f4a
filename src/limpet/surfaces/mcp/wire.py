"""Lines on two descriptors as messages: bounded, never blocking the loop, and garbage is answered as such."""

import asyncio
import json
import os
import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final, cast

import anyio
import mcp_types as types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

LINE_MAX_BYTES: Final = 64 * 1024 * 1024
_READ_BYTES: Final = 256 * 1024


class Wire:
    """`messages` and `answers` are the streams that the SDK's server runs over.

    Reading and writing block in threads of their own: the descriptors may be anything, are shared with other
    processes, and so never made non-blocking. The threads hold up nobody's exit.
    """

    def __init__(self, read_from: int, write_to: int, on_end: Callable[[], None]) -> None:
        self._read_from: Final = read_from
        self._on_end: Final = on_end
        self._loop: Final = asyncio.get_running_loop()
        self._taken: MemoryObjectSendStream[SessionMessage | Exception]
        self.messages: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._taken, self.messages = anyio.create_memory_object_stream[SessionMessage | Exception]()
        self._given: MemoryObjectReceiveStream[SessionMessage]
        self.answers: MemoryObjectSendStream[SessionMessage]
        self.answers, self._given = anyio.create_memory_object_stream[SessionMessage]()
        self._complaints: Final = self.answers.clone()
        self._writer: Final = _Writer(write_to, self._loop)

    def start(self) -> None:
        """Begins to read."""
        threading.Thread(target=self._read, name="limpet-mcp-read", daemon=True).start()
        self._writer.start()

    async def write(self) -> None:
        """Writes what is answered until nothing more is, or nobody reads it."""
        async with self._given:
            async for answer in self._given:
                line = answer.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._writer.write(line.encode() + b"\n")

    def _read(self) -> None:
        """In its thread: one line at a time, each taken before the next is read."""
        begun = bytearray()
        is_too_long = False
        try:
            while data := os.read(self._read_from, _READ_BYTES):
                *lines, rest = data.split(b"\n")
                for line in lines:
                    whole = bytes(begun) + line
                    begun.clear()
                    self._take_in_loop(None if is_too_long else whole)
                    is_too_long = False
                if not is_too_long:
                    begun += rest
                if len(begun) > LINE_MAX_BYTES:
                    is_too_long = True
                    begun.clear()
            if begun:
                self._take_in_loop(bytes(begun))
        except (OSError, RuntimeError, asyncio.CancelledError):  # the descriptor or the loop is gone
            pass
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended)

    def _take_in_loop(self, line: bytes | None) -> None:
        asyncio.run_coroutine_threadsafe(self._take(line), self._loop).result()

    def _ended(self) -> None:
        self._on_end()
        self._taken.close()
        self._complaints.close()

    async def _take(self, line: bytes | None) -> None:
        if line is not None and not line.strip():
            return
        try:
            if line is None:
                message = f"the line is longer than {LINE_MAX_BYTES} bytes"
                await self._complain(None, types.INVALID_REQUEST, message)
                return
            try:
                taken = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
            except ValueError:
                await self._complain(*_complaint(line))
                return
            if isinstance(taken, types.JSONRPCNotification) and b'"id"' in line and "id" in json.loads(line):
                await self._complain(None, types.INVALID_REQUEST, "the id of a request is a number or text")
                return
            await self._taken.send(SessionMessage(taken))
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass  # the server has ended

    async def _complain(self, request_id: int | str | None, code: int, message: str) -> None:
        error = types.ErrorData(code=code, message=message)
        await self._complaints.send(SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error)))


def _complaint(line: bytes) -> tuple[int | str | None, int, str]:
    """Whom to tell, and what is wrong with a line that is no message."""
    try:
        said: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None, types.PARSE_ERROR, "the line is not JSON"
    request_id: Any = cast("dict[str, Any]", said).get("id") if isinstance(said, dict) else None
    is_id = isinstance(request_id, int | str) and not isinstance(request_id, bool)
    return (request_id if is_id else None), types.INVALID_REQUEST, "the line is no JSON-RPC message"


class _Writer(threading.Thread):
    """Writes whole lines, one after another."""

    def __init__(self, descriptor: int, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(name="limpet-mcp-write", daemon=True)
        self._descriptor: Final = descriptor
        self._loop: Final = loop
        self._lines: Final[queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]]] = queue.SimpleQueue()

    async def write(self, line: bytes) -> None:
        """Returns once the kernel has it all; `OSError` when nobody reads any more."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._lines.put((line, done))
        await done

    def run(self) -> None:
        while True:
            line, done = self._lines.get()
            failed: OSError | None = None
            try:
                left = memoryview(line)
                while left:
                    left = left[os.write(self._descriptor, left) :]
            except OSError as error:
                failed = error
            try:
                self._loop.call_soon_threadsafe(_settle, done, failed)
            except RuntimeError:  # the loop is gone, and whoever waited with it
                return


def _settle(done: "asyncio.Future[None]", failed: OSError | None) -> None:
    if done.done():
        return
    if failed is None:
        done.set_result(None)
    else:
        done.set_exception(failed)
