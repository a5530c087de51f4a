"""A client for one command: light to import, with the caller's cwd and environment at hand."""

import asyncio
import os
import warnings
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from limpet.client.client import AsyncClient, as_error
from limpet.client.codec import light
from limpet.model.errors import Refusal
from limpet.surfaces.cli.say import note

Result = TypeVar("Result")


def with_client(
    work: Callable[[AsyncClient], Awaitable[Result]], *, start: bool = True, caller: bool = False
) -> Result:
    """Runs `work` with a connected client; `caller` takes along where the command was typed."""

    async def connected() -> Result:
        client = AsyncClient(start=start, codec=light(), caller=ambient() if caller else None)
        async with client:
            return await work(client)

    warnings.showwarning = _show_warning
    return asyncio.run(connected())


def _show_warning(message: Warning | str, *_where: Any, **_more: Any) -> None:
    note(str(message))


def ambient() -> dict[str, Any]:
    """The cwd and the environment that a command was typed in."""
    try:
        cwd = os.getcwd()  # noqa: PTH109  (pathlib costs 8 ms)
    except FileNotFoundError:
        raise Refusal("invalid_argument", "the current directory is gone: go to another one") from None
    if not _is_text(cwd):
        raise Refusal("invalid_argument", f"the current directory's name is not UTF-8: {cwd!r}")
    env = {name: value for name, value in os.environ.items() if _is_text(name + value)}
    if left_out := sorted(os.environ.keys() - env.keys()):
        note(f"not passed on, because not UTF-8: {', '.join(map(repr, left_out))}")
    return {"cwd": cwd, "env": env, "surface": "cli"}


def _is_text(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def succeeded(answer: dict[str, Any]) -> dict[str, Any]:
    """The answer, unless it is a failure."""
    if not answer.get("ok"):
        raise as_error(answer)
    return answer
