"""Stays with a run until it ends: copies its streams, feeds its stdin, passes signals on."""

import asyncio
import itertools
import os
import signal
import threading
from base64 import b64encode
from concurrent.futures import CancelledError
from typing import Any, Final

from limpet.client.client import AsyncClient
from limpet.model.errors import Refusal
from limpet.surfaces.cli.daemon_client import succeeded
from limpet.surfaces.cli.logs import write_all
from limpet.surfaces.cli.reader import Reader
from limpet.surfaces.cli.say import note
from limpet.surfaces.cli.wait import ended

PASSED_ON: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
TWICE_S: Final = 2.0
KEPT_MAX_BYTES: Final = 1 << 20
_STDIN_BYTES: Final = 1 << 16


class Attendance:
    """One run and the command line that stands in for it."""

    def __init__(self, client: AsyncClient, *, feeds: bool, keeps: bool, pty: bool) -> None:
        self._client: Final = client
        self._loop: Final = asyncio.get_running_loop()
        self._feeds: Final = feeds
        self._kept: Final[dict[str, bytearray] | None] = {} if keeps else None
        self._is_terminal: Final = pty
        self._names: Final = ("pty",) if pty else ("stdout", "stderr")
        self._run_id = ""
        self._signals: Final[asyncio.Queue[signal.Signals]] = asyncio.Queue()
        self._interrupted_at = float("-inf")
        self._interrupts = 0
        self._late: asyncio.Task[None] | None = None

    async def attend(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Starts the run and returns its facts once it has ended and all of its output is out."""
        for number in PASSED_ON:
            self._loop.add_signal_handler(number, self._signals.put_nowait, number)
        started = succeeded(await self._client.call_raw("shell", asked, as_caller=True))
        self._run_id = started["run_id"]
        readers = [Reader(self._client, self._run_id, name) for name in self._names]
        copies = [asyncio.ensure_future(self._copy(reader)) for reader in readers]
        steering = asyncio.ensure_future(self._pass_signals_on())
        if self._feeds:
            threading.Thread(target=self._feed, name="limpet-stdin", daemon=True).start()
        try:
            facts = await ended(self._client, self._run_id)
            for reader in readers:
                reader.finish(facts["streams"].get(reader.stream, {"bytes": 0})["bytes"])
            await asyncio.gather(*copies)
        finally:
            for task in (*copies, steering, self._late):
                if task is not None:
                    task.cancel()
        return facts

    def report(self, facts: dict[str, Any]) -> dict[str, Any]:
        """For `--json`: the facts, and as much of the output as was kept."""
        kept = self._kept or {}
        text = {name: bytes(data).decode(errors="replace") for name, data in kept.items()}
        cut = any(facts["streams"][name]["bytes"] > len(data) for name, data in kept.items())
        return {"ok": True, **facts, **text, "truncated": bool(facts.get("truncated")) or cut}

    async def _copy(self, reader: Reader) -> None:
        target = 2 if reader.stream == "stderr" else 1
        async for page in reader.pages(follow=True):
            if self._kept is None:
                try:
                    await write_all(target, page.data)
                except OSError:
                    self._late = asyncio.ensure_future(self._nobody_reads())
                    return
                continue
            kept = self._kept.setdefault(reader.stream, bytearray())
            kept += page.data[: KEPT_MAX_BYTES - len(kept)]
            if len(kept) == KEPT_MAX_BYTES:
                return

    async def _nobody_reads(self) -> None:
        """Whoever read our output has gone: the command shall know as it would without us, and end if it does not."""
        await self._client.call_raw("runs.signal", {"run_id": self._run_id, "signal": "SIGPIPE"}, repeat=False)
        await asyncio.sleep(TWICE_S)
        await self._client.call_raw("runs.kill", {"run_id": self._run_id, "signal": "SIGPIPE"})

    async def _pass_signals_on(self) -> None:
        while True:
            number = await self._signals.get()
            if number is signal.SIGINT and self._is_the_second():
                work = self._client.call_raw("runs.kill", {"run_id": self._run_id})
            else:
                asked = {"run_id": self._run_id, "signal": number.name}
                work = self._client.call_raw("runs.signal", asked, repeat=False)
            answer = await work
            if not answer.get("ok") and answer.get("error") not in ("conflict", "gone"):
                note(f"{number.name} was not passed on: {answer.get('message')}")

    def _is_the_second(self) -> bool:
        now = self._loop.time()
        soon, self._interrupted_at = now - self._interrupted_at < TWICE_S, now
        self._interrupts = self._interrupts + 1 if soon else 1
        if self._interrupts > 2:
            note(f"{self._run_id} goes on without this command line")
            os._exit(130)
        return soon

    def _feed(self) -> None:
        """In a thread: reads stdin and writes it to the run, one piece after the other, then its end.

        On a terminal an end is typed: Ctrl-D, at the beginning of a line.
        """
        last = b"\n"
        for piece in itertools.count():
            try:
                data = os.read(0, _STDIN_BYTES)
            except OSError:
                data = b""
            asked: dict[str, Any] = {"run_id": self._run_id, "key": f"{self._run_id}.stdin.{piece}"}
            at_end = b"\x04" if last.endswith(b"\n") else b"\x04\x04"
            typed = data or (at_end if self._is_terminal else b"")
            asked |= {"data_base64": b64encode(typed).decode()} if typed else {"close": True}
            last = data or last
            try:
                writing = asyncio.run_coroutine_threadsafe(self._client.call_raw("runs.write", asked), self._loop)
                answer = writing.result()
            except (RuntimeError, CancelledError):  # the run has ended, and this command line with it
                return
            except Refusal as refusal:
                answer = refusal.answer()
            if not answer.get("ok") and answer.get("error") not in ("conflict", "gone"):
                note(f"not all of stdin was passed on: {answer.get('message')}")
            if not data or not answer.get("ok"):
                return
