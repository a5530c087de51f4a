"""One function `call(op, params)` for each way in: HTTP on the Unix socket, Python async and sync, the CLI."""

import asyncio
import base64
import contextlib
import http.client
import json
import os
import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Generator, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import limpet

from .home import Answer, Home

T = TypeVar("T")

STATUS = {
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
    "timeout": 200,
}


def checked(answer: Any) -> Answer:
    """The form that 0.3 gives to every answer."""
    assert isinstance(answer, dict), answer
    told: Answer = answer  # pyright: ignore[reportUnknownVariableType]
    assert isinstance(told["ok"], bool), told
    if not told["ok"]:
        assert told["error"] in STATUS, told
        assert isinstance(told["message"], str), told
        assert told["message"], told
    text = json.dumps(told.get("message", "")) + json.dumps(told.get("error_message", ""))
    assert "Traceback (most recent call last)" not in text, told
    return told


class Surface(ABC):
    name: str

    @abstractmethod
    def call(self, op: str, params: Answer | None = None) -> Answer: ...

    def close(self) -> None:
        """Let go of what the surface holds, if anything."""
        return

    def ok(self, op: str, params: Answer | None = None) -> Answer:
        answer = self.call(op, params)
        assert answer["ok"] is True, (op, params, answer)
        return answer

    def refused(self, op: str, params: Answer | None, code: str) -> Answer:
        answer = self.call(op, params)
        assert answer["ok"] is False, (op, params, answer)
        assert answer["error"] == code, (op, params, answer)
        return answer

    def spawn(self, command: str, **params: Any) -> str:
        run_id = self.ok("shell", {"action": "spawn", "command": command, **params})["run_id"]
        assert isinstance(run_id, str)
        return run_id

    def facts(self, run_id: str) -> Answer:
        """The facts of a run, whether `runs.get` answers them flat or under `run`."""
        answer = self.ok("runs.get", {"run_id": run_id})
        return answer.get("run", answer)

    def finish(self, run_id: str, timeout_ms: int = 60_000) -> Answer:
        self.ok("runs.wait", {"run_ids": [run_id], "for": [{"exit": True}], "timeout_ms": timeout_ms})
        return self.facts(run_id)

    def read(self, run_id: str, stream: str = "stdout", offset: int = 0, **params: Any) -> Answer:
        params = {"run_id": run_id, "stream": stream, "offset": offset, "max_bytes": 1 << 20, **params}
        return self.ok("runs.read", params)

    def bytes_of(self, run_id: str, stream: str = "stdout", offset: int = 0) -> bytes:
        """All bytes of a stream from an offset on, page by page."""
        whole = b""
        while True:
            page = self.read(run_id, stream, offset, encoding="base64")
            whole += base64.b64decode(page["data"], validate=True)
            assert page["next_offset"] >= offset, page
            if page["next_offset"] >= page["total_bytes"]:
                return whole
            assert page["next_offset"] > offset, page
            offset = page["next_offset"]


@dataclass(frozen=True)
class Reply:
    status: int
    media: str
    body: bytes

    def answer(self) -> Answer:
        return checked(json.loads(self.body))


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_s: float) -> None:
        super().__init__("localhost", timeout=timeout_s)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Http(Surface):
    name = "http"

    def __init__(self, home: Home) -> None:
        self._socket = home.socket

    def request(self, method: str, path: str, body: bytes | Iterator[bytes] = b"", timeout_s: float = 60) -> Reply:
        connection = UnixConnection(self._socket, timeout_s)
        try:
            headers = {"Content-Type": "application/json"} if method == "POST" else {}
            # A server may answer before it has the whole body: the answer is still to be read.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, path, body=body or None, headers=headers)
            response = connection.getresponse()
            media = response.getheader("Content-Type", "").partition(";")[0].strip()
            reply = Reply(response.status, media, response.read())
        finally:
            connection.close()
        assert b"Traceback (most recent call last)" not in reply.body, reply
        return reply

    def post(self, op: str, body: bytes | Iterator[bytes]) -> Reply:
        return self.request("POST", f"/v1/call/{op}", body)

    def call(self, op: str, params: Answer | None = None) -> Answer:
        reply = self.post(op, json.dumps(params or {}).encode())
        answer = reply.answer()
        assert reply.status == (200 if answer["ok"] else STATUS[answer["error"]]), reply
        problem = reply.status >= 400
        assert reply.media == ("application/problem+json" if problem else "application/json"), reply
        return undressed(reply.status, answer) if problem else answer


def undressed(status: int, answer: Answer) -> Answer:
    """A failure without what RFC 9457 puts around it: the JSON that is the same everywhere."""
    assert (answer.pop("status"), answer.pop("detail")) == (status, answer["message"]), answer
    assert answer.pop("title"), answer
    assert answer.pop("type"), answer
    return answer


class Cli(Surface):
    name = "cli"

    def __init__(self, home: Home) -> None:
        self._home = home

    def call(self, op: str, params: Answer | None = None) -> Answer:
        text = json.dumps(params or {})
        # One word of a command line is at most 128 KiB; more goes through stdin.
        long = len(text) > 100_000
        done = self._home.limpet("call", op, "-" if long else text, stdin=text.encode() if long else None)
        assert b"Traceback (most recent call last)" not in done.stdout + done.stderr, done
        answer = checked(json.loads(done.stdout))
        if answer["ok"]:
            assert done.returncode == 0, done
        elif answer["error"] == "timeout":
            assert done.returncode == 124, done
        elif answer["error"] == "invalid_argument":
            assert done.returncode in (1, 2), done
        else:
            assert done.returncode == 1, done
        return answer


class Caller(Protocol):
    async def call(self, op: str, /, **params: Any) -> dict[str, Any]: ...


@contextlib.contextmanager
def pointed_at(home: Home) -> Generator[None]:
    """Clients find their daemon by LIMPET_HOME."""
    before = os.environ.get("LIMPET_HOME")
    os.environ["LIMPET_HOME"] = str(home.path)
    try:
        yield
    finally:
        if before is None:
            del os.environ["LIMPET_HOME"]
        else:
            os.environ["LIMPET_HOME"] = before


class Sync(Surface):
    name = "sync"

    def __init__(self, home: Home) -> None:
        self._context = limpet.connect_sync()
        with pointed_at(home):
            self._client = self._context.__enter__()

    def call(self, op: str, params: Answer | None = None) -> Answer:
        return checked(self._client.call(op, **(params or {})))

    def close(self) -> None:
        self._context.__exit__(None, None, None)


class Async(Surface):
    name = "async"

    def context(self, home: Home) -> AbstractAsyncContextManager[Caller]:  # noqa: ARG002
        """What is entered for a client that can be asked."""
        return limpet.connect()

    def __init__(self, home: Home) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._context = self.context(home)
        with pointed_at(home):
            self._client = self._in_loop(self._context.__aenter__())

    def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(100)

    def call(self, op: str, params: Answer | None = None) -> Answer:
        return checked(self._in_loop(self._client.call(op, **(params or {}))))

    def close(self) -> None:
        self._in_loop(self._context.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)
        self._loop.close()


class InProcess(Async):
    """The engine itself, in the process of the test; no daemon may hold the home."""

    name = "in-process"

    def context(self, home: Home) -> AbstractAsyncContextManager[Caller]:
        home.path.mkdir(mode=0o700, exist_ok=True)
        return limpet.open(home.path)
