"""A client of the gateway for tests (2.6): its hello, requests and their answers, and every event in its order."""

import itertools
import json
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

from websockets.sync.client import ClientConnection, connect, unix_connect
from websockets.typing import Subprotocol

from .home import Answer, Home
from .surface import checked

WITHIN_S = 60.0


class Gateway:
    """One connection. Events that come while something else is waited for are kept."""

    def __init__(self, home: Home) -> None:
        # Tests may take longer over a step than a client should over an answer to a ping.
        path = str(home.socket)
        self._begin(unix_connect(path, "ws://localhost/ws", max_size=None, proxy=None, ping_interval=None))

    def _begin(self, connecting: AbstractContextManager[ClientConnection]) -> None:
        self._open = ExitStack()
        self.connection: ClientConnection = self._open.enter_context(connecting)
        self.events: list[Answer] = []
        self.dropped: list[Answer] = []
        self._answers: dict[Any, Answer] = {}
        self._ids = itertools.count(1)
        self.hello = self.frame()

    def frame(self, timeout_s: float = WITHIN_S) -> Answer:
        """The next frame, whatever it is."""
        text = self.connection.recv(timeout_s)
        assert isinstance(text, str), text
        frame: Answer = json.loads(text)
        return frame

    def hear(self, timeout_s: float = WITHIN_S) -> None:
        """Takes one frame in."""
        frame = self.frame(timeout_s)
        if frame["type"] == "event":
            assert set(frame) == {"type", "event", "payload", "seq"}, frame
            self.events.append(frame)
        elif frame["type"] == "dropped":
            assert set(frame) >= {"type", "count", "cursors"}, frame
            self.dropped.append(frame)
        else:
            assert frame["type"] == "res", frame
            self._answers[frame["id"]] = frame

    def ask(self, method: str, params: Answer | None = None, number: Any = None) -> Any:
        """Sends a request; the answer is its id."""
        number = next(self._ids) if number is None else number
        self.connection.send(json.dumps({"type": "req", "id": number, "method": method, "params": params or {}}))
        return number

    def answer(self, number: Any) -> Answer:
        """The `res` frame of a request."""
        while number not in self._answers:
            self.hear()
        return self._answers.pop(number)

    def call(self, method: str, params: Answer | None = None) -> Answer:
        """What the operation answers, as it is everywhere."""
        res = self.answer(self.ask(method, params))
        assert set(res) == {"type", "id", "ok", "payload" if res["ok"] else "error"}, res
        told: Answer = res["payload"] if res["ok"] else res["error"]
        return checked(told)

    def until(self, holds: Callable[[Answer], bool], timeout_s: float = WITHIN_S) -> Answer:
        """The first event for which it holds, of those that came and those that come."""
        deadline, seen = time.monotonic() + timeout_s, 0
        while True:
            for event in self.events[seen:]:
                if holds(event):
                    return event
            seen = len(self.events)
            self.hear(max(0.0, deadline - time.monotonic()))

    def of(self, run_id: str) -> Sequence[Answer]:
        """All events of a run that has ended, in their order."""
        self.until(lambda event: event["event"] == "exec.completed" and event["payload"]["execId"] == run_id)
        return [event for event in self.events if event["payload"].get("execId") == run_id]

    def close(self) -> None:
        self._open.close()

    def __enter__(self) -> "Gateway":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TcpGateway(Gateway):
    """The same over TCP, as a browser or another machine would come in."""

    def __init__(self, url: str, *, protocols: Sequence[str] = (), headers: dict[str, str] | None = None) -> None:
        connecting = connect(
            url.replace("http://", "ws://") + "/ws",
            subprotocols=[Subprotocol(each) for each in protocols] or None,
            additional_headers=headers or {},
            max_size=None,
            proxy=None,
            ping_interval=None,
        )
        self._begin(connecting)
