"""`limpet logs`: what a run has said, as far as a terminal can be trusted with it."""

import asyncio
import codecs
import os
import sys
from typing import Any

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.reader import Page, Reader, streams_of
from limpet.surfaces.cli.say import say_json, visible
from limpet.surfaces.cli.wait import ended


def logs(*, run_id: str, follow: bool, stream: str | None, tail: float | None, raw: bool, as_json: bool) -> int:
    """stdout goes to stdout, stderr to stderr, one stream alone to stdout; each byte once, as it was written."""

    async def show(client: AsyncClient) -> None:
        run = succeeded(await client.call_raw("runs.get", {"run_id": run_id}))
        readers = [Reader(client, run_id, name) for name in streams_of(run, stream)]
        if tail is not None:
            for reader in readers:
                await reader.skip_to_last_lines(int(tail))

        def target_of(reader: Reader) -> int:
            return 2 if reader.stream == "stderr" and stream is None else 1

        if not follow:
            for each in readers:
                _limit(each, run)
                await _show(each, target_of(each), follow=False, raw=raw, as_json=as_json)
            return
        shows = [
            asyncio.ensure_future(_show(each, target_of(each), follow=True, raw=raw, as_json=as_json))
            for each in readers
        ]
        try:
            over = await ended(client, run_id)
            for reader in readers:
                _limit(reader, over)
            await asyncio.gather(*shows)
        finally:
            for each in shows:
                each.cancel()

    with_client(show)
    return 0


def _limit(reader: Reader, run: dict[str, Any]) -> None:
    """What survivors of an ended run write later is shown too, as far as it is there: the spool is what a log shows."""
    if run.get("finished_at") is not None:
        reader.finish(run["streams"][reader.stream]["bytes"] if reader.stream in run["streams"] else 0)


async def _show(reader: Reader, target: int, *, follow: bool, raw: bool, as_json: bool) -> None:
    safe = not raw and os.isatty(target)
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    async for page in reader.pages(follow=follow):
        if as_json:
            _say_page(reader.stream, page, decoder)
        elif safe:
            text = visible(decoder.decode(page.data).replace("\r\n", "\n"), lines=True)
            await write_all(target, text.encode())
        else:
            await write_all(target, page.data)


def _say_page(stream: str, page: Page, decoder: codecs.IncrementalDecoder) -> None:
    end = page.offset + len(page.data)
    say_json({"stream": stream, "offset_bytes": page.offset, "next_offset": end, "text": decoder.decode(page.data)})
    sys.stdout.flush()


async def write_all(descriptor: int, data: bytes) -> None:
    """Writes in a thread: whoever reads may take their time, signals and the other stream may not."""
    await asyncio.to_thread(_write_all, descriptor, data)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
