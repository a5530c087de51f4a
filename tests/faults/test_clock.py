"""The keeper's wall clock is set while its command runs: deadline, grace and order stay what they were."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.contract.clocks import HOUR_S, TEN_YEARS_S, JumpingClock
from tests.faults.kept import Kept


@pytest.mark.requirement("F71", "0.6", "1.6")
@pytest.mark.parametrize("offset_s", [HOUR_S, -HOUR_S, TEN_YEARS_S, -TEN_YEARS_S])
def test_deadline_and_grace_are_monotonic(tmp_path: Path, offset_s: int) -> None:
    """Injector: the jumping clock, preloaded into the keeper."""
    clock = JumpingClock(tmp_path)
    with Kept(tmp_path / "run", env={**os.environ, **clock.env}) as kept:
        began = time.monotonic()
        kept.begin("/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.05; done", timeout_ms=800, kill_grace_ms=300)
        clock.jump(offset_s)
        facts = kept.finish()
        took_s = time.monotonic() - began
    assert 1.0 < took_s < 20, took_s
    stopping = next(fact for fact in facts if fact["fact"] == "stopping")
    assert stopping["at"] / 1000 - time.time() == pytest.approx(offset_s, abs=60), "the clock was not set"
    assert [fact["n"] for fact in facts] == list(range(1, len(facts) + 1))
    ended = next(fact for fact in facts if fact["fact"] == "ended")
    assert (ended["by"], ended["survivors"]) == ("timeout", [])
