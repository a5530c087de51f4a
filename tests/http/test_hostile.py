"""Hostile HTTP with real sockets, on TCP and on the Unix socket: one clean answer in its turn, and nothing done."""

import asyncio
import json
import random
from pathlib import Path

import pytest

from limpet.surfaces.http import slow
from limpet.surfaces.http.connection import REMOTE_HEAD_MAX_BYTES

from .serving import TOKEN, Caller, Place, Reply, calling, post, serving

JSON = "Content-Type: application/json\r\n"
WAYS = [pytest.param(True, id="tcp"), pytest.param(False, id="socket")]


def head(place: Place, method: str = "POST", path: str = "/v1/call/try.nothing", more: str = "") -> str:
    """The head of a good request, but for its last line."""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\nAuthorization: Bearer {TOKEN}\r\n{JSON}{more}"


async def answers(caller: Caller) -> list[Reply]:
    """All that comes until the server ends the connection."""
    replies: list[Reply] = []
    while True:
        try:
            replies.append(await caller.reply())
        except (asyncio.IncompleteReadError, ConnectionError):
            return replies


SMUGGLED = post("try.nothing")
# What of a request two readers could see differently, so that one takes a part of a body for a request.
DOUBTFUL = {
    "both lengths": "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
    "both lengths, other way round": "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n",
    "two lengths": "Content-Length: 0\r\nContent-Length: 4\r\n",
    "the same length twice": "Content-Length: 0\r\nContent-Length: 0\r\n",
    "a list of lengths": "Content-Length: 0, 4\r\n",
    "a signed length": "Content-Length: +0\r\n",
    "a negative length": "Content-Length: -1\r\n",
    "a hexadecimal length": "Content-Length: 0x0\r\n",
    "a huge length": "Content-Length: 18446744073709551616\r\n",
    "an empty length": "Content-Length: \r\n",
    "another coding": "Transfer-Encoding: xchunked\r\n",
    "a coding in quotes": 'Transfer-Encoding: "chunked"\r\n',
    "chunked not last": "Transfer-Encoding: chunked, identity\r\n",
    "chunked twice": "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n",
    "a space before the colon": "Transfer-Encoding : chunked\r\n",
    "a folded line": "X: a\r\n b: c\r\n",
    "a line feed alone": "X: a\nContent-Length: 4\r\n",
    "a carriage return alone": "X: a\rContent-Length: 4\r\n",
    "a NUL in a value": "X: a\0b\r\n",
    "a NUL in a name": "X\0: a\r\n",
    "no name": ": a\r\n",
    "no colon": "X\r\n",
}


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("tcp", WAYS)
@pytest.mark.parametrize("doubt", DOUBTFUL.values(), ids=DOUBTFUL)
def test_what_two_readers_could_read_in_two_ways_is_refused(tmp_path: Path, doubt: str, tcp: bool) -> None:
    """Injector: a head in doubt, and another request where one of the readers sees a body."""

    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=tcp) as caller:
            caller.send(f"{head(place)}{doubt}\r\n".encode("latin-1") + SMUGGLED)
            replies = await answers(caller)
            assert [reply.status for reply in replies] == [400]
            assert replies[0].json()["error"] == "invalid_argument"
            assert place.engine.calls == 0

    asyncio.run(asyncio.wait_for(scenario(), 20))


CHUNKS = {
    "no size": b"\r\n{}\r\n0\r\n\r\n",
    "a size that is none": b"g\r\n{}\r\n0\r\n\r\n",
    "a negative size": b"-2\r\n{}\r\n0\r\n\r\n",
    "a size too large": b"ffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
    "too much in it": b"1\r\n{}\r\n0\r\n\r\n",
    "a line feed alone": b"2\n{}\n0\n\n",
    "a prefixed size": b"0x2\r\n{}\r\n0\r\n\r\n",
}


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("tcp", WAYS)
@pytest.mark.parametrize("chunks", CHUNKS.values(), ids=CHUNKS)
def test_a_broken_body_ends_it(tmp_path: Path, chunks: bytes, tcp: bool) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=tcp) as caller:
            caller.send(f"{head(place)}Transfer-Encoding: chunked\r\n\r\n".encode() + chunks + SMUGGLED)
            replies = await answers(caller)
            assert [reply.status for reply in replies] == [400]
            assert place.engine.calls == 0

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("tcp", WAYS)
@pytest.mark.parametrize(
    "raw",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /\xff\xfe\xc3( HTTP/1.1\r\nHost: limpet\r\n\r\n",
        b"GET / HTTP/1.1\nHost: limpet\n\n",
        b"G\xc3\x84T /healthz HTTP/1.1\r\nHost: limpet\r\n\r\n",
        b"GET /healthz HTTP/2.0\r\nHost: limpet\r\n\r\n",
        b"GET /healthz\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: limpet\r\nHost: limpet\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: \xff\r\n\r\n",
        b"\0" * 100 + b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    ],
)
def test_what_is_no_clean_request_gets_one_answer(tmp_path: Path, raw: bytes, tcp: bool) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=tcp) as caller:
            caller.send(raw + SMUGGLED)
            replies = await answers(caller)
            assert len(replies) == 1
            assert 400 <= replies[0].status < 500
            assert place.engine.calls == 0

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61", "F62")
@pytest.mark.parametrize(
    "name", ["\xff\xfe", "\xc3(", "%ff%fe", "%c0%ae%c0%ae", "%00", "a" * 20_000, "%2e%2e%2fstatus", "😀"]
)
def test_a_path_that_is_no_utf_8_or_no_name_is_refused(tmp_path: Path, name: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=True) as caller:
            raw = name.encode("latin-1" if "\xff" in name or "\xc3" in name else "utf-8")
            caller.send(
                head(place, path="/v1/call/NAME", more="Content-Length: 2\r\n").encode().replace(b"NAME", raw)
                + b"\r\n{}"
            )
            reply = await caller.reply()
            assert reply.status in (400, 404)
            assert reply.json()["ok"] is False

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("how", ["one header", "many headers", "the path", "in pieces"])
def test_a_head_on_tcp_has_its_limit(tmp_path: Path, how: str) -> None:
    """Injector: heads of 64 KiB; without token, so that nobody has to be believed first."""

    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=True) as caller:
            start = f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{place.port}\r\n"
            much = "x" * (2 * REMOTE_HEAD_MAX_BYTES)
            if how == "one header":
                caller.send(f"{start}X: {much}\r\n\r\n".encode())
            elif how == "many headers":
                caller.send(start.encode() + b"X: y\r\n" * 11_000 + b"\r\n")
            elif how == "the path":
                caller.send(f"GET /{much} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
            else:
                caller.send(start.encode())
                for _ in range(70):
                    caller.send(f"X: {'x' * 1000}\r\n".encode())
                    await asyncio.sleep(0)
            assert (await caller.reply()).status == 431
            assert await caller.is_closed()

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("tcp", WAYS)
@pytest.mark.parametrize("beside", ["", "?beside"])
@pytest.mark.parametrize("garbage", [b"\0\r\n\r\n", b"POST /v1/ca", b"GET * HTTP/1.1\r\nHost: limpet\r\n\r\n"])
def test_answers_keep_their_order_before_garbage(
    tmp_path: Path, tcp: bool, beside: str, garbage: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Injector: garbage, or half a head, behind a request that is still at work: its answer comes first."""
    monkeypatch.setattr(slow, "HEAD_S", 0.2)

    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=tcp) as caller, calling(place) as other:
            wait = head(place, path="/v1/call/try.wait" + beside, more="Content-Length: 2\r\n\r\n{}").encode()
            caller.send(wait + garbage)
            await place.engine.entered.wait()
            other.send(b"POST /v1/ca")
            assert (await other.reply()).status == 408  # so the time of the other half head is over too
            place.engine.released.set()
            replies = await answers(caller)
            assert [reply.status for reply in replies] == [200, 408 if garbage.endswith(b"ca") else 400]
            assert place.engine.calls == 1

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61", "6.6")
@pytest.mark.parametrize("wrong", ["token", "type", "size"])
def test_a_refusal_reaches_who_is_still_sending(tmp_path: Path, wrong: str) -> None:
    """Injector: a body of 30 MB behind a head that is refused at once. Closing on it would take the answer along."""

    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=True) as caller:
            size = 30_000_000 if wrong != "size" else 300_000_000
            request = head(place, more=f"Content-Length: {size}\r\n")
            request = request.replace(TOKEN, "x" * 40) if wrong == "token" else request
            request = request.replace(JSON, "Content-Type: text/plain\r\n") if wrong == "type" else request
            caller.send(request.encode() + b"\r\n")
            for _ in range(30):
                caller.send(b"x" * 1_000_000)
                await caller.writer.drain()
            reply = await caller.reply()
            assert reply.status == {"token": 401, "type": 400, "size": 413}[wrong]
            assert await caller.is_closed()

    asyncio.run(asyncio.wait_for(scenario(), 30))


async def send_for_ever(caller: Caller) -> None:
    while True:
        caller.send(b"x")
        await caller.writer.drain()
        await asyncio.sleep(0)


@pytest.mark.requirement("F61")
def test_who_was_refused_and_sends_for_ever_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Injector: a caller that was refused and goes on sending for ever."""
    monkeypatch.setattr(slow, "LINGER_S", 0.2)

    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=True) as caller:
            caller.send(head(place, more="Content-Length: 1000000\r\n\r\n").replace(TOKEN, "x").encode())
            assert (await caller.reply()).status == 401
            with pytest.raises(ConnectionError):
                await send_for_ever(caller)

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("seed", range(4))
def test_damaged_requests_do_nothing_that_was_not_asked(tmp_path: Path, seed: int) -> None:
    """Injector: a good pipeline with bytes changed, cut out and put in; the server lives, each answer is whole."""
    chances = random.Random(seed)

    async def scenario() -> None:
        async with serving(tmp_path) as place:
            for _ in range(60):
                good = bytearray(post("try.echo", json.dumps({"text": "x" * 20}).encode()) * 3)
                for _ in range(chances.randint(1, 4)):
                    place_in = chances.randrange(len(good))
                    kind = chances.randrange(3)
                    if kind == 0:
                        good[place_in] = chances.randrange(256)
                    elif kind == 1:
                        del good[place_in : place_in + chances.randint(1, 20)]
                    else:
                        good[place_in:place_in] = chances.randbytes(chances.randint(1, 20))
                async with calling(place) as caller:
                    caller.send(bytes(good))
                    caller.writer.write_eof()
                    for reply in await answers(caller):
                        assert reply.status in (200, 400, 403, 404, 405, 413)
                        assert isinstance(reply.json()["ok"], bool)
            async with calling(place) as caller:
                caller.send(post("try.nothing"))
                assert (await caller.reply()).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 60))
