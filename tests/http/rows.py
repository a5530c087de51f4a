"""Rows of no dialect, and an engine that only remembers: enough to try a surface with."""

import asyncio
from typing import Annotated, Any, Literal

import msgspec

from limpet.model.errors import Refusal
from limpet.model.operation import Caller, Operation, Timeout


class Engine:
    """What the handlers saw, as events that a test can wait for."""

    def __init__(self) -> None:
        self.calls = 0
        self.awaited_calls = 1
        self.entered = asyncio.Event()
        self.released = asyncio.Event()
        self.let_go = asyncio.Event()
        self.callers: list[Caller] = []


class EchoRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All kinds of fields."""

    text: str
    number: Annotated[int, msgspec.Meta(ge=0, le=100)] = 0
    ratio: float = 0.0
    flag: bool = False
    mode: Literal["one", "two"] | None = None
    env: dict[str, str] = {}
    items: list[int] = []
    key: str | None = None


class EchoResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What came."""

    text: str
    calls: int


class Nothing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """No field at all."""


class OnceRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a key makes safe to ask again."""

    key: str | None = None


class WaitTimeout(Timeout, frozen=True, kw_only=True):
    """With the cursor to go on from."""

    next_seq: int


async def echo(engine: Engine, request: EchoRequest, caller: Caller) -> EchoResponse:
    engine.calls += 1
    engine.callers.append(caller)
    return EchoResponse(text=request.text, calls=engine.calls)


async def nothing(engine: Engine, _request: Nothing, _caller: Caller) -> Nothing:
    engine.calls += 1
    return Nothing()


async def wait(engine: Engine, _request: Nothing | OnceRequest, _caller: Caller) -> Nothing:
    engine.calls += 1
    if engine.calls >= engine.awaited_calls:
        engine.entered.set()
    try:
        await engine.released.wait()
    except asyncio.CancelledError:
        engine.let_go.set()
        raise
    return Nothing()


async def time_out(_engine: Engine, _request: Nothing, _caller: Caller) -> WaitTimeout:
    return WaitTimeout(next_seq=7)


async def refuse(_engine: Engine, _request: Nothing, _caller: Caller) -> Nothing:
    raise Refusal("busy", "something runs there: wait for it", reason="mode", mode="interactive")


async def fail(_engine: Engine, _request: Nothing, _caller: Caller) -> Nothing:
    raise ZeroDivisionError("secret\nsecond line")


def row(name: str, request: type[Any], response: type[Any], handle: Any, *, repeatable: bool) -> Operation[Any, Any]:
    return Operation(name, request, response, handle, f"Tries {name}.", repeatable, repeatable)


ROWS: tuple[Operation[Any, Any], ...] = (
    row("try.echo", EchoRequest, EchoResponse, echo, repeatable=False),
    row("try.nothing", Nothing, Nothing, nothing, repeatable=True),
    row("try.wait", Nothing, Nothing, wait, repeatable=True),
    row("try.once", OnceRequest, Nothing, wait, repeatable=False),
    row("try.time_out", Nothing, Nothing, time_out, repeatable=True),
    row("try.refuse", Nothing, Nothing, refuse, repeatable=True),
    row("try.fail", Nothing, Nothing, fail, repeatable=True),
)
