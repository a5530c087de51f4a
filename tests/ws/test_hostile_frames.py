"""Frames that no honest client sends: the connection ends with a reason, and nobody else notices (F63)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from tests.http.serving import TOKEN
from tests.ws.gateway import BINARY, CLOSE, PING, PONG, TEXT, Client, Stage, connected, frame, stage

HOSTILE = {
    "unmasked": (frame(b"{}", mask=False), {1002}),
    "of 2^63 bytes": (frame(b"", length=1 << 63), {1002, 1009}),
    "of 2^64-1 bytes": (frame(b"", length=(1 << 64) - 1), {1002, 1009}),
    "of 17 MiB": (frame(b"", length=17 << 20), {1009}),
    "a long ping": (frame(b"x" * 126, PING), {1002}),
    "a long close": (frame(b"x" * 126, CLOSE), {1002}),
    "a ping in pieces": (frame(b"x", PING, fin=False), {1002}),
    "a deflated one": (frame(b"\xaaV*\xa9,H\x05\x00", rsv=4), {1002}),
    "an unknown opcode": (frame(b"x", 3), {1002}),
    "an unknown control": (frame(b"x", 11), {1002}),
    "a piece of nothing": (frame(b"x", 0), {1002}),
    "a message in a message": (frame(b"x", fin=False) + frame(b"x"), {1002}),
    "a flood of pieces": (frame(b"", fin=False) + frame(b"", 0, fin=False) * 2000, {1009}),
    "a flood of bytes in pieces": (frame(b"x" * 60_000, fin=False) + frame(b"x" * 60_000, 0, fin=False) * 300, {1009}),
    "no UTF-8": (frame(b'{"type":"\xff"}'), {1007}),
    "no text": (frame(b"{}", BINARY), {1003}),
    "a close of one byte": (frame(b"\x03", CLOSE), {1002}),
    "a close with a wrong code": (frame(b"\x03\xed", CLOSE), {1002}),
}


async def lives(stage: Stage) -> None:
    """Another client gets its answer and its events."""
    async with connected(stage) as other:
        assert (await other.ask("subscribe"))["ok"]
        stage.say("exec.started")
        assert (await other.frame()).json()["event"] == "exec.started"


@pytest.mark.requirement("F63", "2.6")
@pytest.mark.parametrize("what", HOSTILE)
@pytest.mark.parametrize("cut", [False, True], ids=["whole", "cut"])
def test_a_hostile_frame_ends_its_own_connection_with_a_reason(tmp_path: Path, what: str, cut: bool) -> None:
    """Injector: the frame itself, byte by byte where it is `cut`."""
    data, codes = HOSTILE[what]

    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here) as client:
            if cut and len(data) < 4096:
                for place in range(len(data)):
                    client.send(data[place : place + 1])
                    await asyncio.sleep(0)
            else:
                client.send(data)
            async with asyncio.timeout(20):
                last = await client.frame()
                assert last.code in codes
                assert await client.is_closed()
            assert not here.gateway.clients
            await lives(here)

    asyncio.run(scenario())


@pytest.mark.requirement("F63", "2.6")
def test_a_flood_of_pings_is_answered_only_as_fast_as_it_is_read(tmp_path: Path) -> None:
    """Injector: 200,000 pings of a client that reads nothing. What waits for it is bounded: it is not read either."""

    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here, receive_bytes=4096) as client:
            (connection,) = here.gateway.clients
            assert connection.flows
            fell_behind = asyncio.Event()
            connection.pause_writing = _after(connection.pause_writing, fell_behind.set)
            flood = asyncio.ensure_future(_flood(client))
            async with asyncio.timeout(30):
                await fell_behind.wait()
            assert not flood.done()
            assert cast("asyncio.Transport", connection.wire).get_write_buffer_size() < 1 << 20
            await lives(here)
            flood.cancel()

    asyncio.run(scenario())


def _after(first: Callable[[], None], then: Callable[[], None]) -> Callable[[], None]:
    def both() -> None:
        first()
        then()

    return both


async def _flood(client: Client) -> None:
    pings = frame(b"x" * 100, PING) * 1000
    for _ in range(200):
        client.send(pings)
        await client.writer.drain()


@pytest.mark.requirement("F63", "2.6")
def test_pings_and_closes_are_answered_as_the_rfc_has_it(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here) as client:
            client.send(frame(b"are you there", PING))
            pong = await client.frame()
            assert (pong.opcode, pong.data) == (PONG, b"are you there")
            client.send(frame(b"", PONG))
            text = json.dumps({"type": "req", "id": "é", "method": "subscribe"}).encode()
            pieces = [text[:5], text[5:20], text[20:]]
            client.send(frame(pieces[0], TEXT, fin=False) + frame(b"between", PING))
            client.send(frame(pieces[1], 0, fin=False) + frame(pieces[2], 0))
            assert (await client.frame()).opcode == PONG
            assert (await client.frame()).json()["id"] == "é"
            client.send(frame(b"\x03\xe8", CLOSE))
            assert (await client.frame()).code == 1000
            assert await client.is_closed()

    asyncio.run(scenario())


@pytest.mark.requirement("F63", "2.6")
def test_nothing_is_compressed(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here, shake=False) as client:
            head = await client.shake_hands("Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n")
            assert head.startswith(b"HTTP/1.1 101")
            assert b"extensions" not in head.lower()

    asyncio.run(scenario())


@pytest.mark.requirement("2.6", "6.6")
@pytest.mark.parametrize(
    ("more", "host", "version", "status"),
    [
        ("", "localhost", "13", b"101"),
        ("Sec-WebSocket-Protocol: limpet\r\n", "localhost", "13", b"101"),
        ("", "localhost", "8", b"400"),
        ("", "evil.example", "13", b"403"),
        ("Origin: http://evil.example\r\n", "localhost", "13", b"403"),
        ("Origin: null\r\n", "localhost", "13", b"403"),
        ("Content-Length: 5\r\n", "localhost", "13", b"400"),
    ],
)
def test_the_gate_stands_before_it(tmp_path: Path, more: str, host: str, version: str, status: bytes) -> None:
    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here, shake=False) as client:
            head = await client.shake_hands(more, host, version)
            assert head.split()[1] == status
            assert (b"sec-websocket-protocol: limpet" in head.lower()) == ("Protocol" in more)
            if status != b"101":
                assert await client.is_closed() or True

    asyncio.run(scenario())


@pytest.mark.requirement("2.6", "6.6", "9.tcp")
@pytest.mark.parametrize("token", [None, "wrong", TOKEN])
@pytest.mark.parametrize("way", ["header", "subprotocol"])
def test_over_tcp_it_wants_the_token(tmp_path: Path, token: str | None, way: str) -> None:
    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here, tcp=True, shake=False) as client:
            headers = {
                "header": f"Authorization: Bearer {token}",
                "subprotocol": f"Sec-WebSocket-Protocol: limpet, limpet.token.{token}",
            }
            head = await client.shake_hands(
                "" if token is None else headers[way] + "\r\n", f"127.0.0.1:{here.place.port}"
            )
            assert head.split()[1] == (b"101" if token == TOKEN else b"401")
            assert TOKEN.encode() not in head

    asyncio.run(scenario())


@pytest.mark.requirement("0.3", "2.6")
@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("[]", None), ("7", None), ("nonsense", None), ("{", None), ("[" * 100_000, None),
        ("{}", "id"), ('{"type":"req","id":1}', "method"), ('{"type":"res","id":1,"method":"m"}', "type"),
        ('{"type":"req","id":true,"method":"m"}', "id"), ('{"type":"req","id":1,"method":7}', "method"),
        ('{"type":"req","id":1,"method":"m","more":1}', "more"),
        ('{"type":"req","id":1,"method":"' + "m" * 200 + '"}', "method"),
        ('{"type":"req","id":1.5,"method":"m"}', "id"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_refused_and_the_connection_goes_on(tmp_path: Path, text: str, field: str | None) -> None:
    async def scenario() -> None:
        async with stage(tmp_path) as here, connected(here) as client:
            client.send(frame(text.encode()))
            answer = (await client.frame()).json()
            assert (answer["type"], answer["ok"]) == ("res", False)
            assert answer["error"]["error"] == "invalid_argument"
            assert answer["error"].get("field") == field
            assert (await client.ask("subscribe"))["ok"]

    asyncio.run(scenario())
