"""MCP at `/mcp` of the daemon: the same tools behind the same gate (6.4, 6.6)."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from .fifos import Gate, Lifeline
from .home import Answer, Home, running, until
from .mcp import ENVELOPE, HANDSHAKES, Mcp, McpHttp, answer_in
from .surface import Http


def has_sdk(pid: int) -> bool:
    return "pydantic_core" in Path(f"/proc/{pid}/maps").read_text()


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("mode", ["legacy", "auto", ENVELOPE])
@pytest.mark.parametrize("way", ["socket", "port"])
def test_the_sdks_own_client(new_home: Callable[..., Home], mode: str, way: str) -> None:
    home = new_home("[http]\nport = 0\n")
    url = home.start()["url"].rstrip("/")
    token = (home.path / "token").read_text().strip()

    async def talk() -> None:
        if way == "socket":
            http = httpx2.AsyncClient(
                transport=httpx2.AsyncHTTPTransport(uds=str(home.socket)), base_url="http://localhost", timeout=60
            )
        else:
            http = httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60)
        place = "http://localhost" if way == "socket" else url
        heard: list[float] = []

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            del total, message
            heard.append(progress)

        async with http, Client(streamable_http_client(f"{place}/mcp", http_client=http), mode=mode) as client:
            assert client.protocol_version == (HANDSHAKES[-1] if mode == "legacy" else ENVELOPE)
            assert 5 < len((await client.list_tools()).tools) <= 12
            ran: Any = await client.call_tool("shell", {"command": "echo out; exit 3"})
            answer = ran.structured_content
            assert (answer["stdout"], answer["exit_code"]) == ("out\n", 3)
            failed = await client.call_tool("runs_read", {"run_id": "none"})
            assert failed.is_error
            contents: Any = (await client.read_resource(f"limpet://runs/{answer['run_id']}/stdout")).contents[0]
            assert contents.text == "out\n"
            await client.call_tool("shell", {"command": "sleep 5"}, progress_callback=hear)
        assert heard

    asyncio.run(talk())


@pytest.mark.requirement("6.4")
def test_the_sdk_is_imported_at_the_first_request(new_home: Callable[..., Home]) -> None:
    home = new_home()
    pid = home.start()["pid"]
    Http(home).ok("shell", {"command": "true"})
    assert not has_sdk(pid)
    assert McpHttp(home).ok("shell", {"command": "echo hi"})["stdout"] == "hi\n"
    assert has_sdk(pid)


@pytest.mark.requirement("6.4")
def test_the_query_chooses(house: Home) -> None:
    for tools, count in (("shell", 1), ("shell,backlog", 3), ("backlog,shell", 3)):
        listed = McpHttp(house, tools).message("tools/list", {})["result"]["tools"]
        assert len(listed) == count
    error = McpHttp(house, "shell").message("tools/call", {"name": "runs_list", "arguments": {}})["error"]
    assert error["code"] == -32602
    reply = Http(house).request("POST", "/mcp?tools=agnet", b"{}")
    assert (reply.status, reply.media) == (400, "application/problem+json")
    assert "did you mean agent" in json.loads(reply.body)["message"]


@pytest.mark.requirement("0.10")
def test_over_http_a_run_gets_the_short_list(house: Home) -> None:
    said = McpHttp(house).ok("shell", {"command": "env"})["stdout"]
    assert f"PATH={house.env['PATH']}\n" in said
    assert "XDG_CONFIG_HOME" not in said
    assert "LIMPET" not in "".join(line for line in said.splitlines() if not line.startswith("LC_"))


@pytest.mark.requirement("6.6")
def test_the_gate_is_before_it(new_home: Callable[..., Home]) -> None:
    home = new_home("[http]\nport = 0\n")
    url = httpx2.URL(home.start()["url"])
    token = (home.path / "token").read_text().strip()
    let_in = {"Authorization": f"Bearer {token}", "Accept": "application/json, text/event-stream"}
    ping: Answer = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}}
    with httpx2.Client(base_url=url, timeout=60) as http:
        for headers, status in (
            ({}, 401),
            ({"Authorization": "Bearer wrong"}, 401),
            ({**let_in, "Origin": "https://evil.example"}, 403),
            ({**let_in, "Host": "evil.example"}, 403),
            ({**let_in, "Content-Type": "text/plain"}, 400),
        ):
            for version in (HANDSHAKES[-1], ENVELOPE):
                sent = {"Content-Type": "application/json", "MCP-Protocol-Version": version, **headers}
                reply = http.post("/mcp", content=json.dumps(ping), headers=sent)
                assert reply.status_code == status, (headers, reply.text)
                assert not [name for name in reply.headers if name.lower().startswith("access-control")]
        assert http.post(f"/mcp?token={token}", json=ping).status_code == 401
    assert not has_sdk(home.daemon_pid())


@pytest.mark.requirement("6.4", "9.mcp")
def test_a_client_that_hangs_up_has_cancelled(house: Home, http: Http, lifeline: Lifeline) -> None:
    """In the revision without sessions there is no other way to say so."""
    mcp = McpHttp(house)
    call = {"name": "shell", "arguments": {"command": lifeline.hold + "sleep 1000", "labels": ["hung-up"]}}
    with contextlib.closing(mcp.open("tools/call", call)):
        lifeline.word()
    assert lifeline.gone(30)
    [run] = http.ok("runs.list", {"label": "hung-up"})["runs"]
    assert http.finish(run["run_id"])["status"] == "killed"


@pytest.mark.requirement("6.4", "9.mcp")
def test_a_wait_whose_client_hangs_up_leaves_the_run_alone(house: Home, http: Http, gate: Gate) -> None:
    run_id = http.spawn(f"{gate.wait} exit 4")
    mcp = McpHttp(house)
    call = {"name": "runs_wait", "arguments": {"run_ids": [run_id], "timeout_ms": 40_000}, "_meta": {}}
    with contextlib.closing(mcp.open("tools/call", call)) as connection:
        connection.sock.settimeout(30)
        assert connection.sock.recv(1, socket.MSG_PEEK)  # the stream is open: it waits
    assert http.facts(run_id)["status"] == "running"
    gate.open()
    assert http.finish(run_id)["exit_code"] == 4


@pytest.mark.requirement("6.4", "6.1")
def test_a_stop_leaves_no_client_hanging(new_home: Callable[..., Home], gate: Gate) -> None:
    """Injector: SIGTERM to the daemon, while a call waits and a session listens for news."""
    home = new_home()
    pid = home.start()["pid"]
    mcp = McpHttp(home)
    run_id = mcp.spawn(gate.wait + "exit 3")
    listening = open_session(home)
    call = {"name": "runs_wait", "arguments": {"run_ids": [run_id], "timeout_ms": 40_000}}
    with contextlib.closing(mcp.open("tools/call", call)) as connection:
        connection.sock.settimeout(30)
        assert connection.sock.recv(1, socket.MSG_PEEK)
        began = time.monotonic()
        os.kill(pid, signal.SIGTERM)
        body = connection.getresponse().read().decode()
    last = [line for line in body.splitlines() if line.startswith("data: ")][-1]
    answer = answer_in(json.loads(last.removeprefix("data: "))["result"])
    assert (answer["error"], answer["reason"]) == ("unavailable", "interrupted")
    until(lambda: not running(pid), "the daemon to be gone")
    assert time.monotonic() - began < 10
    listening.close()
    gate.open()
    assert Mcp(home).finish(run_id)["exit_code"] == 3


def open_session(home: Home) -> socket.socket:
    """A client of an older revision: a session, and its stream for what the server says unasked."""
    headers = "Host: localhost\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n"
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    with socket.socket(socket.AF_UNIX) as first:
        first.settimeout(60)
        first.connect(str(home.socket))
        first.sendall(f"POST /mcp HTTP/1.1\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += first.recv(65536)
    fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n\r\n")[0].split("\r\n")[1:])
    session = {name.lower(): value for name, value in fields.items()}["mcp-session-id"]
    stream = socket.socket(socket.AF_UNIX)
    stream.settimeout(60)
    stream.connect(str(home.socket))
    stream.sendall(f"GET /mcp HTTP/1.1\r\n{headers}Mcp-Session-Id: {session}\r\n\r\n".encode())
    assert stream.recv(12) == b"HTTP/1.1 200"
    return stream
