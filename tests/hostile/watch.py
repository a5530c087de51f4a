"""What the tests of the ladder wait for and look at: a tree in place, the end, and that nothing of it is left."""

from __future__ import annotations

from pathlib import Path

from tests.hostile.cgroups import members
from tests.hostile.marked import Marked
from tests.hostile.trees import Tree
from tests.keeper.driver import Fact, Frame, Keeper

# For what takes milliseconds on an idle machine.
SOON_S = 30.0


def begin(keeper: Keeper, marked: Marked, tree: Tree, **fields: object) -> Frame:
    """Starts the tree."""
    started = keeper.start(*marked.argv(tree.program, *tree.options), env=marked.env, **fields)
    assert started["ok"], started
    return started


def arrived(marked: Marked, tree: Tree) -> bool:
    return marked.counts("HERE") >= tree.expected


def plant(keeper: Keeper, marked: Marked, tree: Tree, **fields: object) -> Frame:
    """Starts the tree, and waits until all of it is in place: each process says so on the run's stdout."""
    started = begin(keeper, marked, tree, **fields)
    keeper.wait_until(lambda _: arrived(marked, tree), SOON_S, f"{tree.expected}")
    assert not keeper.named("exited"), keeper.facts()
    return started


def children(pid: int) -> list[int]:
    """The children of a process, zombies included; none when it is gone."""
    found: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    except OSError:
        return []
    return found


def assert_none_left(keeper: Keeper, marked: Marked) -> None:
    """No process of the run is left in any state: none holds the lifeline, none has the marker, none is a zombie."""
    assert not marked.alive(), marked.left()
    assert marked.left() == []
    assert children(keeper.pid) == []


def assert_over(keeper: Keeper, marked: Marked, by: str) -> Fact:
    """Waits for `ended`: at that moment nothing is left. Then the keeper seals and goes, and its cgroup with it."""
    ended: Fact = keeper.wait_fact("ended", SOON_S)
    assert_none_left(keeper, marked)
    assert ended["by"] == by, keeper.facts()
    assert ended["survivors"] == []
    assert ended["cannot_signal"] == []
    assert_gone(keeper)
    return ended


def assert_gone(keeper: Keeper) -> None:
    """The keeper seals its journal, exits, and leaves no cgroup behind."""
    keeper.wait_gone(SOON_S)
    assert keeper.facts()[-1]["fact"] == "sealed"
    cgroup = keeper.named("prepared")[0]["cgroup"]
    assert cgroup is None or not Path(cgroup).exists()


def assert_mode(keeper: Keeper, started: Frame, parent: Path | None) -> None:
    """The keeper kills the way that the test means: the run is in a cgroup of its own below `parent`, or in none."""
    cgroup = keeper.named("prepared")[0]["cgroup"]
    if parent is None:
        assert cgroup is None
        return
    assert Path(cgroup).parent == parent
    assert started["pid"] in members(Path(cgroup))
    assert keeper.pid not in members(parent)
