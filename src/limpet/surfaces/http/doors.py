"""What is served behind the gate: paths, and who answers there or takes the connection over."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol

from starlette.types import ASGIApp

from limpet.model.operation import Caller


class Wire(Protocol):
    """What an upgraded connection writes to: an asyncio.Transport, whoever made it."""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends, or keeps until it can be sent."""
        ...

    def get_write_buffer_size(self) -> int:
        """How many bytes wait to be sent."""
        ...

    def pause_reading(self) -> None:
        """Takes no more for now."""
        ...

    def resume_reading(self) -> None:
        """Goes on taking."""
        ...

    def get_extra_info(self, name: str) -> Any:
        """What asyncio knows of it: `socket`, say."""
        ...

    def write_eof(self) -> None:
        """Sends no more once all is sent; goes on taking."""
        ...

    def close(self) -> None:
        """Ends once all is sent."""
        ...

    def abort(self) -> None:
        """Ends now."""
        ...


class Upgraded(Protocol):
    """What goes on on a connection that has left HTTP: asyncio's own calls, and one for the server's end.

    It closes the transport when it is done. Nobody watches its deadlines but itself.
    """

    def data_received(self, data: bytes) -> None:
        """Bytes, those behind the head first."""
        ...

    def eof_received(self) -> bool | None:
        """The other side writes no more; true to go on writing."""
        ...

    def pause_writing(self) -> None:
        """The other side reads too slowly: what is written from here on is kept in memory."""
        ...

    def resume_writing(self) -> None:
        """It has caught up."""
        ...

    def connection_lost(self, exc: Exception | None) -> None:
        """It is gone."""
        ...

    def shutdown(self) -> None:
        """The server stops: say so and close, or be cut two seconds later."""
        ...


Upgrade = Callable[[bytes, Caller, Wire], Upgraded]
"""Takes a connection over. It gets the request's head as it stood on the wire, its last empty line included but without
the token, who calls, and the transport, on which it answers: with 101, or with a refusal and a close."""


@dataclass(frozen=True, slots=True)
class Door:
    """One path of the server. Whatever comes here has passed the gate: nobody opens a path in another way.

    `serve` is an ASGI application that gets the requests with one of the `methods`, with the caller in the scope as
    `limpet.caller`; `upgrade` gets those that ask to leave HTTP. Neither has a side effect on GET. `path` may hold
    Starlette's parameters, but where `upgrade` or `is_open` is set it is exact. `is_open` is for health and for a
    page's static files, which GET without a token.
    """

    path: str
    methods: tuple[str, ...] = ("GET",)
    serve: ASGIApp | None = None
    upgrade: Upgrade | None = None
    is_open: bool = False

    def __post_init__(self) -> None:
        if not self.path.startswith("/") or (("{" in self.path) and (self.upgrade is not None or self.is_open)):
            raise ValueError(f"a door cannot be at {self.path!r}")
        if self.is_open and not {"GET", "HEAD"}.issuperset(self.methods):
            raise ValueError(f"{self.path} is open, so it takes nothing but GET")


CALLER: Final = "limpet.caller"
"""Where the gate's word for who calls stands in an ASGI scope; a scope without it has not passed the gate."""
