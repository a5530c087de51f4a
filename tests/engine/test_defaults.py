"""What holds where nobody configured anything: the numbers that the contract gives."""

from __future__ import annotations

import pytest

from limpet.config import Config

MIB, GIB = 1 << 20, 1 << 30


@pytest.mark.requirement("0.13", "0.14", "1.5", "1.6", "1.9", "1.10")
@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("retention", "max_bytes", 20 * GIB),
        ("store", "min_free_bytes", GIB),
        ("run", "sync_ms", 1000),
        ("run", "max_output_bytes", 16 * MIB),
        ("run", "spool_max_bytes", GIB),
        ("run", "kill_grace_ms", 2000),
        ("run", "max_parallel", 1024),
        ("backlog", "lease_s", 60),
    ],
)
def test_the_defaults_are_those_of_the_contract(table: str, key: str, value: int) -> None:
    assert getattr(getattr(Config(), table), key) == value
