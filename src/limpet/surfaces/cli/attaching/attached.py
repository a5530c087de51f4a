"""One attachment: the run's terminal on the person's, keys and answers the other way, until one of the two ends it."""

import asyncio
import contextlib
import os
import signal
from base64 import b64decode, b64encode
from typing import Any, Final

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.attaching.line import Line
from limpet.surfaces.cli.attaching.terminal import OwnTerminal
from limpet.surfaces.cli.attaching.told import Prompt, Told
from limpet.surfaces.cli.attaching.typed import Typed
from limpet.surfaces.cli.daemon_client import succeeded
from limpet.surfaces.cli.say import visible

READ_BYTES: Final = 256 << 10
WAIT_MS: Final = 30_000
ATTEND_MS: Final = 5_000
KEYS_BYTES: Final = 64 << 10
# So many pieces of input wait for a program that does not read; then the person's terminal holds what is typed.
WAITING: Final = 16
ANSWERS_WITHIN_S: Final = 3.0
REST_WITHIN_S: Final = 0.1


class Attached:
    """`conversation_id` where the run is a conversation: commands are written in a line of ours when nothing runs."""

    def __init__(
        self, client: AsyncClient, terminal: OwnTerminal, run_id: str, conversation_id: str | None, detach_keys: str
    ) -> None:
        self._client = client
        self._terminal = terminal
        self._run_id = run_id
        self._conversation_id = conversation_id
        self._typed = Typed(detach_keys)
        self._told = Told(has_prompts=conversation_id is not None)
        self._line = Line()
        self._label = ""
        self._is_idle = False
        self._offset = 0
        # Whether this terminal is the one that answers what programs ask; and until when it may be doing so.
        self._answers = False
        self._expects_until = 0.0
        self._name = f"cli-{os.urandom(6).hex()}"
        self._keys: asyncio.Queue[bytes] = asyncio.Queue()
        self._screen = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
        self._over: asyncio.Future[int | None] = self._loop.create_future()

    async def attend(self) -> int | None:
        """Returns when the person detached (None), a signal came (its number), or the run ended (-1)."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            self._loop.add_signal_handler(number, self._finish, int(number))
        tasks: list[asyncio.Task[None]] = []
        resized = asyncio.Event()
        self._loop.add_signal_handler(signal.SIGWINCH, resized.set)
        try:
            await self._present(0)
            await self._begin()
            work = (self._read(), self._type(), self._present_on(), self._follow_size(resized))
            tasks += [asyncio.ensure_future(self._guarded(each)) for each in work]
            self._listen()
            return await self._over
        finally:
            self._loop.remove_reader(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _guarded(self, work: Any) -> None:
        try:
            await work
        except Exception as error:  # noqa: BLE001  (whoever waits for the end raises it, once the terminal is given back)
            if not self._over.done():
                self._over.set_exception(error)

    def _finish(self, how: int | None) -> None:
        if not self._over.done():
            self._over.set_result(how)

    # The screen.

    async def _begin(self) -> None:
        """The size, then the screen as it is, drawn; nothing of the past is shown as it was said."""
        rows, cols = self._terminal.size()
        await self._client.call_raw("runs.resize", {"run_id": self._run_id, "rows": rows, "cols": cols})
        asked = {"run_id": self._run_id, "format": "ansi"}
        shown = succeeded(await self._client.call_raw("runs.snapshot", asked))
        self._offset = shown["total_bytes"]
        lines = shown["screen"].split("\r\n")[:rows]
        modes = "".join(f"\x1b[?{mode}h" for mode in shown["modes"])
        cursor = shown["cursor"]
        place = f"\x1b[{min(cursor['row'], rows - 1) + 1};{cursor['col'] + 1}H"
        begin = "\x1b[?1049h" if shown["alternate_screen"] else ""
        hidden = "" if cursor["visible"] else "\x1b[?25l"
        await self._show((begin + "\x1b[0m\x1b[2J\x1b[H" + "\r\n".join(lines) + modes + hidden + place).encode())
        if self._conversation_id is not None:
            await self._look_whether_idle(is_new_line=cursor["col"] != 0)
        if shown["alternate_screen"] and (rows, cols) == (shown["size"]["rows"], shown["size"]["cols"]) and rows > 1:
            # What a drawing program has told the terminal before (margins, say) is told again when it draws anew.
            for height in (rows - 1, rows):
                await self._client.call_raw("runs.resize", {"run_id": self._run_id, "rows": height, "cols": cols})

    async def _show(self, data: bytes) -> None:
        async with self._screen:
            await asyncio.to_thread(self._terminal.show, data)

    async def _read(self) -> None:
        while True:
            asked = {
                "run_id": self._run_id,
                "stream": "pty",
                "offset": self._offset,
                "max_bytes": READ_BYTES,
                "encoding": "base64",
                "view": "terminal",
                "wait_ms": WAIT_MS,
            }
            answer = await self._client.call_raw("runs.read", asked)
            if answer.get("error") == "gone" and isinstance(answer.get("base"), int):
                self._offset = answer["base"]
                continue
            page = succeeded(answer)
            self._offset = page["next_offset"]
            if page["data"]:
                await self._say(b64decode(page["data"]))
            if page["eof"]:
                self._finish(-1)
                return

    async def _say(self, data: bytes) -> None:
        if self._is_idle:
            await self._show(b"\r\x1b[K")
        shown, asks = self._told.take(data, asks=self._answers)
        if asks:
            self._expects_until = self._loop.time() + ANSWERS_WITHIN_S
        for each in shown:
            if isinstance(each, Prompt):
                self._back_at_prompt(each)
            else:
                self._is_idle = False
                await self._show(each)
        if self._conversation_id is None:
            return
        if self._is_idle:
            await self._draw_line()
        elif any(isinstance(each, Prompt) for each in shown):
            await self._look_whether_idle(is_new_line=False)

    def _back_at_prompt(self, prompt: Prompt) -> None:
        self._is_idle = True
        with contextlib.suppress(ValueError):
            self._label = _label(b64decode(prompt.cwd_b64).decode(errors="replace"), prompt.exit_code)

    async def _look_whether_idle(self, *, is_new_line: bool) -> None:
        status = succeeded(await self._client.call_raw("pty.status", {"conversation_id": self._conversation_id}))
        self._is_idle = status["mode"] == "idle"
        self._label = self._label or _label(status["cwd"], 0)
        if self._is_idle:
            await self._show(b"\r\n" if is_new_line else b"")
            await self._draw_line()

    async def _draw_line(self) -> None:
        await self._show(self._line.shown(self._label, self._terminal.size()[1]))

    async def _follow_size(self, resized: asyncio.Event) -> None:
        while True:
            await resized.wait()
            resized.clear()
            rows, cols = self._terminal.size()
            await self._client.call_raw("runs.resize", {"run_id": self._run_id, "rows": rows, "cols": cols})
            if self._is_idle:
                await self._draw_line()

    # Who answers.

    async def _present(self, wait_ms: int) -> None:
        asked = {"run_id": self._run_id, "terminal": self._name, "wait_ms": wait_ms}
        answer = await self._client.call_raw("runs.attend", asked)
        self._answers = bool(answer.get("answers"))

    async def _present_on(self) -> None:
        while True:
            await self._present(ATTEND_MS)

    # Keys.

    def _listen(self) -> None:
        self._loop.add_reader(0, self._on_keys)

    def _on_keys(self) -> None:
        try:
            data = os.read(0, KEYS_BYTES)
        except OSError:
            data = b""
        if not data:
            self._finish(int(signal.SIGHUP))
            self._loop.remove_reader(0)
            return
        self._keys.put_nowait(data)
        if self._keys.qsize() >= WAITING:
            self._loop.remove_reader(0)

    async def _type(self) -> None:
        while True:
            data = await self._keys.get()
            while not self._keys.empty() and len(data) < KEYS_BYTES:
                data += self._keys.get_nowait()
            expects = self._loop.time() < self._expects_until
            if expects and self._typed.begun_answer(data):
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(REST_WITHIN_S):
                        data += await self._keys.get()
            for piece in self._typed.take(data, expects_answers=expects):
                if piece.is_answer:
                    await self._send("runs.answer", piece.data)
                else:
                    await self._pass(piece.data)
            if self._typed.detached:
                self._finish(None)
                return
            self._listen()

    async def _pass(self, data: bytes) -> None:
        """To the program; where none runs in a conversation, into the line for the next command."""
        while data:
            if not self._is_idle:
                await self._send("runs.write", data)
                return
            data = self._line.take(data)
            if self._line.is_over:
                self._finish(None)
                return
            if self._line.wants_clear:
                self._line.wants_clear = False
                await self._show(b"\x1b[2J\x1b[H")
            if self._line.entered:
                await self._run(self._line.entered.pop(0))
            else:
                await self._draw_line()

    async def _send(self, operation: str, data: bytes) -> None:
        asked = {"run_id": self._run_id, "data_base64": b64encode(data).decode()}
        answer = await self._client.call_raw(operation, asked, repeat=False)
        if not answer.get("ok"):
            await self._show(b"\x07")  # it cannot be typed now: a line too long for line mode, or nobody is there

    async def _run(self, command: str) -> None:
        written = "\r\n".join(map(visible, command.split("\n")))
        await self._show(f"\r\x1b[K{self._label}{written}\r\n".encode())
        if not command.strip():
            await self._draw_line()
            return
        self._is_idle = False
        asked = {"conversation_id": self._conversation_id, "cmd": command, "timeout_ms": 1000}
        answer = await self._client.call_raw("pty.exec_interactive", asked, repeat=False)
        if not answer.get("ok"):
            message = visible(str(answer.get("message")))
            await self._show(f"limpet: {message}\r\n".encode())
            await self._look_whether_idle(is_new_line=False)


def _label(cwd: str, exit_code: int) -> str:
    home = os.environ.get("HOME", "")
    short = f"~{cwd[len(home) :]}" if home and (cwd == home or cwd.startswith(f"{home}/")) else cwd
    return f"{f'[{exit_code}] ' if exit_code else ''}{short} $ "
