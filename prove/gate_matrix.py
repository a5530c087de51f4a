"""Who gets in over TCP (F65, F66): path x method x Host x Origin x token x content type, and wrong tokens in masses."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tests.contract.home import Home
from tests.contract.surface import Http

OPEN = ("/healthz", "/readyz")
GETS = (*OPEN, "/metrics", "/openapi.json", "/docs", "/v1/operations")
POSTS = ("/v1/call/shell", "/v1/call/daemon.status", "/v1/call/runs.list?x")
OTHERS = ("/mcp", "/ws", "/nothing", "/healthz/", "//healthz", "/v1/../healthz", "/%68ealthz")
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS")
AT_ONCE = 16
GUESSES_EACH = 5  # wrong tokens for each request of the matrix


@dataclass(frozen=True)
class Ask:
    """One request of the matrix, and whether it may have an effect or an answer, by rules of this module alone."""

    path: str
    method: str
    host: str
    origin: str | None
    token: str
    kind: str | None

    def may_pass(self) -> bool | None:
        """Whether a success is wanted; None where the head is right, and what is there is not this proof's concern."""
        if self.host != "right" or self.origin not in (None, "own"):
            return False
        is_open = self.path in OPEN and self.method in ("GET", "HEAD")
        if self.token != "right" and not is_open:
            return False
        if self.path in OTHERS:
            return None
        if self.path in GETS:
            return self.method in ("GET", "HEAD")
        return self.path in POSTS and self.method == "POST" and self.kind == "application/json"

    def raw(self, port: int, token: str, body: bytes) -> bytes:
        """Its bytes."""
        hosts = {
            "right": f"127.0.0.1:{port}",
            "evil": "evil.example",
            "suffix": f"127.0.0.1.evil.example:{port}",
            "dot": f"localhost.:{port}",
            "port": f"127.0.0.1:{port + 1}",
            "v6": "[::1]",
        }
        origins = {"own": f"http://127.0.0.1:{port}", "other port": f"http://127.0.0.1:{port + 1}"}
        tokens = {
            "right": f"Authorization: Bearer {token}\r\n",
            "wrong": f"Authorization: Bearer {token[::-1]}\r\n",
            "basic": f"Authorization: Basic {token}\r\n",
        }
        path = self.path
        if self.token == "query":
            path += f"{'&' if '?' in path else '?'}token={token}"
        lines = f"{self.method} {path} HTTP/1.1\r\nHost: {hosts[self.host]}\r\n{tokens.get(self.token, '')}"
        if self.origin is not None:
            lines += f"Origin: {origins.get(self.origin, self.origin)}\r\n"
        if self.kind is not None:
            lines += f"Content-Type: {self.kind}\r\n"
        sent = body if self.method in ("POST", "PUT") and self.path.startswith("/v1/call/shell") else b"{}"
        if self.method not in ("POST", "PUT"):
            sent = b""
        return f"{lines}Content-Length: {len(sent)}\r\n\r\n".encode() + sent


def asks() -> Iterator[Ask]:
    """The whole matrix."""
    for parts in itertools.product(
        (*GETS, *POSTS, *OTHERS),
        METHODS,
        ("right", "evil", "suffix", "dot", "port", "v6"),
        (None, "own", "http://evil.example", "null", "other port"),
        ("right", "wrong", "none", "basic", "query"),
        ("application/json", "text/plain", None),
    ):
        yield Ask(*parts)


async def status_of(port: int, request: bytes) -> int:
    """What it is answered; a connection of its own, as each hostile page would have."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        line = await reader.readline()
        headers = await reader.readuntil(b"\r\n\r\n")
        assert b"access-control" not in headers.lower(), headers
        return int(line.split()[1])
    finally:
        writer.close()


def prove(requests: int = 20_000) -> str:
    """Sends so many of the matrix to a daemon of its own, all that may pass among them; fails where another passes."""
    home = Home()
    try:
        ready = home.serve("--port", "0")
        port, token = int(ready["url"].rpartition(":")[2]), (home.path / "token").read_text().strip()
        canary = home.base / "ran"
        body = json.dumps({"command": f"echo >>{canary}"}).encode()
        whole = list(asks())
        passing = [ask for ask in whole if ask.may_pass()]
        rest = random.Random(1).sample(whole, min(len(whole), requests))
        drawn = [*passing, *(ask for ask in rest if not ask.may_pass())]
        begun = time.monotonic()
        seen = asyncio.run(_send(drawn, port, token, body))
        took_s = time.monotonic() - begun
        ran = len(canary.read_text().splitlines())
        wanted = sum(1 for ask in passing if ask.path == "/v1/call/shell")
        assert ran == wanted, f"{ran} commands ran, {wanted} were let in"
        guessed = asyncio.run(_guess(port, requests * GUESSES_EACH))
        assert Http(home).ok("daemon.status")["pid"] == ready["pid"]
        assert token not in (home.base / "serve.err").read_text()
        statuses = ", ".join(f"{status}: {count}" for status, count in sorted(seen.items()))
        guesses = ", ".join(f"{status}: {count}" for status, count in sorted(guessed.items()))
        return (
            f"{len(drawn)} of {len(whole)} heads over TCP in {took_s:.0f} s, {len(passing)} of them right: "
            f"each right one got in, 0 others did ({statuses})\n"
            f"{requests * GUESSES_EACH} wrong tokens: 0 got in ({guesses}), and the right one after them did"
        )
    finally:
        home.close()
        shutil.rmtree(home.base, ignore_errors=True)


async def _send(drawn: list[Ask], port: int, token: str, body: bytes) -> Counter[int]:
    seen: Counter[int] = Counter()
    queue = iter(drawn)

    async def work() -> None:
        for ask in queue:
            status = await status_of(port, ask.raw(port, token, body))
            passed = status < 400
            assert ask.may_pass() in (passed, None), f"{status} for {ask}"
            seen[status] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    return seen


async def _guess(port: int, guesses: int) -> Counter[int]:
    seen: Counter[int] = Counter()
    numbers = iter(range(guesses))

    async def work() -> None:
        for number in numbers:
            head = (
                f"GET /v1/operations HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {number:064x}\r\n\r\n"
            )
            status = await status_of(port, head.encode())
            assert status in (401, 429), status
            seen[status] += 1

    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(work())
    return seen
