"""The async client: calls operations by name, outlives the daemon's restarts, repeats what is safe to repeat."""

import asyncio
import os
import re
import warnings
from base64 import b64encode
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from limpet.client.codec import Codec, encode, fast
from limpet.client.home import find_home, socket_of
from limpet.client.methods.inherited import AsyncMethods
from limpet.client.wire import LostError, Pool, Reply, UnreachableError
from limpet.model.context import current_context
from limpet.model.errors import TAKEN, Refusal
from limpet.model.version import VERSION

PATIENCE_S: Final = 30.0
"""How long a call goes on looking for a daemon that has gone, before it gives up."""
_OTHERS_FIRST_S: Final = 2.0
"""How long a daemon that was there is left to whoever runs it to bring back, before a client starts one itself."""
# What a failure wears over HTTP alone (RFC 9457); the answer is the same everywhere without it.
_DRESS: Final = ("type", "title", "status", "detail")
_LOST_MAX: Final = 5
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_SERVER: Final = f"limpet/{VERSION}".encode()

if TYPE_CHECKING:
    from limpet.client.events import Events
    from limpet.client.websocket import WebSocket

Params = Mapping[str, Any] | bytes | None


def connect(home: str | os.PathLike[str] | None = None, *, start: bool = True) -> "AsyncClient":
    """A client of the daemon of `home` (default: `LIMPET_HOME`): `async with limpet.connect() as client`.

    With `start` a daemon that is not running is started, now and whenever it is gone.
    """
    return AsyncClient(home, start=start)


class AsyncClient(AsyncMethods):
    """Any number of calls may be under way at once, each on a connection of its own.

    Each operation has a typed method: `client.runs.get(run_id=...)`, `client.shell(command=...)`.
    """

    def __init__(
        self,
        home: str | os.PathLike[str] | None = None,
        *,
        start: bool = True,
        codec: Codec | None = None,
        caller: Mapping[str, Any] | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.daemon_version: str | None = None
        """The version that answered last; None before the first answer."""
        self._asked_home: Final = home
        self._start: Final = start
        self._codec: Final = codec or fast()
        self._ambient: Final = dict(caller or {})
        self._caller: Final = self._header(self._ambient) if caller is not None else b""
        self._patience_s: Final = patience_s
        self._home = ""
        self._pool = Pool("")
        self._repeatable: set[str] | None = None
        self._was_up = False
        self._server = b""

    @property
    def home(self) -> str:
        """The home of the daemon, known once connected."""
        return self._home

    async def __aenter__(self) -> Self:
        self._home = find_home(self._asked_home)
        self._pool = Pool(socket_of(self._home))
        outage = Outage(self._patience_s)
        while not self._was_up:
            try:
                await self._pool.probe()
                self._was_up = True
            except UnreachableError:
                await self._find_daemon(outage)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.close()

    async def call(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """The answer of an operation, as on every surface: failures are answers too, with `ok: false` and `error`.

        Raises `limpet.LimpetError` only when there is no answer: no daemon, or one that was lost half-way.
        """
        return await self.call_raw(operation, params)

    async def call_checked(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """As `call`, but a failure raises `limpet.LimpetError`; a wait's timeout stays an answer with `ok: false`."""
        answer = await self.call_raw(operation, params)
        if not answer.get("ok") and answer.get("error") != "timeout":
            raise as_error(answer)
        return answer

    async def call_raw(
        self, operation: str, params: Params = None, *, repeat: bool | None = None, as_caller: bool = False
    ) -> dict[str, Any]:
        """As `call`, with `params` as a mapping or as JSON already.

        `repeat` says whether to ask again when the connection was lost in between: by default what the daemon's rows
        call repeatable, and what has a `key`. `as_caller` sends the caller's cwd and environment along.
        """
        try:
            request = self._request(operation, params, as_caller=as_caller)
        except Refusal as refusal:
            return refusal.answer()
        outage: Outage | None = None
        lost = 0
        while True:
            try:
                reply = await self._pool.exchange(request)
            except UnreachableError:
                outage = outage or Outage(self._patience_s)
                await self._find_daemon(outage)
                continue
            except LostError:
                lost += 1
                if lost < _LOST_MAX and await self._may_repeat(operation, params, repeat):
                    continue
                raise _lost(operation) from None
            answer = self._read(reply)
            if reply.status != 503 or not await self._is_worth_another(answer, operation, params, repeat):
                return answer
            outage = outage or Outage(self._patience_s)
            if not await outage.pause():
                return answer

    def events(self, *names: str, session: str | None = None, after: int | None = None) -> "Events":
        """What runs of whitelisted programs do, as it happens: `async for frame in client.events("exec.*")`.

        `session` is one of limpet's or a `sessionKey`; with `after`, the `seq` of an event, it begins behind that one,
        as far as events are kept. See docs/reference/events.md for the frames.
        """
        from limpet.client.events import Events

        subscription: dict[str, Any] = {"events": list(names) or ["*"]}
        subscription |= {} if session is None else {"session": session}
        subscription |= {} if after is None else {"after": after}
        return Events(self.websocket, subscription)

    async def websocket(self) -> "WebSocket":
        """A connection of its own to the gateway: `call`, `subscribe` and `next` frame. Close it when done."""
        from limpet.client.websocket import WebSocket

        outage = Outage(self._patience_s)
        while True:
            try:
                return await WebSocket.open(socket_of(self._home), self._codec)
            except UnreachableError:
                await self._find_daemon(outage)
            except LostError:  # it stops just now
                if not await outage.pause():
                    raise _no_daemon(self._home) from None

    def _request(self, operation: str, params: Params, *, as_caller: bool) -> bytes:
        if not _NAME.fullmatch(operation):
            from urllib.parse import quote

            operation = quote(operation, safe="")
        body = params if isinstance(params, bytes) else encode(params or {}, self._codec)
        caller = self._caller if as_caller else b""
        if context := current_context():
            caller = self._header((self._ambient if as_caller else {}) | {"context": context})
        return b"POST /v1/call/%b HTTP/1.1\r\nhost: limpet\r\n%bcontent-type: application/json\r\n%b%d\r\n\r\n%b" % (
            operation.encode(),
            caller,
            b"content-length: ",
            len(body),
            body,
        )

    def _header(self, ambient: Mapping[str, Any]) -> bytes:
        return b"limpet-caller: %b\r\n" % b64encode(self._codec.encode(ambient))

    def _read(self, reply: Reply) -> dict[str, Any]:
        if reply.server != self._server:
            self._greet(reply.server)
        try:
            answer: dict[str, Any] = self._codec.decode(reply.body)
        except ValueError:
            raise Refusal("internal", f"what listens in {self._home} does not answer as limpet does") from None
        if reply.status >= 400:
            for name in _DRESS:
                answer.pop(name, None)
        return answer

    def _greet(self, server: bytes) -> None:
        self._server = server
        self.daemon_version = server.decode("latin-1").removeprefix("limpet/")
        if server.startswith(b"limpet/") and server != _SERVER:
            warnings.warn(
                f"the daemon is limpet {self.daemon_version}, this is {VERSION}: "
                "`limpet restart` renews it, runs go on",
                RuntimeWarning,
                stacklevel=4,
            )

    async def _may_repeat(self, operation: str, params: Params, repeat: bool | None) -> bool:
        if repeat is not None:
            return repeat
        named: Any = params
        if isinstance(params, bytes):
            try:
                named = self._codec.decode(params)
            except ValueError:
                return True  # it will only be refused again
        if isinstance(named, Mapping) and named.get("key") is not None:  # pyright: ignore[reportUnknownMemberType]
            return True
        if self._repeatable is None:
            self._repeatable = await self._fetch_repeatable()
        return operation in self._repeatable

    async def _fetch_repeatable(self) -> set[str]:
        request = b"GET /v1/operations HTTP/1.1\r\nhost: limpet\r\n\r\n"
        outage = Outage(self._patience_s)
        for _ in range(_LOST_MAX):
            try:
                while True:
                    try:
                        rows = self._read(await self._pool.exchange(request))
                        break
                    except UnreachableError:
                        await self._find_daemon(outage)
            except LostError:
                continue
            return {row["name"] for row in rows.get("operations", ()) if row["repeatable"]}
        return set()

    async def _is_worth_another(
        self, answer: dict[str, Any], operation: str, params: Params, repeat: bool | None
    ) -> bool:
        reason = answer.get("reason")
        if reason == "stopping":  # refused before it began
            return repeat is not False
        return reason == "interrupted" and await self._may_repeat(operation, params, repeat)

    async def _find_daemon(self, outage: "Outage") -> None:
        """Starts the daemon, or waits for one; returns when it may be worth trying again."""
        if not self._start and not self._was_up:
            message = f"no daemon listens at {socket_of(self._home)}: start it with `limpet serve`"
            raise Refusal("unavailable", message, reason="not_running")
        if self._was_up and (not self._start or outage.age_s() < _OTHERS_FIRST_S):
            if not await outage.pause():
                raise _no_daemon(self._home)
            return
        from limpet.client.start import start

        if outage.is_over():
            raise _no_daemon(self._home)
        try:
            await start(self._home)
        except Refusal as refusal:
            if refusal.reason != "home_held" or not await outage.pause():
                raise


class Outage:
    """The time without a daemon that one call has seen."""

    def __init__(self, patience_s: float) -> None:
        self._clock: Final = asyncio.get_running_loop().time
        self._since: Final = self._clock()
        self._patience_s: Final = patience_s

    def age_s(self) -> float:
        """How long it has lasted."""
        return self._clock() - self._since

    def is_over(self) -> bool:
        """Whether patience is over."""
        return self.age_s() >= self._patience_s

    async def pause(self) -> bool:
        """A short wait between two tries, since nothing tells of a daemon's coming; False when patience is over."""
        if self.is_over():
            return False
        await asyncio.sleep(0.02)
        return True


def as_error(answer: Mapping[str, Any]) -> Refusal:
    """The exception that says what a failed answer says."""
    fields = {name: value for name, value in answer.items() if name not in TAKEN | {"message", "reason"}}
    return Refusal(
        str(answer.get("error", "internal")),
        str(answer.get("message", "")),
        reason=answer.get("reason"),
        **fields,
    )


def _lost(operation: str) -> Refusal:
    message = f"the connection to the daemon was lost before {operation} was answered: it may have been done or not"
    return Refusal("unavailable", message, reason="connection_lost")


def _no_daemon(home: str) -> Refusal:
    message = f"the daemon of {home} is gone and did not come back: see {home}/daemon.log"
    return Refusal("unavailable", message, reason="not_running")
