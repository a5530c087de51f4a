"""The gate: every route and every upgrade there is, with heads that must not get in, and those that must."""

import asyncio
import itertools
import logging
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from limpet.model.errors import Refusal
from limpet.surfaces.http import gate as gate_module
from limpet.surfaces.http.app import App, build
from limpet.surfaces.http.doors import CALLER, Door
from limpet.surfaces.http.gate import Gate, names_of

from .doors import House
from .rows import ROWS, Engine
from .serving import TOKEN, Place, Reply, ask, calling, serving

JSON = "Content-Type: application/json\r\n"
BEARER = f"Authorization: Bearer {TOKEN}\r\n"
UPGRADE = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: eA==\r\n"


def paths(app: App) -> Iterator[tuple[str, str, Door]]:
    """Every method and path that is served, and every other method there too."""
    for door in app.doors:
        path = door.path.replace("{name}", "try.nothing").replace("{rest:path}", "x")
        assert "{" not in path
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            yield method, path, door


def head(method: str, path: str, host: str, headers: str = "") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Length: 0\r\n\r\n".encode()


def wrong_hosts(port: int) -> list[str]:
    names = ["evil.example", "127.0.0.1.evil", "localhost.", "[::1]", "127.1", "0.0.0.0", "0x7f000001", "2130706433"]
    return [
        *names,
        *(f"{name}:{port}" for name in names),
        "127.0.0.1",
        "localhost",
        f"127.0.0.1:{port + 1}",
        f"localhost:{port + 1}",
        f"localhost:{port}@evil.example",
        f"evil.example@localhost:{port}",
        f"127.0.0.1:{port}.evil.example",
        f"127.0.0.1:0{port}",
        f"127.0.0.1:{port},evil.example",
        f"http://127.0.0.1:{port}",
        "listed.example",
        "",
    ]


def wrong_origins(port: int) -> list[str]:
    return [
        "http://evil.example",
        "null",
        "",
        "file://",
        f"http://127.0.0.1:{port + 1}",
        f"https://127.0.0.1:{port}",
        f"http://localhost.:{port}",
        f"http://127.0.0.1:{port}.evil.example",
        f"http://127.0.0.1:{port}/",
        f"http://evil.example@127.0.0.1:{port}",
        "http://listed.example",
        "https://listed.example:444",
        "https://listed.example.evil",
        f"127.0.0.1:{port}",
    ]


def wrong_tokens() -> list[str]:
    return [
        "",
        "Authorization: Bearer\r\n",
        "Authorization: Bearer \r\n",
        f"Authorization: Bearer {TOKEN}x\r\n",
        f"Authorization: Bearer {TOKEN[:-1]}\r\n",
        f"Authorization: Bearer {TOKEN.upper()}\r\n",
        f"Authorization: Basic {TOKEN}\r\n",
        f"Authorization: {TOKEN}\r\n",
        f"Authorization: Bearer {TOKEN} {TOKEN}\r\n",
        f"X-Authorization: Bearer {TOKEN}\r\n",
        f"Proxy-Authorization: Bearer {TOKEN}\r\n",
        f"Cookie: token={TOKEN}\r\n",
        f"Sec-WebSocket-Protocol: limpet.token.{TOKEN}\r\n",  # only where a WebSocket is asked for
    ]


async def outcome(place: Place, request: bytes, *, tcp: bool = True) -> Reply:
    """The answer, a HEAD's too, which has no body."""
    async with calling(place, tcp=tcp) as caller:
        caller.send(request)
        if not request.startswith(b"HEAD"):
            return await caller.reply()
        status = (await caller.reader.readuntil(b"\r\n\r\n")).split()[1]
        return Reply(int(status), {}, b"")


@pytest.mark.requirement("6.6", "9.tcp", "F65", "F66")
def test_nothing_wrong_passes_any_door(tmp_path: Path) -> None:
    """Injector: one thing wrong in an otherwise right head, at every path with every method, upgrades included."""

    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place:
            host = f"127.0.0.1:{place.port}"
            seen = 0
            for turn, ((method, path, door), extra) in enumerate(itertools.product(paths(place.app), ("", UPGRADE))):
                right = JSON + BEARER + extra
                wrong = [(head(method, path, name, right), 403) for name in wrong_hosts(place.port)]
                wrong += [
                    (head(method, path, host, f"{right}Origin: {origin}\r\n"), 403)
                    for origin in wrong_origins(place.port)
                ]
                wrong += [
                    (head(method, path, host, f"{right}Sec-Fetch-Site: {site}\r\n"), 403)
                    for site in ("cross-site", "same-site", "anything")
                ]
                if not (door.is_open and method in ("GET", "HEAD")):
                    wrong += [
                        (head(method, each, host, JSON + token + extra), 401)
                        for each in (f"{path}?token={TOKEN}", f"{path}?access_token={TOKEN}", path)
                        for token in wrong_tokens()
                        if not (extra and "WebSocket-Protocol" in token)
                    ]
                # a quarter of them at each method, so all of them at each path
                for request, status in wrong[turn % 4 :: 4]:
                    reply = await outcome(place, request)
                    assert reply.status == status, request
                    assert not [name for name in reply.headers if name.startswith("access-control")]
                    if status == 401 and method != "HEAD":
                        assert reply.headers["www-authenticate"].startswith("Bearer")
                    seen += 1
            assert (house.count, place.engine.calls) == (0, 0)
            assert seen > 1500

    asyncio.run(asyncio.wait_for(scenario(), 110))


@pytest.mark.requirement("6.6", "9.tcp")
def test_what_is_right_gets_in(tmp_path: Path) -> None:
    """Without this the test above could pass in front of a wall."""

    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place:
            own = [f"127.0.0.1:{place.port}", f"localhost:{place.port}", f"LocalHost:{place.port}"]
            for host, origin in itertools.product(
                [*own, "listed.example:8080"], ["", *(f"http://{each}" for each in own), "https://listed.example"]
            ):
                headers = JSON + BEARER + (f"Origin: {origin}\r\nSec-Fetch-Site: same-origin\r\n" if origin else "")
                for door in place.app.doors:
                    path = door.path.replace("{name}", "try.nothing")
                    for method in door.methods:
                        if door.upgrade is None:
                            reply = await outcome(place, head(method, path, host, headers))
                            assert reply.status == 200, (host, origin, path)
                            assert not [name for name in reply.headers if name.startswith("access-control")]
                        else:
                            reply = await outcome(place, head(method, path, host, headers + UPGRADE))
                            assert reply.status == 101
            for path in ("/healthz", "/readyz", "/try/page.html"):
                assert (await outcome(place, head("GET", path, own[0]))).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.requirement("6.6")
def test_no_path_is_served_but_through_a_door() -> None:
    """Enumerates the routes that the application has, and holds them to the doors: another one would show here."""
    house = House()
    app = build(ROWS, Engine(), doors=house.doors, token=TOKEN)
    assert app.paths == [door.path for door in app.doors]
    assert set(app.upgrades) == {b"/try/talk"}
    assert {door.path for door in app.doors if door.is_open} == {"/healthz", "/readyz", "/try/page.html"}
    assert all("GET" not in door.methods for door in app.doors if door.path.startswith("/v1/call"))


@pytest.mark.requirement("6.6")
@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_another_server_cannot_serve_past_the_gate(kind: str) -> None:
    async def scenario() -> None:
        app = build(ROWS, Engine(), token=TOKEN)
        scope: dict[str, Any] = {"type": kind, "method": "GET", "path": "/healthz", "headers": []}

        async def nothing(*_: Any) -> Any:
            raise AssertionError("it was spoken to")

        with pytest.raises(PermissionError):
            await app(scope, nothing, nothing)
        with pytest.raises(PermissionError):
            await app(scope | {CALLER: "http"}, nothing, nothing)

    asyncio.run(scenario())


@pytest.mark.requirement("6.6", "9.tcp")
def test_the_socket_needs_no_token(tmp_path: Path) -> None:
    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place:
            for host in ("limpet", "localhost", "localhost:8080", "127.0.0.1:1", "x"):
                for path in ("/healthz", "/v1/operations", "/try/app"):
                    assert (await outcome(place, head("GET", path, host), tcp=False)).status == 200
                talk = head("GET", "/try/talk", host, f"{UPGRADE}Origin: http://{host}\r\n")
                assert (await outcome(place, talk, tcp=False)).status == 101

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.6", "F65")
def test_whoever_forwards_the_socket_is_no_way_in_for_pages(tmp_path: Path) -> None:
    """Injector: what a browser sends by a page of another name, or from another place, to a port that leads here."""

    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place:
            for method, path, _ in paths(place.app):
                for extra in ("", UPGRADE):
                    for hostile in (
                        head(method, path, "evil.example", JSON + extra),
                        head(method, path, "127.0.0.1.evil.example", JSON + extra),
                        head(method, path, "localhost.", JSON + extra),
                        head(method, path, "localhost:1", f"{JSON}{extra}Origin: http://localhost:2\r\n"),
                        head(method, path, "localhost:1", f"{JSON}{extra}Origin: null\r\n"),
                        head(method, path, "localhost:1", f"{JSON}{extra}Sec-Fetch-Site: cross-site\r\n"),
                    ):
                        assert (await outcome(place, hostile, tcp=False)).status == 403, hostile
            assert (house.count, place.engine.calls) == (0, 0)

    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.requirement("6.6", "F65")
@pytest.mark.parametrize("twice", ["Host: {host}", "Origin: http://{host}", BEARER.strip(), JSON.strip()])
def test_a_header_that_decides_stands_once(tmp_path: Path, twice: str) -> None:
    """Injector: the same header twice, the right one first and last: two readers could each see another."""

    async def scenario() -> None:
        async with serving(tmp_path) as place:
            host = f"127.0.0.1:{place.port}"
            line = twice.format(host=host)
            for other in (line, line.partition(":")[0] + ": x"):
                once = "" if twice.startswith("Host") else f"Host: {host}\r\n"
                rest = "".join(each for each in (JSON, BEARER) if each.strip() != line)
                for pair in ((line, other), (other, line)):
                    request = f"POST /v1/call/try.nothing HTTP/1.1\r\n{once}{rest}" + "".join(f"{x}\r\n" for x in pair)
                    reply = await outcome(place, f"{request}Content-Length: 0\r\n\r\n".encode())
                    assert (reply.status, reply.json()["error"]) == (400, "invalid_argument")
            assert place.engine.calls == 0

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.6", "F65")
@pytest.mark.parametrize("target", ["http://127.0.0.1:{port}/healthz", "*", "127.0.0.1:{port}", "healthz"])
def test_a_target_is_a_path(tmp_path: Path, target: str) -> None:
    async def scenario() -> None:
        async with serving(tmp_path) as place:
            method = "CONNECT" if target.startswith("127") else "OPTIONS" if target == "*" else "GET"
            request = head(method, target.format(port=place.port), f"127.0.0.1:{place.port}", BEARER)
            assert (await outcome(place, request)).status == 400

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.6", "F66")
def test_a_websocket_may_say_the_token_as_a_subprotocol(tmp_path: Path) -> None:
    """And nobody behind the gate sees it, in that form or in the other; an application neither."""

    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place:
            host = f"127.0.0.1:{place.port}"
            for said in (
                f"Sec-WebSocket-Protocol: limpet.token.{TOKEN}\r\n",
                f"Sec-WebSocket-Protocol: limpet, limpet.token.{TOKEN}\r\n",
                f"Sec-WebSocket-Protocol: limpet\r\nSec-WebSocket-Protocol: limpet.token.{TOKEN}\r\n",
                BEARER,
            ):
                async with calling(place, tcp=True) as caller:
                    caller.send(head("GET", "/try/talk?a=b", host, UPGRADE + said) + b"at once,")
                    assert (await caller.reply()).status == 101
                    assert await caller.reader.readexactly(16) == b"at once,at once,"
                    caller.send(b"later,")
                    assert await caller.reader.readexactly(12) == b"later,later,"
            assert len(house.heads) == 4
            for seen in house.heads:
                assert TOKEN.encode() not in seen
                assert seen.startswith(b"GET /try/talk?a=b HTTP/1.1\r\nhost: ")
                assert seen.endswith(b"\r\n\r\n")
                assert b"\r\nsec-websocket-key: eA==\r\n" in seen
            assert b"\r\nsec-websocket-protocol: limpet\r\n" in house.heads[1]
            assert b"protocol" not in house.heads[0]
            await outcome(place, head("GET", "/try/app", host, BEARER))
            assert TOKEN not in repr(house.served)
            for talk in house.talks:
                await talk.lost

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.6")
def test_there_is_nothing_to_upgrade_to_elsewhere(tmp_path: Path) -> None:
    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place:
            host = f"127.0.0.1:{place.port}"
            h2c = UPGRADE.replace("websocket", "h2c")
            wrong = [head("GET", path, host, BEARER + UPGRADE) for path in ("/healthz", "/try/app", "/try/talk/", "/x")]
            wrong += [head("POST", "/try/talk", host, BEARER + JSON + UPGRADE)]
            wrong += [head("GET", "/v1/operations", host, BEARER + h2c)]
            body = head("GET", "/try/talk", host, BEARER + JSON + UPGRADE).replace(b"Length: 0", b"Length: 2") + b"{}"
            for request in (*wrong, body):
                reply = await outcome(place, request)
                assert (reply.status, reply.headers["connection"]) == (400, "close"), request
            assert (await outcome(place, head("GET", "/try/talk", host, BEARER))).status == 426
            assert not house.talks

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.1", "6.6")
def test_a_server_that_stops_tells_those_who_talk(tmp_path: Path) -> None:
    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place, calling(place) as caller:
            caller.send(head("GET", "/try/talk", "limpet", UPGRADE))
            assert (await caller.reply()).status == 101
            await place.server.close()
            assert await caller.reader.read() == b"the server stops"
            assert await house.talks[0].lost is None

    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_who_talks_is_told_when_the_other_side_reads_slowly(tmp_path: Path) -> None:
    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place, calling(place) as caller:
            caller.send(head("GET", "/try/talk", "limpet", UPGRADE))
            assert (await caller.reply()).status == 101
            house.talks[0].wire.write(b"x" * (32 << 20))
            await house.paused.wait()
            await caller.reader.readexactly(32 << 20)
            await house.resumed.wait()

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.6", "F66")
def test_wrong_tokens_slow_down_and_the_right_one_does_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Injector: 300 wrong tokens where 50 may come at once. One line in the log says so, and no token."""
    monkeypatch.setattr(gate_module, "WRONG_TOKENS_AT_ONCE", 50)
    monkeypatch.setattr(gate_module, "WRONG_TOKENS_A_S", 0.0)

    async def scenario() -> None:
        async with serving(tmp_path) as place:
            host = f"127.0.0.1:{place.port}"
            statuses = [
                (
                    await outcome(place, head("GET", "/v1/operations", host, f"Authorization: Bearer wrong-{n}\r\n"))
                ).status
                for n in range(300)
            ]
            assert statuses == [401] * 50 + [429] * 250
            assert (await outcome(place, head("GET", "/v1/operations", host, BEARER))).status == 200

    with caplog.at_level(logging.WARNING):
        asyncio.run(asyncio.wait_for(scenario(), 60))
    (record,) = caplog.records
    assert "wrong token" in record.getMessage()
    assert "wrong-" not in caplog.text
    assert TOKEN not in caplog.text


def test_a_refusal_holds_on_to_nothing() -> None:
    """Each is an exception of its own: one that is raised again and again keeps every traceback, and what is in it."""
    gate = Gate(token=TOKEN)
    names = gate.names(("127.0.0.1", 80))
    for headers in (
        [(b"host", b"evil")],
        [(b"host", b"localhost"), (b"origin", b"null")],
        [(b"host", b"localhost")],
        [(b"host", b"localhost"), (b"authorization", b"Bearer x")],
        [(b"host", b"localhost"), (b"authorization", f"Bearer {TOKEN}".encode())],
        [
            (b"host", b"localhost"),
            (b"authorization", f"Bearer {TOKEN}".encode()),
            (b"content-type", b"application/json"),
            (b"content-length", b"99999999999"),
        ],
    ):
        raised: list[Refusal] = []
        for _ in range(2):
            with pytest.raises(Refusal) as refusal:
                gate.admit(b"POST", b"/v1/call/x", headers, names)
            raised.append(refusal.value)
        assert raised[0] is not raised[1]


def test_no_token_no_tcp() -> None:
    """A gate that knows no token lets nobody in from there, not even with an empty one."""
    gate = Gate()
    for said in (b"", b"Bearer", b"Bearer ", b"Bearer None", b"bearer \t"):
        with pytest.raises(Refusal) as refusal:
            gate.admit(
                b"GET",
                b"/v1/operations",
                [(b"host", b"localhost"), (b"authorization", said)],
                frozenset({b"localhost"}),
            )
        assert refusal.value.code == "unauthorized"


@pytest.mark.requirement("6.6", "F65")
@pytest.mark.parametrize(
    ("address", "names"),
    [
        (("127.0.0.1", 7), {"127.0.0.1:7", "localhost:7"}),
        (("::1", 7, 0, 0), {"[::1]:7", "localhost:7"}),
        (("10.1.2.3", 7), {"10.1.2.3:7"}),
        (("::ffff:10.1.2.3", 7, 0, 0), {"10.1.2.3:7"}),
        (("127.0.0.1", 80), {"127.0.0.1:80", "localhost:80", "127.0.0.1", "localhost"}),
    ],
)
def test_what_an_address_is_called(address: tuple[Any, ...], names: set[str]) -> None:
    assert names_of(address) == {name.encode() for name in names}


@pytest.mark.requirement("6.6")
def test_heads_that_arrive_in_pieces_are_judged_whole(tmp_path: Path) -> None:
    """Injector: the right head, a byte at a time; then one whose last header is wrong."""

    async def scenario() -> None:
        house = House()
        async with serving(tmp_path, doors=house.doors) as place:
            host = f"127.0.0.1:{place.port}"
            for origin, status in ((f"http://{host}", 200), ("http://evil.example", 403)):
                async with calling(place, tcp=True) as caller:
                    caller.writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    request = head("GET", "/try/app", host, f"{BEARER}Origin: {origin}\r\n")
                    for byte in request:
                        caller.send(bytes((byte,)))
                        await asyncio.sleep(0)
                    assert (await caller.reply()).status == status
            assert house.count == 1

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("6.6")
def test_nothing_behind_a_refused_request_is_served(tmp_path: Path) -> None:
    """Injector: a pipeline whose first request has no token; the second one would be right."""

    async def scenario() -> None:
        async with serving(tmp_path) as place:
            host = f"127.0.0.1:{place.port}"
            right = head("POST", "/v1/call/try.nothing", host, JSON + BEARER)
            async with calling(place, tcp=True) as caller:
                caller.send(head("POST", "/v1/call/try.nothing", host, JSON) + right)
                assert (await caller.reply()).status == 401
                assert await caller.is_closed()
            assert place.engine.calls == 0
            assert (await ask(place, right, tcp=True)).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 20))
