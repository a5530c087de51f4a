"""How far a run's output is on disk can be seen, and it gets to the end by itself (0.13)."""

from typing import Any

import pytest

from .fifos import Gate
from .home import until
from .surface import Http, Surface


def durable_bytes(surface: Surface, run_id: str, stream: str = "stdout") -> int:
    """`durable_offset` of one stream, whether it is told for each or as one number."""
    told: Any = surface.facts(run_id)["durable_offset"]
    return told if isinstance(told, int) else int(told[stream])


@pytest.mark.requirement("0.13")
def test_all_is_durable_soon_after_the_end(surface: Surface) -> None:
    ran = surface.ok("shell", {"command": "seq 1 50000"})
    total_bytes = surface.read(ran["run_id"])["total_bytes"]
    assert total_bytes == 288_894
    until(lambda: durable_bytes(surface, ran["run_id"]) == total_bytes, "the end of the output to be durable")


@pytest.mark.requirement("0.13")
def test_output_of_a_living_run_is_synced_every_second(http: Http, gate: Gate) -> None:
    run_id = http.spawn("printf 0123456789; " + gate.wait + "printf more")
    http.read(run_id, wait_ms=60_000)
    assert durable_bytes(http, run_id) <= 10
    until(lambda: durable_bytes(http, run_id) == 10, "what was written to be durable while the run goes on")
    gate.open()
    http.finish(run_id)
    until(lambda: durable_bytes(http, run_id) == 14, "the end of the output to be durable")


@pytest.mark.requirement("0.13")
def test_a_run_without_output_is_durable_at_nought(http: Http) -> None:
    ran = http.ok("shell", {"command": "true"})
    assert durable_bytes(http, ran["run_id"]) == 0
