"""The webhook: signed, with an id, tried again until it is taken, whatever the server does."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.server
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.config import Config, WebhookConfig
from limpet.daemon import InProcess
from limpet.engine.sinks import WatchEvent
from limpet.engine.webhook import WebhookError, WebhookSink
from limpet.model.errors import Refusal
from tests.contract.home import Home

SECRET = "a secret of a good length"
WATCH = [{"regex": "hit [0-9]+$", "event": "found", "match_type": "line"}]
HIT = WatchEvent(
    id="0000000000001.4", ts=1, run_id="0000000000001", session_id="s", seq=4, snippet="", event="e", text="t", data={}
)


class Server:
    """A real server; `answers` are what it does for one request after the other, the last one for all that follow."""

    def __init__(self, *answers: str) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.answers = list(answers)
        self.let_go = threading.Event()
        self.turn = threading.Condition()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                with outer.turn:
                    outer.got.append((dict(self.headers), body))
                    what = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                    outer.turn.notify_all()
                outer.answer(self, what)

            def do_GET(self) -> None:
                outer.got.append(({"method": "GET"}, b""))
                self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Says nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook?x=1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, handler: http.server.BaseHTTPRequestHandler, what: str) -> None:
        if what == "hang":
            self.let_go.wait(30)
        elif what == "trickle":
            while not self.let_go.wait(0.02):
                try:
                    handler.wfile.write(b"H")
                except OSError:
                    return
        elif what == "close":
            handler.connection.shutdown(socket.SHUT_RDWR)
        elif what == "endless":
            try:
                handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
                while not self.let_go.is_set():
                    handler.wfile.write(b"x" * 65536)
            except OSError:
                return
        else:
            handler.send_response(int(what))
            if what.startswith("3"):
                handler.send_header("Location", self.url)
            handler.end_headers()

    def wait(self, count: int) -> None:
        with self.turn:
            assert self.turn.wait_for(lambda: len(self.got) >= count, 30), len(self.got)

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(body) for _, body in self.got]

    def close(self) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[..., Server]]:
    made: list[Server] = []

    def make(*answers: str) -> Server:
        made.append(Server(*answers))
        return made[-1]

    yield make
    for server in made:
        server.close()


def sink(url: str, timeout_s: float = 10.0) -> WebhookSink:
    return WebhookSink(WebhookConfig(url=url, secret=SECRET, timeout_s=timeout_s))


@pytest.mark.requirement("1.9")
def test_signed_with_the_time_and_an_id(serve: Callable[..., Server]) -> None:
    server = serve("204")
    before_ms = time.time_ns() // 1_000_000
    sink(server.url).on_watch(HIT)
    ((headers, body),) = server.got
    expected = hmac.new(SECRET.encode(), body, hashlib.sha256).hexdigest()
    assert headers["Limpet-Signature"] == f"sha256={expected}"
    assert before_ms <= json.loads(body)["sent_at"] <= time.time_ns() // 1_000_000
    assert headers["Idempotency-Key"] == HIT.id
    assert headers["Content-Type"] == "application/json"
    assert {name: value for name, value in json.loads(body).items() if name != "sent_at"} == {
        "type": "watch", "id": HIT.id, "ts": 1, "run_id": "0000000000001", "session_id": "s", "seq": 4, "snippet": "",
        "event": "e", "text": "t", "data": {},
    }  # fmt: skip


@pytest.mark.requirement("1.9")
@pytest.mark.parametrize("answer", ["500", "404", "301", "302", "307", "308", "close", "hang", "trickle"])
def test_what_is_not_taken_in_time_is_told(serve: Callable[..., Server], answer: str) -> None:
    """Injector: a server that answers with an error, redirects to itself, closes, hangs, or trickles."""
    server = serve(answer)
    began = time.monotonic()
    with pytest.raises(WebhookError):
        sink(server.url, timeout_s=0.5).on_watch(HIT)
    assert time.monotonic() - began < 5
    assert len(server.got) == 1, "no redirect is followed"


@pytest.mark.requirement("1.9")
def test_an_endless_answer_is_not_read_to_its_end(serve: Callable[..., Server]) -> None:
    """Injector: a server whose answer never ends."""
    sink(serve("endless").url, timeout_s=5).on_watch(HIT)


@pytest.mark.requirement("1.9")
def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(WebhookError, match="could not be reached"):
        sink(f"http://127.0.0.1:{port}/").on_watch(HIT)


def configured(home: Path, server: Server, more: str = "") -> None:
    home.mkdir(mode=0o700, exist_ok=True)
    text = f'[[sinks.webhook]]\nname = "hook"\nurl = "{server.url}"\nsecret = "{SECRET}"\ntimeout_s = 0.5\n{more}'
    (home / "config.toml").write_text(text)


async def watched(engine: InProcess, command: str) -> None:
    await engine.call_checked("shell", action="spawn", background=False, command=command, watch=WATCH)


@pytest.mark.requirement("1.9")
@pytest.mark.parametrize("trouble", ["500", "hang", "close", "302"])
def test_a_hit_is_posted_until_it_is_taken(tmp_path: Path, serve: Callable[..., Server], trouble: str) -> None:
    """Injector: the server does not take the first post."""
    server = serve(trouble, "200")
    configured(tmp_path / "h", server, 'events = ["watch"]\n')

    async def work() -> None:
        async with limpet.open(tmp_path / "h") as engine:
            await watched(engine, "echo hit 1; echo hit 2")
            await asyncio.to_thread(server.wait, 3)

    asyncio.run(work())
    ids = [headers["Idempotency-Key"] for headers, _ in server.got]
    assert ids[0] == ids[1] != ids[2]
    assert [event["data"]["line"] for event in server.events()] == ["hit 1", "hit 1", "hit 2"]


@pytest.mark.requirement("1.9")
def test_what_was_not_taken_comes_with_the_next_engine(tmp_path: Path, serve: Callable[..., Server]) -> None:
    """Injector: the server answers 500 for as long as the first engine lives."""
    server = serve("500")
    configured(tmp_path / "h", server, 'events = ["watch"]\n')

    async def work(count: int, command: str) -> None:
        async with limpet.open(tmp_path / "h") as engine:
            await watched(engine, command)
            await asyncio.to_thread(server.wait, count)

    asyncio.run(work(1, "echo hit 1; echo hit 2"))
    refused, server.answers = len(server.got), ["200"]
    asyncio.run(work(refused + 3, "echo hit 3"))
    assert [event["data"]["line"] for event in server.events()[refused:]] == ["hit 1", "hit 2", "hit 3"]


@pytest.mark.requirement("1.9", "F01")
def test_what_the_daemon_was_killed_over_is_posted_again(serve: Callable[..., Server]) -> None:
    """Injector: the server hangs, and SIGKILL to the daemon meanwhile."""
    server, home = serve("hang"), Home()
    configured(home.path, server, 'events = ["watch"]\n')
    try:
        home.start()
        asked = {"action": "spawn", "command": "echo hit 1; echo hit 2", "watch": WATCH}
        assert home.limpet("call", "shell", json.dumps(asked)).returncode == 0
        server.wait(1)
        home.kill_daemon()
        known = len(server.got)
        with server.turn:
            server.answers = ["200"]
        home.start()
        server.wait(known + 2)
        assert [event["data"]["line"] for event in server.events()[known:]] == ["hit 1", "hit 2"]
        assert server.events()[0]["id"] == server.events()[known]["id"]
    finally:
        home.close()


@pytest.mark.requirement("1.9")
def test_only_the_events_that_are_wanted(tmp_path: Path, serve: Callable[..., Server]) -> None:
    server = serve("200")
    configured(tmp_path / "h", server)

    async def work() -> None:
        async with limpet.open(tmp_path / "h") as engine:
            await watched(engine, "echo hit 1")
            await asyncio.to_thread(server.wait, 4)

    asyncio.run(work())
    told = [(event["type"], event.get("status")) for event in server.events()]
    assert told == [("status", "queued"), ("status", "running"), ("watch", None), ("status", "completed")]


@pytest.mark.requirement("1.9", "0.3")
@pytest.mark.parametrize(
    ("table", "said"),
    [
        (f'url = "ftp://x/"\nsecret = "{SECRET}"', "sinks.webhook[0].url"),
        (f'url = "http://"\nsecret = "{SECRET}"', "sinks.webhook[0].url"),
        (f'url = "http://x:0/"\nsecret = "{SECRET}"', "sinks.webhook[0].url"),
        (f'url = "http://x:99999/"\nsecret = "{SECRET}"', "sinks.webhook[0].url"),
        (f'url = "http://x/\\r\\nA: b"\nsecret = "{SECRET}"', "sinks.webhook[0].url"),
        (f'url = "http://u:p@x/"\nsecret = "{SECRET}"', "password"),
        ('url = "http://x/"\nsecret = ""', "secret"),
        ('url = "http://x/"', "secret"),
        (f'url = "http://x/"\nsecret = "{SECRET}"\nevents = ["all"]', "events"),
        (f'url = "http://x/"\nsecret = "{SECRET}"\nevents = []', "events"),
        (f'url = "http://x/"\nsecret = "{SECRET}"\ntimeout_s = 0', "timeout_s"),
        (f'url = "http://x/"\nsecret = "{SECRET}"\nname = "../x"', "name"),
        (f'url = "http://x/"\nsecret = "{SECRET}"\nwhat = 1', "what"),
        (f'url = "http://x/"\nsecret = "{SECRET}"\n[[sinks.webhook]]\nurl = "http://x/"\nsecret = "{SECRET}"', "name"),
    ],
)
def test_a_wrong_table_is_refused_by_its_key(tmp_path: Path, table: str, said: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[[sinks.webhook]]\n{table}\n")
    with pytest.raises(Refusal) as caught:
        Config.load(path)
    assert said in caught.value.message
    assert SECRET not in caught.value.message


def test_the_secret_is_not_printed() -> None:
    assert SECRET not in repr(Config.load(Path("/nowhere"))) + repr(WebhookConfig(url="http://x/", secret=SECRET))
