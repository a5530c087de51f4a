"""Nobody outside of the run feels its kill: not look-alikes, not neighbours, not who got a dead one's pid."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.marked import Marked
from tests.hostile.test_programs import launch, wait_arrived
from tests.hostile.trees import Tree
from tests.hostile.watch import assert_over, plant
from tests.keeper.driver import Keeper, Nursery

GRACE_MS = 60
ROOT = Path(__file__).parent.parent.parent
LOOK_ALIKES = Tree(
    "tree", ("daemon,keep", "hydra,8", "deaf", "stopped", "session_changer", "nameless,env", "sibling", "tidy,0")
)


def unharmed(marked: Marked, tree: Tree) -> bool:
    """Whether all that arrived of a tree are there still, and no signal came to any of them."""
    there = {left.pid for left in marked.left()}
    return (
        {pid for _, pid in marked.said("HERE")} <= there
        and marked.counts("HERE") == tree.expected
        and marked.said("TERM") == marked.said("CONT") == marked.said("TIDY") == []
    )


@pytest.mark.requirement("1.6", "F34")
@pytest.mark.parametrize("request_fields", [{"grace_ms": GRACE_MS}, {"signal": "SIGKILL"}], ids=["term", "sigkill"])
def test_look_alikes_outside_of_the_run_live_on(
    keeper: Keeper, marked: Marked, hostile: Path, request_fields: dict[str, object]
) -> None:
    """Injector: the same programs as the run's, with daemons and sessions of their own, started beside it."""
    with Marked(hostile) as others, launch(others, LOOK_ALIKES) as process:
        wait_arrived(others, LOOK_ALIKES, process)
        plant(keeper, marked, LOOK_ALIKES)
        assert unharmed(others, LOOK_ALIKES)
        assert keeper.call("kill", **request_fields)["ok"]
        assert_over(keeper, marked, "kill")
        assert unharmed(others, LOOK_ALIKES)


@pytest.mark.requirement("1.6", "F34")
def test_another_run_below_the_same_parent_lives_on(place: Path, hostile: Path, nursery: Nursery) -> None:
    """Injector: two keepers of one nursery below one parent cgroup, and the same programs in both."""
    with (
        Marked(hostile) as mine,
        Marked(hostile) as others,
        nursery.keeper(place / "mine") as keeper,
        nursery.keeper(place / "other") as other,
    ):
        plant(keeper, mine, LOOK_ALIKES)
        plant(other, others, LOOK_ALIKES)
        assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
        assert_over(keeper, mine, "kill")
        assert unharmed(others, LOOK_ALIKES)
        assert other.call("kill", grace_ms=GRACE_MS)["ok"]
        assert_over(other, others, "kill")


@pytest.mark.requirement("1.6", "F38")
@pytest.mark.parametrize("scenario", ["after_the_exit", "during_the_kill"])
def test_who_took_the_pid_lives_on(hostile: Path, scenario: str, parent: Path | None) -> None:
    """Injector: a pid namespace whose next pid is written to ns_last_pid; `reuse.py` plays the scenario inside it."""
    if os.geteuid() != 0:
        pytest.skip("a pid namespace and its ns_last_pid need root")
    with Marked(hostile) as marked:
        inside = [sys.executable, "-m", "tests.hostile.reuse", scenario, str(hostile), str(parent or "")]
        done = subprocess.run(
            ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *inside],
            cwd=ROOT,
            env={**os.environ, **marked.env, "PATH": os.environ["PATH"]},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=100,
        )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["taken"], told
    assert told["survivors_dead"], told
    assert told["stranger_alive"], told
    assert told["signals"] in ([], [0, 0]), told
