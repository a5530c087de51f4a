"""Doors of no surface: an application, a static file and a conversation that says everything twice."""

import asyncio
from typing import Any

from limpet.model.operation import Caller
from limpet.surfaces.http.doors import CALLER, Door, Wire


class Twice:
    """What an upgraded connection is when all that comes back is what was said, twice."""

    def __init__(self, house: "House", wire: Wire) -> None:
        self.house = house
        self.wire = wire
        self.lost = asyncio.get_running_loop().create_future()
        wire.write(b"HTTP/1.1 101 -\r\nupgrade: websocket\r\nconnection: upgrade\r\ncontent-length: 0\r\n\r\n")

    def data_received(self, data: bytes) -> None:
        self.wire.write(data * 2)

    def eof_received(self) -> bool | None:
        return None

    def pause_writing(self) -> None:
        self.house.paused.set()

    def resume_writing(self) -> None:
        self.house.resumed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(exc)

    def shutdown(self) -> None:
        self.wire.write(b"the server stops")
        self.wire.close()


class House:
    """The doors, and who came through them."""

    def __init__(self) -> None:
        self.served: list[dict[str, Any]] = []
        self.heads: list[bytes] = []
        self.callers: list[Caller] = []
        self.talks: list[Twice] = []
        self.paused = asyncio.Event()
        self.resumed = asyncio.Event()
        self.doors = (
            Door("/try/app", ("GET", "POST", "DELETE"), serve=self.serve),
            Door("/try/app/{name}/more", serve=self.serve),
            Door("/try/page.html", serve=self.serve, is_open=True),
            Door("/try/talk", upgrade=self.upgrade),
        )

    @property
    def count(self) -> int:
        """How many requests and upgrades came through."""
        return len(self.served) + len(self.talks)

    async def serve(self, scope: Any, receive: Any, send: Any) -> None:
        body = b""
        more = True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        self.served.append(dict(scope))
        self.callers.append(scope[CALLER])
        headers = [(b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    def upgrade(self, head: bytes, caller: Caller, wire: Wire) -> Twice:
        self.heads.append(head)
        self.callers.append(caller)
        self.talks.append(Twice(self, wire))
        return self.talks[-1]
