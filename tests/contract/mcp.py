"""`limpet mcp` as one more way in: the tests' own client of the protocol, as plain as can be."""

import concurrent.futures
import contextlib
import itertools
import json
import subprocess
import threading
import time
from collections.abc import Mapping
from typing import Final

from .home import Answer, Home
from .surface import Surface, UnixConnection, checked

HANDSHAKES: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
ENVELOPE: Final = "2026-07-28"
_KEY: Final = "io.modelcontextprotocol/"
ANSWERED_S: Final = 100

Message = concurrent.futures.Future[Answer]


def answer_in(result: Answer) -> Answer:
    """The answer in a result, whose parts agree."""
    answer = checked(result["structuredContent"])
    assert json.loads(result["content"][0]["text"]) == answer
    assert result["isError"] == (not answer["ok"] and answer["error"] != "timeout")
    return answer


class Mcp(Surface):
    """One process, JSON-RPC by lines, any number of calls at once, in any revision of the protocol."""

    name = "mcp"

    def __init__(
        self,
        home: Home,
        *args: str,
        env: Mapping[str, str] | None = None,
        version: str = HANDSHAKES[-1],
        capabilities: Answer | None = None,
    ) -> None:
        self.process = home.popen("mcp", *(args or ("--tools", "all")), stdin=subprocess.PIPE, env=env)
        self._ids = itertools.count(1)
        self._asked: dict[int | str, Message] = {}
        self._heard = threading.Condition()
        self._said: list[tuple[float, Answer]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._meta: Answer = {}
        client = {"name": "tests", "version": "1"}
        if version == ENVELOPE:
            self._meta = {"protocolVersion": version, "clientInfo": client, "clientCapabilities": capabilities or {}}
            self._meta = {_KEY + name: value for name, value in self._meta.items()}
            return
        hello = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": client}
        self.welcome = self.request("initialize", hello)
        self.send({"method": "notifications/initialized"})

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: Answer = json.loads(line)
            if "method" in message or message["id"] is None:
                with self._heard:
                    self._said.append((time.monotonic(), message))
                    self._heard.notify_all()
            else:
                self._asked.pop(message["id"]).set_result(message)
        for future in list(self._asked.values()):
            future.set_exception(EOFError("limpet mcp has ended"))

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, message: Answer) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def begin(self, method: str, params: Answer) -> tuple[int, Message]:
        """Asks, and does not wait: the request's id, and the message that will answer it. Progress has that id too."""
        number = next(self._ids)
        future = self.expect(number)
        meta = {**self._meta, "progressToken": number, **params.get("_meta", {})}
        self.send({"id": number, "method": method, "params": {**params, "_meta": meta}})
        return number, future

    def expect(self, number: int | str) -> Message:
        """What will answer that id, whoever sends a request with it."""
        return self._asked.setdefault(number, concurrent.futures.Future())

    def cancel(self, number: int) -> None:
        """Nobody waits for that request any more: it is never answered."""
        del self._asked[number]
        self.send({"method": "notifications/cancelled", "params": {"requestId": number}})

    def begin_call(self, op: str, **params: object) -> tuple[int, Message]:
        return self.begin("tools/call", {"name": op, "arguments": params})

    def request(self, method: str, params: Answer) -> Answer:
        message = self.begin(method, params)[1].result(ANSWERED_S)
        assert "error" not in message, message
        return message["result"]

    def refusal(self, method: str, params: Answer) -> Answer:
        """The error of the protocol that a request is answered with."""
        message = self.begin(method, params)[1].result(ANSWERED_S)
        assert "result" not in message, message
        return message["error"]

    def call(self, op: str, params: Answer | None = None) -> Answer:
        return answer_in(self.request("tools/call", {"name": op, "arguments": params or {}}))

    def ended(self, message: Message) -> Answer:
        """The answer of a call that was begun."""
        return answer_in(message.result(ANSWERED_S)["result"])

    def progress(self, number: int, *, count: int = 1, timeout_s: float = 30) -> list[float]:
        """Waits until so much progress of a request was told; when each came."""

        def times() -> list[float]:
            params = [(at, message["params"]) for at, message in self._said if "method" in message]
            return [at for at, told in params if told.get("progressToken") == number]

        with self._heard:
            assert self._heard.wait_for(lambda: len(times()) >= count, timeout_s), f"only {len(times())} of {count}"
            return times()

    def complaint(self) -> Answer:
        """The next error that answers no request."""
        with self._heard:
            assert self._heard.wait_for(lambda: any("error" in each for _, each in self._said), ANSWERED_S)
            place = next(place for place, (_, each) in enumerate(self._said) if "error" in each)
            return self._said.pop(place)[1]

    def close(self) -> None:
        """As a client ends its server."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self._reader.join(20)


class McpHttp(Surface):
    """`/mcp` on the daemon's socket, in the revision without sessions: a request is all that a client needs."""

    name = "mcp-http"

    def __init__(self, home: Home, tools: str = "all") -> None:
        self._socket = home.socket
        self._path = f"/mcp?tools={tools}"

    def open(self, method: str, params: Answer, timeout_s: float = ANSWERED_S) -> UnixConnection:
        """A request on a connection of its own, whose answer is not read yet."""
        meta: Answer = {"protocolVersion": ENVELOPE, "clientCapabilities": {}}
        params = {**params, "_meta": {_KEY + name: value for name, value in meta.items()}}
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": ENVELOPE,
            "Mcp-Method": method,
        }
        if "name" in params:
            headers["Mcp-Name"] = params["name"]
        connection = UnixConnection(self._socket, timeout_s)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        connection.request("POST", self._path, body=body.encode(), headers=headers)
        return connection

    def message(self, method: str, params: Answer) -> Answer:
        with contextlib.closing(self.open(method, params)) as connection:
            response = connection.getresponse()
            body = response.read().decode()
        if response.getheader("Content-Type", "").startswith("text/event-stream"):
            body = [line for line in body.splitlines() if line.startswith("data: ")][-1].removeprefix("data: ")
        message: Answer = json.loads(body)
        return message

    def call(self, op: str, params: Answer | None = None) -> Answer:
        message = self.message("tools/call", {"name": op, "arguments": params or {}})
        assert "error" not in message, message
        return answer_in(message["result"])
