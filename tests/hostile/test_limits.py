"""A fork bomb and an eater of memory, each held by a cgroup that the keeper makes for the command alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.cgroups import hierarchy, members, new_path, remove
from tests.hostile.marked import Marked
from tests.hostile.trees import Tree
from tests.hostile.watch import SOON_S, assert_none_left, assert_over, begin, plant
from tests.keeper.driver import Keeper, Nursery

PIDS = 64


def limit_path(controller: str) -> Iterator[Path]:
    mount = hierarchy(controller)
    if mount is None:
        pytest.skip(f"no cgroup v1 hierarchy for {controller} that may be written")
    path = new_path(mount)
    yield path
    if path.exists():
        remove(path)


@pytest.fixture
def pids() -> Iterator[Path]:
    yield from limit_path("pids")


@pytest.fixture
def memory() -> Iterator[Path]:
    yield from limit_path("memory")


@pytest.mark.requirement("1.6", "F37")
def test_a_fork_bomb_is_bounded_and_killed(
    place: Path, keeper: Keeper, marked: Marked, nursery: Nursery, pids: Path
) -> None:
    """Injector: a fork bomb in a pids cgroup of 64. EAGAIN inside; the keeper answers and forks; kill ends them all."""
    limit = {"path": str(pids), "settings": {"pids.max": str(PIDS)}}
    begin(keeper, marked, Tree("forkbomb", (str(pids),)), cgroups=[limit])
    keeper.wait_until(lambda _: b"EAGAIN" in keeper.spool(), SOON_S, "EAGAIN")
    # The children of its children come and go while it is full: full means that it was refused just now.
    assert "max 0" not in (pids / "pids.events").read_text()
    assert keeper.pid not in members(pids)
    assert keeper.call("hello", protocol=1, wake="every")["phase"] == "running"
    with nursery.keeper(place / "other") as other:
        assert other.sh("exit 4")["ok"]
        assert other.wait_fact("exited")["code"] == 4
        other.wait_gone()
    assert keeper.call("kill", grace_ms=60)["ok"]
    assert_over(keeper, marked, "kill")
    assert not pids.exists()


@pytest.mark.requirement("0.8", "F06")
def test_who_eats_too_much_dies_of_it(keeper: Keeper, marked: Marked, memory: Path) -> None:
    """Injector: a memory cgroup of 30 MB around a program that wants 200: it dies, the keeper lives and says why."""
    limit = {"path": str(memory), "settings": {"memory.limit_in_bytes": str(30 << 20)}}
    begin(keeper, marked, Tree("eater", ("200",)), cgroups=[limit])
    ended = assert_over(keeper, marked, "oom")
    exited = keeper.named("exited")[0]
    assert (exited["code"], exited["signal"], exited["oom"]) == (None, "SIGKILL", True)
    assert keeper.spool() == b"HERE eater %d\n" % keeper.named("started")[0]["pid"]
    assert marked.said("FULL") == []
    assert ended["survivors"] == []
    assert not memory.exists()


@pytest.mark.requirement("0.8", "F06")
def test_who_eats_little_does_not(keeper: Keeper, marked: Marked, memory: Path) -> None:
    """The same limit around a modest program, killed by a signal of its own: no talk of memory."""
    limit = {"path": str(memory), "settings": {"memory.limit_in_bytes": str(30 << 20)}}
    plant(keeper, marked, Tree("tidy", ("0",)), cgroups=[limit])
    assert keeper.pid not in members(memory)
    assert keeper.call("signal", signal="SIGKILL", to="main")["sent"] == 1
    ended = keeper.wait_fact("ended", SOON_S)
    assert_none_left(keeper, marked)
    exited = keeper.named("exited")[0]
    assert (exited["signal"], exited["oom"], ended["by"]) == ("SIGKILL", False, "self")
    keeper.wait_gone(SOON_S)
    assert not memory.exists()
