"""The fixtures of the contract tests: one daemon that most share, homes of their own for the rest, the surfaces."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .fifos import Gate, Lifeline
from .home import Home
from .listening import WebSocket
from .mcp import Mcp
from .surface import Async, Cli, Http, Surface, Sync

SURFACES: dict[str, Callable[[Home], Surface]] = {
    "http": Http,
    "async": Async,
    "sync": Sync,
    "cli": Cli,
    "mcp": Mcp,
    "ws": WebSocket,
}


@pytest.fixture(scope="session")
def house() -> Iterator[Home]:
    """The shared home, all settings at their defaults, its daemon served in the foreground."""
    home = Home()
    try:
        home.start()
        yield home
    finally:
        home.close()


@pytest.fixture(scope="session")
def surfaces(house: Home) -> Iterator[dict[str, Surface]]:
    made = {name: kind(house) for name, kind in SURFACES.items()}
    yield made
    for surface in made.values():
        surface.close()


@pytest.fixture(params=list(SURFACES))
def surface(request: pytest.FixtureRequest, surfaces: dict[str, Surface]) -> Surface:
    """Runs the test once over every surface."""
    return surfaces[request.param]


@pytest.fixture(scope="session")
def http(house: Home) -> Http:
    """The one surface for tests of behaviour that does not hang on the way in."""
    return Http(house)


@pytest.fixture
def new_home() -> Iterator[Callable[..., Home]]:
    """Makes homes of the test's own, and sweeps up after them."""
    made: list[Home] = []

    def make(config: str = "") -> Home:
        home = Home(config)
        made.append(home)
        return home

    yield make
    for home in made:
        home.close()


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    with Lifeline(tmp_path) as line:
        yield line


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    with Gate(tmp_path) as gate:
        yield gate
