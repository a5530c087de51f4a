"""The compiled programs, a marker, a place to make runs in, and the two ways in which a keeper kills."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.build import programs
from tests.hostile.cgroups import group, hierarchy
from tests.hostile.marked import Marked
from tests.hostile.warm import ParentNursery
from tests.keeper.driver import Keeper, Nursery


@pytest.fixture(scope="session")
def hostile() -> Iterator[Path]:
    """The directory of the compiled programs."""
    with programs() as directory:
        yield directory


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory for runs, short and open to every user, as pytest's own are not."""
    directory = Path(tempfile.mkdtemp(prefix="limpet-runs-"))
    directory.chmod(0o755)
    yield directory
    shutil.rmtree(directory)


def cgroup2() -> Path:
    mount = hierarchy()
    if mount is None:
        pytest.skip("no cgroup v2 hierarchy that may be written: killing through one cannot be tried here")
    return mount


@pytest.fixture(scope="session", params=["cgroup", "subreaper"])
def parent(request: pytest.FixtureRequest) -> Iterator[Path | None]:
    """The cgroup under which the keeper makes its own; None: it kills as a subreaper."""
    if request.param == "subreaper":
        yield None
        return
    with group(cgroup2()) as path:
        yield path


@pytest.fixture
def marked(hostile: Path) -> Iterator[Marked]:
    """The marker of the test's run; swept up after the keeper has gone."""
    with Marked(hostile) as made:
        yield made


@pytest.fixture(scope="session")
def nursery(parent: Path | None) -> Iterator[Nursery]:
    """Warm keepers, which kill in the one way or in the other."""
    with ParentNursery(parent) as made:
        yield made


@pytest.fixture
def keeper(place: Path, nursery: Nursery, marked: Marked) -> Iterator[Keeper]:
    del marked
    with nursery.keeper(place / "run") as made:
        yield made
