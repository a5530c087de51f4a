"""Listening on TCP, the token's file, and seats: what may be listened on, who may know the token, who may sit."""

import asyncio
import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from limpet.model.errors import Refusal
from limpet.surfaces.http import slow
from limpet.surfaces.http.app import build
from limpet.surfaces.http.seats import Seats
from limpet.surfaces.http.serve import Server
from limpet.surfaces.http.tcp import listen_tcp, url_of
from limpet.surfaces.http.token import token_of

from .rows import ROWS, Engine
from .serving import TOKEN, calling, serving


@pytest.mark.requirement("6.1")
@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost"])
def test_loopback_needs_no_word_for_it(host: str) -> None:
    with listen_tcp(host, 0) as listener:
        address, port = listener.getsockname()
        assert address.startswith("127.")
        assert url_of(listener, host) == f"http://{host}:{port}"
        with socket.create_connection((address, port), 20):
            pass


@pytest.mark.requirement("6.6", "F66")
@pytest.mark.parametrize("host", ["0.0.0.0", "::", "::ffff:127.0.0.1", "192.0.2.1", "fe80::1"])
def test_what_others_can_reach_is_refused(host: str) -> None:
    with pytest.raises(Refusal) as refusal:
        listen_tcp(host, 0)
    assert refusal.value.reason == "remote_not_allowed"
    assert "--allow-remote" in refusal.value.message


@pytest.mark.requirement("6.6")
def test_all_addresses_when_that_is_allowed() -> None:
    with listen_tcp("0.0.0.0", 0, allow_remote=True) as listener:
        assert url_of(listener, "0.0.0.0") == f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("host", ["", "no such host", "nosuch.invalid", "a" * 300, "127.0.0.1:80"])
def test_a_host_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(Refusal) as refusal:
        listen_tcp(host, 0)
    assert (refusal.value.code, refusal.value.fields["field"]) == ("invalid_argument", "host")


def test_a_port_that_is_taken_is_named() -> None:
    with listen_tcp("127.0.0.1", 0) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(Refusal) as refusal:
            listen_tcp("127.0.0.1", port)
        assert str(port) in refusal.value.message


@pytest.mark.requirement("6.6", "F68")
@pytest.mark.parametrize("umask", [0o000, 0o777])
def test_a_token_is_made_once_and_private(tmp_path: Path, umask: int) -> None:
    """Injector: a umask that gives all, and one that takes all."""
    before = os.umask(umask)
    try:
        token = token_of(tmp_path / "token")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "token").lstat().st_mode) == 0o600
    assert len(token) >= 43
    assert token_of(tmp_path / "token") == token
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


@pytest.mark.requirement("6.6")
def test_many_who_make_it_at_once_have_the_same(tmp_path: Path) -> None:
    found: list[str] = []
    start = threading.Barrier(8)

    def make() -> None:
        start.wait()
        found.append(token_of(tmp_path / "token"))

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(found), len(set(found))) == (8, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


@pytest.mark.requirement("6.6", "F68")
@pytest.mark.parametrize(
    "made", ["link", "dangling", "directory", "fifo", "readable", "group", "empty", "short", "spaces", "long", "binary"]
)
def test_a_token_that_others_made_or_could_know_is_refused(tmp_path: Path, made: str) -> None:
    """Injector: what stands at the token's path before the daemon looks, by another's hand."""
    path, elsewhere = tmp_path / "token", tmp_path / "elsewhere"
    elsewhere.write_text(TOKEN)
    elsewhere.chmod(0o600)
    if made == "link":
        path.symlink_to(elsewhere)
    elif made == "dangling":
        path.symlink_to(tmp_path / "nothing")
    elif made == "directory":
        path.mkdir()
    elif made == "fifo":
        os.mkfifo(path, 0o600)
    else:
        texts = {"empty": "", "short": "x" * 31, "spaces": "x y" * 20, "long": "x" * 5000, "binary": "\xff" * 40}
        path.write_text(texts.get(made, TOKEN))
        path.chmod({"readable": 0o604, "group": 0o640}.get(made, 0o600))
    with pytest.raises(Refusal) as refusal:
        token_of(path)
    assert refusal.value.reason == "unfit_token"
    assert str(path) in refusal.value.message
    assert TOKEN not in refusal.value.message
    assert elsewhere.read_text() == TOKEN
    assert not (tmp_path / "nothing").exists()


@pytest.mark.requirement("6.6", "F68")
def test_a_token_of_another_user_is_refused(tmp_path: Path) -> None:
    """Injector: chown; without the right to it, another process's word is not to be had, and the test fails."""
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    os.chown(path, 65_534, 65_534)
    with pytest.raises(Refusal, match="is no file of this user"):
        token_of(path)


@pytest.mark.requirement("F61")
@pytest.mark.parametrize("said", [b"", b"P", b"GET /healthz HTTP/1.1\r\nHost: "])
def test_who_connects_and_does_not_ask_is_sent_away(
    tmp_path: Path, said: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Injector: a connection that says nothing, or begins and stops (slow loris)."""
    monkeypatch.setattr(slow, "HEAD_S", 0.2)

    async def scenario() -> None:
        async with serving(tmp_path) as place, calling(place, tcp=True) as caller:
            caller.send(said)
            assert (await caller.reply()).status == 408
            assert await caller.is_closed()

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
def test_a_whole_request_has_no_deadline_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slow, "HEAD_S", 0.2)

    async def scenario() -> None:
        async with (
            serving(tmp_path) as place,
            calling(place, tcp=True) as caller,
            calling(place, tcp=True) as silent,
        ):
            host = f"127.0.0.1:{place.port}"
            head = f"Host: {host}\r\nAuthorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
            caller.send(f"POST /v1/call/try.wait HTTP/1.1\r\n{head}Content-Length: 2\r\n\r\n{{}}".encode())
            await place.engine.entered.wait()
            assert (await silent.reply()).status == 408  # as old as the other, so its time is over
            place.engine.released.set()
            assert (await caller.reply()).status == 200
            caller.send(f"GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            assert (await caller.reply()).status == 200

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
def test_tcp_has_its_share_of_seats() -> None:
    """Injector: one TCP connection more than there are seats, idle all; a seat that is left can be taken again."""

    async def scenario() -> None:
        app = build(ROWS, Engine(), token=TOKEN)
        with listen_tcp("127.0.0.1", 0) as listener:
            server = Server(app, listener, max_remote=8)
            await server.start()
            port = listener.getsockname()[1]
            idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(8)]
            for reader, writer in idle:  # each is really there
                writer.write(f"GET /healthz HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
                assert b" 200 " in await reader.readuntil(b"\r\n\r\n")
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert b" 503 " in await reader.readuntil(b"\r\n\r\n")
            assert b"too_many_connections" in await reader.read()
            writer.close()
            idle[0][1].close()
            await idle[0][1].wait_closed()
            while True:  # the server hears of that end in its own time
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(f"GET /healthz HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode())
                answer = await reader.readuntil(b"\r\n\r\n")
                writer.close()
                if b" 200 " in answer:
                    break
                assert b" 503 " in answer
            for _, writer in idle[1:]:
                writer.close()
            await server.close()

    asyncio.run(asyncio.wait_for(scenario(), 20))


@pytest.mark.requirement("F61")
def test_a_dead_peer_is_noticed_by_the_kernel() -> None:
    """What a network that goes down leaves behind has 12 s where something is unanswered, 14 s where nothing is."""
    with listen_tcp("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname(), 20):
        peer, _ = listener.accept()
        with peer:
            assert Seats(1).take_remote(peer)
            assert peer.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 15_000
            idle, interval, count = (
                peer.getsockopt(socket.IPPROTO_TCP, option)
                for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
            )
            assert idle + interval * count <= 15
