"""Reads a run's stream by long polls, from the first byte to the last, and never a byte twice."""

import asyncio
from base64 import b64decode
from collections.abc import AsyncGenerator
from typing import Any, Final, NamedTuple

from limpet.client.client import AsyncClient
from limpet.model.errors import Refusal
from limpet.surfaces.cli.daemon_client import succeeded
from limpet.surfaces.cli.say import note

PAGE_BYTES: Final = 1 << 20
WAIT_MS: Final = 60_000


class Page(NamedTuple):
    """Some bytes and where they stand."""

    offset: int
    data: bytes


class Reader:
    """One stream of one run. `finish` says where it ends: what comes later belongs to no run any more."""

    def __init__(self, client: AsyncClient, run_id: str, stream: str) -> None:
        self.stream: Final = stream
        self._client: Final = client
        self._run_id: Final = run_id
        self._offset = 0
        self._end: int | None = None
        self._finished: Final = asyncio.Event()

    def finish(self, end: int) -> None:
        """The run has ended, with so many bytes in this stream."""
        self._end = end
        self._finished.set()

    async def skip_to_last_lines(self, lines: int) -> None:
        """Begins where the last lines that are there now do."""
        asked = {"run_id": self._run_id, "stream": self.stream, "last_lines": lines, "max_bytes": 1}
        self._offset = succeeded(await self._client.call_raw("runs.read", asked))["offset_bytes"]

    async def pages(self, *, follow: bool) -> AsyncGenerator[Page, None]:
        """All pages; with `follow` those too that are still to come."""
        while self._end is None or self._offset < self._end:
            answer = await self._next(wait_ms=WAIT_MS if follow and self._end is None else 0)
            if answer is None:
                continue
            if answer.get("error") == "gone" and isinstance(answer.get("base"), int):
                note(f"{self.stream}: bytes {self._offset} to {answer['base']} are gone")
                self._offset = answer["base"]
                continue
            data = b64decode(succeeded(answer)["data"])
            if self._end is not None:
                data = data[: self._end - self._offset]
            if data:
                offset, self._offset = self._offset, self._offset + len(data)
                yield Page(offset, data)
            if answer["eof"] or (not data and not follow):
                return

    async def _next(self, wait_ms: int) -> dict[str, Any] | None:
        """One answer; None when the end of the run cut the wait."""
        asked = {
            "run_id": self._run_id,
            "stream": self.stream,
            "offset": self._offset,
            "max_bytes": PAGE_BYTES,
            "encoding": "base64",
            "wait_ms": wait_ms,
        }
        if not wait_ms:
            return await self._client.call_raw("runs.read", asked)
        read = asyncio.ensure_future(self._client.call_raw("runs.read", asked))
        finished = asyncio.ensure_future(self._finished.wait())
        try:
            await asyncio.wait((read, finished), return_when=asyncio.FIRST_COMPLETED)
            return read.result() if read.done() else None
        finally:
            read.cancel()
            finished.cancel()


def streams_of(run: dict[str, Any], chosen: str | None) -> list[str]:
    """The streams to read of a run, all or the chosen one."""
    known: list[str] = list(run.get("streams", ())) or (["pty"] if run.get("pty") else ["stdout", "stderr"])
    if chosen is None:
        return known
    if chosen not in known:
        raise Refusal("invalid_argument", f"this run has no stream {chosen!r}: it has {', '.join(known)}")
    return [chosen]
