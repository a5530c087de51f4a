"""`limpet mcp` as one more way in: the tests' own client of the protocol, as plain as can be."""

import concurrent.futures
import itertools
import json
import subprocess
import threading
from collections.abc import Mapping

from .home import Answer, Home
from .surface import Surface, checked


class Mcp(Surface):
    """`limpet mcp` as a client has it: one process, JSON-RPC by lines, any number of calls at once."""

    name = "mcp"

    def __init__(self, home: Home, *args: str, env: Mapping[str, str] | None = None) -> None:
        self.process = home.popen("mcp", *(args or ("--tools", "all")), stdin=subprocess.PIPE, env=env)
        self._ids = itertools.count(1)
        self._asked: dict[int, concurrent.futures.Future[Answer]] = {}
        self.said: list[Answer] = []
        """Notifications, as they came."""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        client = {"name": "tests", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        self.send({"method": "notifications/initialized"})

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message: Answer = json.loads(line)
            if "method" in message:
                self.said.append(message)
            elif message["id"] is not None:
                self._asked.pop(message["id"]).set_result(message)
        for future in list(self._asked.values()):
            future.set_exception(EOFError("limpet mcp has ended"))

    def send(self, message: Answer) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def begin(self, method: str, params: Answer) -> tuple[int, "concurrent.futures.Future[Answer]"]:
        """Asks, and does not wait: the request's id, and the message that will answer it."""
        number = next(self._ids)
        future: concurrent.futures.Future[Answer] = concurrent.futures.Future()
        self._asked[number] = future
        self.send({"id": number, "method": method, "params": params})
        return number, future

    def request(self, method: str, params: Answer) -> Answer:
        message = self.begin(method, params)[1].result(100)
        assert "error" not in message, message
        return message["result"]

    def call(self, op: str, params: Answer | None = None) -> Answer:
        return self.told(self.request("tools/call", {"name": op, "arguments": params or {}}))

    def told(self, result: Answer) -> Answer:
        """The answer in a result, whose parts agree."""
        answer = checked(result["structuredContent"])
        assert json.loads(result["content"][0]["text"]) == answer
        assert result["isError"] == (not answer["ok"] and answer["error"] != "timeout")
        return answer

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        assert self.process.wait(20) == 0
        self._reader.join(20)
