"""The database deleted under a thousand runs of every sort: all read operations answer as before (F30, 1.12)."""

from __future__ import annotations

import contextlib
import time

from prove.sorts import CONFIG, answers, make_sorts
from tests.contract.home import Home
from tests.contract.remains import drop_database


def prove(runs: int) -> str:
    """Makes so many runs, and deletes the database twice; an AssertionError says what was answered otherwise."""
    with contextlib.closing(Home(CONFIG)) as home:
        home.start()
        sorts = make_sorts(home, runs)
        before = answers(sorts)
        took_s: list[float] = []
        for end in (home.kill_daemon, lambda: home.limpet("stop")):
            end()
            drop_database(home)
            began = time.monotonic()
            home.start()
            took_s.append(time.monotonic() - began)
            after = answers(sorts)
            other = [(old, new) for old, new in zip(before, after, strict=True) if old != new]
            assert not other, f"{len(other)} answers differ: {other[0][0][:1500]}, and now {other[0][1][:1500]}"
        found = sorts.http.ok("runs.verify")["findings"]
        assert not found, found[:3]
    return (
        f"the database deleted under {len(sorts.made)} runs and {len(sorts.pruned)} pruned ones, after SIGKILL and "
        f"after a stop: {len(before)} answers the same each time; filled again and ready in {max(took_s):.1f} s"
    )
