"""One nursery for each file of tests: keepers that are ready when a test begins."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.keeper.driver import Nursery


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery() as nursery:
        yield nursery
