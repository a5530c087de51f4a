"""Connections: pipelines, pieces, limits, callers that go away, and a server that stops."""

import asyncio
import json
import os
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest

from limpet.surfaces.http import slow
from limpet.surfaces.http.connection import LOCAL_HEAD_MAX_BYTES
from limpet.surfaces.http.head import BODY_MAX_BYTES

from .serving import ask, calling, post, serving


@pytest.mark.requirement("6.6")
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_the_socket_is_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            assert stat.S_IMODE(place.socket.lstat().st_mode) == 0o600

    before = os.umask(umask)
    try:
        asyncio.run(scenario())
    finally:
        os.umask(before)


@pytest.mark.requirement("6.6", "F68")
def test_another_user_is_sent_away_whatever_the_modes(caplog: pytest.LogCaptureFixture) -> None:
    """Injector: a socket that everybody may open, and a caller with another uid; the daemon's own is served there."""

    async def scenario(home: Path) -> None:
        async with serving(home) as place:
            place.socket.chmod(0o666)
            command = ("curl", "-s", "--unix-socket", str(place.socket), "http://limpet/healthz")
            said: list[tuple[int | None, bytes]] = []
            for uid in (os.geteuid(), 65_534):
                caller = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE, cwd="/", user=uid)
                out, _ = await caller.communicate()
                said.append((caller.returncode, out))
            assert said[0] == (0, b'{"ok":true}')
            assert said[1][0] in (7, 52, 55, 56), said  # no answer; or it ended while curl connected, asked or read
            assert said[1][1] == b""

    with tempfile.TemporaryDirectory(prefix="lmp", dir="/tmp") as home:
        Path(home).chmod(0o755)
        asyncio.run(asyncio.wait_for(scenario(Path(home)), 20))
    assert [record.getMessage() for record in caplog.records] == ["refused a connection of uid 65534"]


def test_many_connect_before_one_is_accepted(tmp_path: Path) -> None:
    """The loop that would accept does not turn meanwhile; more wait than asyncio's own backlog of 100 lets in."""

    async def scenario() -> None:
        async with serving(tmp_path) as place:
            waiting = [socket.socket(socket.AF_UNIX) for _ in range(300)]
            try:
                for each in waiting:
                    each.setblocking(False)
                    each.connect(os.fspath(place.socket))
            finally:
                for each in waiting:
                    each.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_pipeline_is_answered_in_order(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            requests = [post("try.echo", json.dumps({"text": str(n)}).encode()) for n in range(50)]
            requests[10] = b"GET /healthz HTTP/1.1\r\nHost: l\r\n\r\n"
            requests[20] = post("try.refuse")
            requests[30] = post("try.echo?beside", b'{"text":"30"}')
            caller.send(b"".join(requests))
            for n in range(50):
                reply = await caller.reply()
                assert reply.status == (409 if n == 20 else 200)
                if n not in (10, 20):
                    assert reply.json()["text"] == str(n)

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.parametrize("chunked", [False, True])
def test_a_request_in_single_bytes(tmp_path: Path, chunked: bool) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            body = b'{"text":"in pieces"}'
            request = post("try.echo", body)
            if chunked:
                head = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
                start = f"POST /v1/call/try.echo HTTP/1.1\r\nHost: l\r\n{head}\r\n".encode()
                request = start + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
            for byte in request * 2:
                caller.send(bytes((byte,)))
                await asyncio.sleep(0)
            for _ in range(2):
                assert (await caller.reply()).json()["text"] == "in pieces"

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_large_body_and_answer_arrive_whole(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            text = "é" * 4_000_000
            reply = await ask(place, post("try.echo", json.dumps({"text": text}, ensure_ascii=False).encode()))
            assert reply.json()["text"] == text

    asyncio.run(asyncio.wait_for(scenario(), 30))


@pytest.mark.requirement("0.3", "F62")
def test_a_body_is_refused_by_its_announced_length(tmp_path: Path) -> None:
    """Nothing of it is sent: the refusal comes from the head alone."""

    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            caller.send(post("try.echo", b"", length=BODY_MAX_BYTES + 1))
            reply = await caller.reply()
            assert (reply.status, reply.json()["error"]) == (413, "too_large")
            assert reply.headers["connection"] == "close"
            assert await caller.is_closed()

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("0.3", "F62")
@pytest.mark.parametrize("route", ["", "?beside"])
def test_a_body_without_length_is_refused_where_it_gets_too_large(tmp_path: Path, route: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            head = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
            caller.send(f"POST /v1/call/try.echo{route} HTTP/1.1\r\nHost: l\r\n{head}\r\n".encode())
            piece = b"a" * (1 << 20)
            answer = asyncio.ensure_future(caller.reply())
            sent = 0
            while not answer.done():
                caller.send(b"%x\r\n%b\r\n" % (len(piece), piece))
                sent += len(piece)
                assert sent < 2 * BODY_MAX_BYTES
                try:
                    await caller.writer.drain()
                except ConnectionError:
                    break
            assert (await answer).status == 413

    asyncio.run(asyncio.wait_for(scenario(), 60))


def test_a_body_that_is_announced_is_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            body = b'{"text":"x"}'
            head = "Content-Type: application/json\r\nExpect: 100-continue\r\n"
            caller.send(post("try.echo", b"", head, len(body)))
            assert await caller.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
            caller.send(body)
            assert (await caller.reply()).json()["text"] == "x"

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_caller_who_wants_to_close_is_closed(tmp_path: Path, version: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            request = post("try.nothing", b"{}", "Content-Type: application/json\r\nConnection: close\r\n")
            caller.send(request.replace(b"HTTP/1.1", f"HTTP/{version}".encode()))
            reply = await caller.reply()
            assert (reply.status, reply.headers["connection"]) == (200, "close")
            assert await caller.is_closed()

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("whole", [True, False])
def test_a_head_has_its_limit(tmp_path: Path, whole: bool) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            header = b"X: " + b"a" * (LOCAL_HEAD_MAX_BYTES + (1 << 20))
            request = post("try.nothing").partition(b"\r\n")
            caller.send(request[0] + b"\r\n" + header + (b"\r\n" + request[2] if whole else b""))
            reply = await caller.reply()
            assert (reply.status, reply.json()["error"]) == (431, "too_large")
            assert await caller.is_closed()

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("sent", [b"POST /v1/ca", post("try.nothing", b"{", length=2)])
def test_a_message_has_its_time(tmp_path: Path, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "HEAD_S", 0.2)
    monkeypatch.setattr(slow, "BODY_S", 0.2)

    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            caller.send(sent)
            assert (await caller.reply()).status == 408
            assert await caller.is_closed()
            assert (await ask(place, post("try.nothing"))).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
@pytest.mark.parametrize(
    "garbage",
    [
        b"\0\1\2\3\r\n\r\n",
        b"POST /v1/call/try.nothing HTTP/9.9\r\n\r\n",
        b"POST /v1/call/try.nothing HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        b"POST /v1/call/try.nothing HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v1/call/try.nothing HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_one_answer(tmp_path: Path, garbage: bytes) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as caller:
            caller.send(garbage)
            reply = await caller.reply()
            assert 400 <= reply.status < 500
            assert reply.json()["ok"] is False
            assert await caller.is_closed()
            assert place.engine.calls == 0

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.parametrize("headers", ["", "Connection: close\r\n"])
def test_a_caller_that_goes_away_lets_go(tmp_path: Path, headers: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            async with calling(place) as caller:
                caller.send(post("try.wait", b"{}", "Content-Type: application/json\r\n" + headers))
                await place.engine.entered.wait()
            await place.engine.let_go.wait()

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_wait_holds_up_nobody_else(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as waiter:
            waiter.send(post("try.wait"))
            await place.engine.entered.wait()
            assert (await ask(place, post("try.nothing"))).status == 200
            place.engine.released.set()
            assert (await waiter.reply()).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.1")
def test_a_server_that_stops_tells_those_who_wait(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place) as waiter, calling(place) as idle:
            waiter.send(post("try.wait") + post("try.nothing"))  # the second is behind the wait: it is never begun
            idle.send(post("try.nothing"))
            await idle.reply()
            await place.engine.entered.wait()
            await place.server.close()
            first, second = await waiter.reply(), await waiter.reply()
            assert (first.status, first.json()["error"], first.json()["reason"]) == (503, "unavailable", "interrupted")
            assert (second.status, second.json()["reason"]) == (503, "stopping")
            assert await waiter.is_closed()
            assert await idle.is_closed()
            with socket.socket(socket.AF_UNIX) as late, pytest.raises(ConnectionError):
                late.connect(str(place.socket))

    asyncio.run(asyncio.wait_for(scenario(), 20))
