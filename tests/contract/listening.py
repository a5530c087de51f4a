"""A client of the gateway, as anybody's WebSocket library has it, and operations over it."""

import json
from collections.abc import Callable
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Self

from websockets.sync.client import unix_connect

from .home import Answer, Home
from .surface import Surface, checked

DEADLINE_S = 30.0


class Listener:
    """One connection. Frames that come while an answer is awaited are kept, in their order."""

    def __init__(self, home: Home, events: list[str] | None = None, **subscription: Any) -> None:
        self._open = ExitStack()
        connecting = unix_connect(str(home.socket), "ws://localhost/ws", max_size=None, ping_interval=None)
        self.socket = self._open.enter_context(connecting)
        self.hello: Answer = json.loads(self.socket.recv(DEADLINE_S))
        self._kept: list[Answer] = []
        self._last_id = 0
        if events is not None or subscription:
            self.subscribed = self.call("subscribe", {"events": events or ["*"], **subscription})
            if "after" in subscription:
                self._kept.clear()  # it comes again, in its place

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def call(self, method: str, params: Answer | None = None) -> Answer:
        """The answer, failures too."""
        self._last_id += 1
        self.socket.send(json.dumps({"type": "req", "id": self._last_id, "method": method, "params": params or {}}))
        while True:
            frame = json.loads(self.socket.recv(DEADLINE_S))
            if frame["type"] != "res":
                self._kept.append(frame)
                continue
            assert frame["id"] == self._last_id, frame
            assert frame.keys() == {"type", "id", "ok", "payload" if frame["ok"] else "error"}
            return checked(frame["payload"] if frame["ok"] else frame["error"])

    def next(self, timeout_s: float = DEADLINE_S) -> Answer:
        """The next frame that is no answer."""
        if self._kept:
            return self._kept.pop(0)
        frame: Answer = json.loads(self.socket.recv(timeout_s))
        return frame

    def until(self, holds: Callable[[Answer], bool]) -> list[Answer]:
        """The next frames, up to one for which that holds."""
        frames: list[Answer] = []
        while not frames or not holds(frames[-1]):
            frames.append(self.next())
        return frames

    def to_the_end(self, run_id: str) -> list[Answer]:
        """The next frames, up to that run's `exec.completed`."""
        return self.until(lambda frame: frame.get("event") == "exec.completed" and frame["payload"]["execId"] == run_id)


class WebSocket(Surface):
    """Each call on a connection of its own."""

    name = "ws"

    def __init__(self, home: Home) -> None:
        self._home = home

    def call(self, op: str, params: Answer | None = None) -> Answer:
        with Listener(self._home) as listener:
            return listener.call(op, params)
