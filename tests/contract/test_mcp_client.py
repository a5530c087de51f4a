"""MCP with the SDK's own client, in its newest revision and by the older handshake, over stdio (6.4)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from .home import LIMPET, Home

NEWEST = "2026-07-28"


def over_stdio(home: Home, use: Callable[[Client], Awaitable[None]], mode: Any, *args: str) -> None:
    async def main() -> None:
        server = StdioServerParameters(command=LIMPET, args=["mcp", *args], env=home.env, cwd=str(home.work))
        async with asyncio.timeout(100), Client(server, mode=mode) as client:
            await use(client)

    asyncio.run(main())


@pytest.mark.requirement("6.4")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_gets_along(house: Home, mode: str) -> None:
    async def use(client: Client) -> None:
        assert (client.protocol_version == NEWEST) is (mode == "auto")
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "shell" in tools
        ran = await client.call_tool("shell", {"command": "echo hi; exit 3"})
        assert ran.structured_content is not None
        assert (ran.structured_content["stdout"], ran.structured_content["exit_code"]) == ("hi\n", 3)
        assert not ran.is_error
        refused = await client.call_tool("shell", {"command": "true", "nosuch": 1})
        assert refused.is_error
        assert refused.structured_content is not None
        assert refused.structured_content["error"] == "invalid_argument"
        assert (await client.list_resource_templates()).resource_templates

    over_stdio(house, use, mode)


@pytest.mark.requirement("6.4", "9.mcp")
def test_progress_comes_through_the_official_client(house: Home) -> None:
    told: list[float] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:  # noqa: ARG001
        told.append(progress)

    async def use(client: Client) -> None:
        ran = await client.call_tool("shell", {"command": "sleep 6; echo over"}, progress_callback=hear)
        assert ran.structured_content is not None
        assert ran.structured_content["stdout"] == "over\n"

    over_stdio(house, use, "auto")
    assert told
    assert told == sorted(told)
