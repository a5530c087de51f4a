"""`limpet mcp`: the tools of coding agents, over stdin and stdout."""

from importlib import import_module
from typing import Any

from limpet.surfaces.cli.daemon_client import ambient


def mcp(*, tools: str | None) -> int:
    """Serves until stdin ends."""
    stdio: Any = import_module("limpet.surfaces.mcp.stdio")  # by name: surfaces do not know each other
    return int(stdio.serve(tools or "agent", ambient()))
