"""The time limit of a run, and the grace behind it, hold by a clock that does not jump (0.6, 1.6, F71)."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

import pytest

from tests.contract.clocks import HOUR_S, TEN_YEARS_S, JumpingClock
from tests.keeper.driver import Keeper


@pytest.mark.requirement("0.6", "1.6", "F71")
@pytest.mark.skipif(shutil.which("gcc") is None, reason="not on this machine: gcc")
@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S, TEN_YEARS_S, -TEN_YEARS_S])
def test_a_time_limit_and_its_grace_are_monotonic(tmp_path: Path, jump_s: int) -> None:
    """Injector: the jumping clock, preloaded into the keeper; that it jumped is seen in what the keeper wrote down."""
    clock = JumpingClock(tmp_path)
    with Keeper(tmp_path / "run", env={**os.environ, **clock.env}) as keeper:
        begun = time.monotonic()
        assert keeper.sh("trap '' TERM; while :; do sleep 0.05; done", timeout_ms=1000, kill_grace_ms=1000)["ok"]
        clock.jump(jump_s)
        keeper.wait_gone(40)
        assert 1.9 < time.monotonic() - begun < 20
        facts = {fact["fact"]: fact for fact in keeper.facts()}
        assert (facts["ended"]["by"], facts["exited"]["signal"]) == ("timeout", "SIGKILL")
        assert abs((facts["stopping"]["at"] - facts["started"]["at"]) / 1000 - jump_s) < 60
