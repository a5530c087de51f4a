"""Every operation answers the same over every way in, called well or called wrong (0.2): one script for all."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from .every_operation import Tale, operations, tell
from .home import Home
from .likeness import Likeness
from .listening import WebSocket
from .mcp import Mcp, McpHttp
from .surface import Async, Cli, Http, InProcess, Surface, Sync
from .tcp import Port, Tcp

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "operations.md"
WAYS_IN: dict[str, Callable[[Home], Surface]] = {
    "async": Async,
    "sync": Sync,
    "in-process": InProcess,
    "cli": Cli,
    "mcp": Mcp,
    "mcp-http": McpHttp,
    "tcp": lambda home: Tcp(Port(home)),
    "websocket": WebSocket,
}


def told(way: Callable[[Home], Surface], *, served: bool) -> Tale:
    """The script, on a home of its own."""
    home = Home()
    try:
        if served:
            home.start()
        with closing(way(home)) as surface:
            tale = Tale(surface, Likeness(str(home.path), str(home.base)))
            tell(tale)
        return tale
    finally:
        home.close()


@pytest.fixture(scope="module")
def over_http() -> Tale:
    return told(Http, served=True)


# Some two hundred calls, each a process of its own where the way in is the command line.
@pytest.mark.timeout(500)
@pytest.mark.requirement("0.2", "0.3", "9.common")
@pytest.mark.parametrize("way", list(WAYS_IN))
def test_every_operation_answers_as_over_http(over_http: Tale, way: str) -> None:
    tale = told(WAYS_IN[way], served=way not in ("in-process", "tcp"))
    for told_here, told_there in zip(tale.told, over_http.told, strict=True):
        assert told_here == told_there, way


@pytest.mark.requirement("0.2")
def test_the_script_leaves_no_operation_out(over_http: Tale) -> None:
    """Call a new operation in every_operation.py: well, and wrong in each way that it knows."""
    known = set(operations(REFERENCE.read_text("utf-8")))
    assert known - over_http.well == {"daemon.stop"}
    assert known - {op for op, _ in over_http.codes} == {"daemon.doctor"}
