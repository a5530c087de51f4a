"""`limpet mcp`: the tools of coding agents, over stdin and stdout."""

from importlib import import_module
from typing import Any

from limpet.model.errors import Refusal
from limpet.surfaces.cli.daemon_client import ambient
from limpet.surfaces.cli.say import say_failure


def mcp(*, tools: str | None) -> int:
    """Serves until stdin ends."""
    stdio: Any = import_module("limpet.surfaces.mcp.stdio")  # by name: surfaces do not know each other
    try:
        return int(stdio.serve(tools or "agent", ambient()))
    except Refusal as wrong:
        if wrong.answer().get("field") != "tools":
            raise
        say_failure(wrong.answer())
        return 2
