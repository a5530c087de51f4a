"""How hits reach those who are told: messages of the backlog, notes to Python sinks, posts of the webhook sink."""

import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

import limpet

from .home import Answer, until
from .items import SNIPPET_MAX_CHARS
from .surface import Surface

MESSAGE_FIELDS = {"id", "ts", "run_id", "event", "text", "snippet"}
# `limpet.open(home, sinks=[...])`
open_engine: Callable[..., AbstractAsyncContextManager[Any]] = limpet.open


def lease_config(seconds: int) -> str:
    return f"[backlog]\nlease_s = {seconds}\n"


def webhook_config(url: str, secret: str) -> str:
    return f'[[sinks.webhook]]\nurl = "{url}"\nsecret = "{secret}"\n'


def checked_message(message: Answer) -> Answer:
    assert set(message) >= MESSAGE_FIELDS, message
    assert isinstance(message["id"], str), message
    assert type(message["ts"]) is int, message
    assert len(message["snippet"]) <= SNIPPET_MAX_CHARS, message
    return message


def take(surface: Surface, session_id: str, most: int = 100) -> tuple[list[Answer], str | None]:
    """The messages handed out now, and the lease to acknowledge them with."""
    answer = surface.ok("backlog.take", {"session_id": session_id, "max": most})
    messages = [checked_message(message) for message in answer["messages"]]
    assert len(messages) <= most, answer
    assert len({message["id"] for message in messages}) == len(messages), answer
    assert not messages or isinstance(answer["lease"], str), answer
    return messages, answer["lease"]


def taken(surface: Surface, session_id: str, number: int) -> tuple[list[Answer], list[str]]:
    """So many messages, however many calls it takes until they have all come, and the leases of these calls."""
    messages: list[Answer] = []
    leases: list[str] = []

    def enough() -> bool:
        more, lease = take(surface, session_id)
        if more and lease is not None:
            messages.extend(more)
            leases.append(lease)
        return len(messages) >= number

    until(enough, f"{number} messages of {session_id}", 60)
    assert len(messages) == number, messages
    return messages, leases


def acknowledge(surface: Surface, *leases: str) -> None:
    for lease in leases:
        surface.ok("backlog.ack", {"lease": lease})


def drained(surface: Surface, session_id: str, number: int, most: int = 100) -> list[Answer]:
    """So many messages, each acknowledged as soon as it is there, in the order in which they came."""
    messages: list[Answer] = []

    def enough() -> bool:
        more, lease = take(surface, session_id, most)
        if more and lease is not None:
            acknowledge(surface, lease)
            messages.extend(more)
        return len(messages) >= number

    until(enough, f"{number} messages of {session_id}", 60)
    assert len(messages) == number, messages
    return messages


def note_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Answer:
    """What a sink's method was told, by name: one object with fields, or arguments by name."""
    told: Answer = dict(kwargs)
    for arg in args:
        told |= arg if isinstance(arg, dict) else {name: getattr(arg, name) for name in dir(arg) if name[0] != "_"}
    return told


class Recorder:
    """A Python sink that keeps what it is told, after it has done what the test wants of it."""

    def __init__(self, before: Callable[[str], None] = lambda _: None, name: str = "recorder") -> None:
        self.name = name
        self._before = before
        self._lock = threading.Lock()
        self._notes: list[tuple[str, Answer]] = []

    def _take(self, kind: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        note = note_of(args, kwargs)
        with self._lock:
            self._notes.append((kind, note))
        self._before(kind)

    def on_status(self, *args: Any, **kwargs: Any) -> None:
        self._take("status", args, kwargs)

    def on_watch(self, *args: Any, **kwargs: Any) -> None:
        self._take("watch", args, kwargs)

    def on_output(self, *args: Any, **kwargs: Any) -> None:
        self._take("output", args, kwargs)

    def notes(self, kind: str, run_id: str) -> list[Answer]:
        with self._lock:
            return [note for of_kind, note in self._notes if of_kind == kind and note["run_id"] == run_id]


@dataclass(frozen=True)
class Post:
    """One request that the webhook sink has made."""

    headers: dict[str, str]
    body: bytes
    status: int

    @property
    def told(self) -> Answer:
        message: Answer = json.loads(self.body)
        return message

    def signed_with(self, secret: str) -> bool:
        """Does a header end with the HMAC-SHA256 of the body, or of `T.` and the body where it begins with t=T?"""

        def digest(signed: bytes) -> str:
            return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()

        for value in self.headers.values():
            time_told = value.removeprefix("t=").split(",")[0].encode() if value.startswith("t=") else None
            if value.endswith(digest(self.body if time_told is None else time_told + b"." + self.body)):
                return True
        return False


@dataclass
class Receiver:
    """A web server that keeps what is posted to it and answers as it is told; while `hung`, it does not answer."""

    answer: Callable[[int], int] = lambda _: 200
    posts: list[Post] = field(default_factory=list[Post])
    hung: threading.Event = field(default_factory=threading.Event)
    open_now: int = 0
    most_open: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._go = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/hook?for=tests"

    def hang(self) -> None:
        self._go.clear()
        self.hung.set()

    def go_on(self) -> None:
        self.hung.clear()
        self._go.set()

    def of_event(self, event: str) -> list[Post]:
        with self._lock:
            return [post for post in self.posts if post.told.get("event") == event]

    def _received(self, headers: dict[str, str], body: bytes) -> int:
        with self._lock:
            self.open_now += 1
            self.most_open = max(self.most_open, self.open_now)
        if self.hung.is_set():
            self._go.wait(60)
        with self._lock:
            self.open_now -= 1
            status = self.answer(len(self.posts))
            self.posts.append(Post(headers, body, status))
        return status

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = receiver._received(dict(self.headers.items()), body)
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Tests are quiet."""

        return Handler

    def __enter__(self) -> "Receiver":
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.go_on()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(20)
