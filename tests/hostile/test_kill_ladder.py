"""Each hostile program, and fifty of them at once, killed in every way: nothing is left, each had its grace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hostile.cgroups import group
from tests.hostile.conftest import cgroup2
from tests.hostile.marked import Marked
from tests.hostile.trees import NOTES_TERM, TREES, Tree
from tests.hostile.watch import SOON_S, arrived, assert_mode, assert_over, begin, plant
from tests.keeper.driver import Connection, Keeper, Nursery

GRACE_MS = 60
EVERY_TREE = pytest.mark.parametrize("name", list(TREES))


@pytest.mark.requirement("1.6", "F34", "F36", "F39")
@pytest.mark.parametrize("request_fields", [{"grace_ms": GRACE_MS}, {"signal": "SIGKILL"}], ids=["term", "sigkill"])
@EVERY_TREE
def test_kill_leaves_no_process(
    keeper: Keeper, marked: Marked, parent: Path | None, name: str, request_fields: dict[str, Any]
) -> None:
    """Injector: the hostile programs, of which every process has said that it is in place."""
    started = plant(keeper, marked, TREES[name])
    assert_mode(keeper, started, parent)
    assert marked.alive()
    assert keeper.call("kill", **request_fields)["ok"]
    assert_over(keeper, marked, "kill")
    stopping = keeper.named("stopping")
    assert [(fact["by"], fact["signal"]) for fact in stopping] == [("kill", request_fields.get("signal", "SIGTERM"))]


@pytest.mark.requirement("1.6", "F34", "F36", "F39")
@EVERY_TREE
def test_the_deadline_leaves_no_process(place: Path, hostile: Path, nursery: Nursery, name: str) -> None:
    """Injector: the hostile programs. On a slow machine the deadline may beat them; then it is set later."""
    tree = TREES[name]
    for timeout_ms in (400, 2000, 10_000):
        with Marked(hostile) as marked, nursery.keeper(place / f"run-{timeout_ms}") as keeper:
            begin(keeper, marked, tree, timeout_ms=timeout_ms, kill_grace_ms=GRACE_MS)
            keeper.wait_until(lambda _, m=marked, k=keeper: arrived(m, tree) or k.named("stopping"), SOON_S)
            in_place = arrived(marked, tree) and not keeper.named("stopping")
            assert_over(keeper, marked, "timeout")
            started, stopping = keeper.named("started")[0], keeper.named("stopping")
            assert [(fact["by"], fact["grace_ms"]) for fact in stopping] == [("timeout", GRACE_MS)]
            assert stopping[0]["at"] - started["at"] >= timeout_ms - 50  # `started` is written a little after the start
        if in_place:
            return
    pytest.fail("the tree was never in place before its deadline")


@pytest.mark.requirement("1.6", "F39")
def test_term_reaches_all_and_cont_the_stopped(keeper: Keeper, marked: Marked) -> None:
    """Injector: the tree of fifty, of which each process that can notes what reaches it; default signal and grace."""
    tree = TREES["mix"]
    plant(keeper, marked, tree)
    noting = {(name, pid) for name, pid in marked.said("HERE") if name in NOTES_TERM}
    assert len(noting) >= 30, noting
    assert marked.said("TERM") == []
    assert marked.said("CONT") == []
    assert keeper.call("kill")["ok"]
    assert_over(keeper, marked, "kill")
    assert noting - set(marked.said("TERM")) == set()
    assert {pid for _, pid in marked.said("CONT")} >= {pid for name, pid in noting if name == "stopped"}
    stopping, killing = keeper.named("stopping")[0], keeper.named("killing")[0]
    assert (stopping["by"], stopping["signal"], stopping["grace_ms"]) == ("kill", "SIGTERM", 2000)
    assert killing["at"] - stopping["at"] >= 2000 - 2


@pytest.mark.requirement("1.6")
def test_who_cleans_up_within_the_grace_is_not_killed(keeper: Keeper, marked: Marked) -> None:
    """The whole run ends upon TERM, each process in its own time: the ladder goes no further and waits no longer."""
    plant(keeper, marked, Tree("tree", ("tidy,300", "tidy,10")))
    assert keeper.call("kill", grace_ms=20_000)["ok"]
    ended = assert_over(keeper, marked, "kill")
    assert marked.counts("TIDY") == {"tidy": 2}
    assert keeper.named("killing") == []
    assert ended["at"] - keeper.named("stopping")[0]["at"] < 15_000


@pytest.mark.requirement("1.6")
def test_the_grace_is_given_where_others_are_deaf(keeper: Keeper, marked: Marked) -> None:
    """Injector: a deaf process beside one that needs a part of the grace and one that would need more."""
    plant(keeper, marked, Tree("tree", ("deaf", "tidy,100", "tidy,50000")))
    assert keeper.call("kill", grace_ms=1500)["ok"]
    assert_over(keeper, marked, "kill")
    assert marked.counts("TERM") == {"tree": 1, "tidy": 2}
    assert marked.counts("TIDY") == {"tidy": 1}
    assert keeper.named("killing")[0]["at"] - keeper.named("stopping")[0]["at"] >= 1500 - 2


@pytest.mark.requirement("1.6")
def test_the_exit_is_the_program_s_own(keeper: Keeper, marked: Marked) -> None:
    """A main process that ends by itself upon TERM has its own exit code; `by` says who asked for it."""
    plant(keeper, marked, Tree("tidy", ("10",)))
    assert keeper.call("kill", grace_ms=20_000, by="kill")["ok"]
    assert_over(keeper, marked, "kill")
    exited = keeper.named("exited")[0]
    assert (exited["code"], exited["signal"], exited["oom"]) == (0, None, False)


@pytest.mark.requirement("1.6")
def test_kill_is_idempotent(keeper: Keeper, marked: Marked) -> None:
    """Injector: three kills at once over two connections, while the tree of fifty holds on: one ladder."""
    plant(keeper, marked, TREES["mix"])
    other = Connection(keeper.directory)
    posted = [(connection, connection.post("kill", grace_ms=400)) for connection in (keeper.connection, other, other)]
    replies = [connection.reply(to) for connection, to in posted]
    assert [reply["ok"] for reply in replies] == [True, True, True], replies
    assert_over(keeper, marked, "kill")
    assert len(keeper.named("stopping")) == 1
    assert len(keeper.named("killing")) == 1
    other.close()


@pytest.mark.requirement("1.6", "F36")
def test_a_pty_run_is_killed_alike(keeper: Keeper, marked: Marked) -> None:
    """Injector: the tree of fifty on a terminal, whose hang-up upon the main process's end not all of them survive."""
    plant(keeper, marked, TREES["mix"], pty={"rows": 24, "cols": 80})
    assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
    assert_over(keeper, marked, "kill")


@pytest.mark.requirement("1.6")
def test_a_process_that_leaves_the_cgroup_is_killed(place: Path, hostile: Path) -> None:
    """Injector: a program that moves itself into the parent's cgroup, and so out of the one that is killed through."""
    with (
        group(cgroup2()) as parent,
        Marked(hostile) as marked,
        Keeper(place / "run", cgroup=parent) as keeper,
    ):
        started = plant(keeper, marked, Tree("escaper", (str(parent / "cgroup.procs"),)))
        assert (parent / "cgroup.procs").read_text().split() == [str(started["pid"])]
        assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
        assert_over(keeper, marked, "kill")


@pytest.mark.requirement("1.6")
def test_term_reaches_the_orphans_of_a_main_process_that_goes_at_once(
    place: Path, hostile: Path, nursery: Nursery
) -> None:
    """Injector: a main process that exits upon TERM, amid the sending of it: its ten children get another parent."""
    tree = Tree("tree", ("tidy,5",) * 10)
    for number in range(10):
        with Marked(hostile) as marked, nursery.keeper(place / f"run-{number}") as keeper:
            plant(keeper, marked, tree)
            assert keeper.call("kill", grace_ms=1000)["ok"]
            assert_over(keeper, marked, "kill")
            assert marked.counts("TERM") == tree.expected
            assert marked.counts("TIDY") == {"tidy": 10}
