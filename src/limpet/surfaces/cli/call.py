"""`limpet call`: any operation, JSON in and JSON out."""

import json
import os
import sys
from typing import Any

from limpet.client.client import AsyncClient
from limpet.surfaces.cli.daemon_client import with_client
from limpet.surfaces.cli.ends import TIMED_OUT
from limpet.surfaces.cli.say import say_json


def call(*, operation: str, params: str | None, as_json: bool) -> int:
    """Prints the answer, whichever it is; the exit code says whether it is a good one."""
    body = sys.stdin.buffer.read() if params == "-" else (params or "{}").encode(errors="surrogateescape")

    async def ask(client: AsyncClient) -> dict[str, Any]:
        return await client.call_raw(operation, body, as_caller=True)

    answer = with_client(ask, caller=True)
    if os.isatty(1) and not as_json:
        print(json.dumps(answer, indent=2))
    else:
        say_json(answer)
    if answer.get("ok"):
        return 0
    return TIMED_OUT if answer.get("error") == "timeout" else 1
