"""`limpet send`: keys and text, typed into a run's terminal."""

import os
import sys
from typing import Any

from limpet.client.client import AsyncClient
from limpet.model.errors import Refusal
from limpet.surfaces.cli.daemon_client import succeeded, with_client
from limpet.surfaces.cli.say import say_json


def send(*, run_id: str, keys: tuple[str, ...], text: str | None, secret: bool, as_json: bool) -> int:
    """Returns once the terminal has taken all of it."""
    asked: dict[str, Any] = {
        "action": "send_keys",
        "run_id": run_id,
        "key": f"cli-{os.urandom(12).hex()}",  # asked again after a lost connection, it is still typed once
    }
    try:
        typed = sys.stdin.buffer.read().decode() if text == "-" else text
        "".join((*keys, typed or "")).encode()
    except UnicodeError:
        raise Refusal("invalid_argument", "what is to be typed is not UTF-8: runs.write takes any bytes") from None
    asked |= {"keys": list(keys)} if keys else {}
    asked |= {"text": typed} if typed is not None else {}
    asked |= {"secret": True} if secret else {}

    async def call(client: AsyncClient) -> dict[str, Any]:
        return succeeded(await client.call_raw("shell", asked))

    answer = with_client(call)
    if as_json:
        say_json(answer)
    return 0
