"""A plain MCP client for tests, over the stdio of `limpet mcp`: JSON-RPC, a line each"""

import itertools
import json
import queue
import subprocess
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .home import LIMPET, Answer, Home
from .surface import checked

WITHIN_S = 60.0
REVISION = "2025-06-18"


class McpError(Exception):
    """A JSON-RPC error."""

    def __init__(self, error: Answer) -> None:
        super().__init__(json.dumps(error))
        self.code: int = error["code"]
        self.message: str = error["message"]


class McpLines:
    """One server process. Every line it prints must be JSON-RPC."""

    def __init__(
        self, home: Home, *args: str, env: Mapping[str, str] | None = None, cwd: Path | None = None, greet: bool = True
    ) -> None:
        with (home.base / "mcp.err").open("ab") as told:
            self.process = subprocess.Popen(
                [LIMPET, "mcp", *args],
                env={**home.env, **(env or {})},
                cwd=cwd or home.work,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=told,
            )
        self._ids = itertools.count(1)
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.answers: dict[Any, Answer] = {}
        self.notes: list[Answer] = []
        self.server: Answer = {}
        if greet:
            asked = {"protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
            self.server = self.call("initialize", asked)
            self.say("notifications/initialized")

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def say(self, method: str, params: Answer | None = None) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", "method": method, "params": params or {}}).encode())

    def ask(self, method: str, params: Answer | None = None) -> int:
        number = next(self._ids)
        self.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}}).encode())
        return number

    def hear(self, timeout_s: float = WITHIN_S) -> Answer:
        """Takes one message in; the answer is the message."""
        line = self._lines.get(timeout=max(0.01, timeout_s))
        assert line, "the server has ended"
        message: Answer = json.loads(line)
        assert message["jsonrpc"] == "2.0", message
        if "method" in message:
            self.notes.append(message)
        else:
            self.answers[message.get("id")] = message
        return message

    def answer(self, number: int | None, timeout_s: float = WITHIN_S) -> Answer:
        """The result of a request; an error is raised."""
        deadline = time.monotonic() + timeout_s
        while number not in self.answers:
            self.hear(deadline - time.monotonic())
        message = self.answers.pop(number)
        if "error" in message:
            raise McpError(message["error"])
        result: Answer = message["result"]
        return result

    def call(self, method: str, params: Answer | None = None, timeout_s: float = WITHIN_S) -> Answer:
        return self.answer(self.ask(method, params), timeout_s)

    def tools(self) -> dict[str, Answer]:
        found: dict[str, Answer] = {}
        cursor: Answer = {}
        while True:
            page = self.call("tools/list", cursor)
            found |= {tool["name"]: tool for tool in page["tools"]}
            if not page.get("nextCursor"):
                return found
            cursor = {"cursor": page["nextCursor"]}

    def tool(self, name: str, arguments: Answer | None = None, timeout_s: float = WITHIN_S) -> Answer:
        """The whole result of a call."""
        return self.call("tools/call", {"name": name, "arguments": arguments or {}}, timeout_s)

    def close(self) -> None:
        """As a client ends a server: by the end of its input."""
        assert self.process.stdin is not None
        if not self.process.stdin.closed:
            self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        finally:
            self.process.wait(20)
            self._reader.join(20)
            assert self.process.stdout is not None
            self.process.stdout.close()

    def __enter__(self) -> "McpLines":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def told_by(result: Answer) -> Answer:
    """What the operation answered: the structured content, which the text repeats."""
    answer = checked(result["structuredContent"])
    assert bool(result.get("isError")) is (not answer["ok"] and answer["error"] != "timeout"), result
    texts = [part["text"] for part in result["content"] if part["type"] == "text"]
    assert texts, result
    return answer
