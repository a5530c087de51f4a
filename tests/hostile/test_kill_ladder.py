"""Each hostile program, and fifty of them at once, killed in every way: nothing is left, each had its grace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.hostile.marked import Marked
from tests.hostile.trees import NOTES_TERM, TREES, Tree
from tests.hostile.watch import SOON_S, arrived, assert_mode, assert_over, begin, plant
from tests.keeper.driver import Connection, Keeper

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
    assert_over(keeper, marked, "kill", parent)
    stopping = keeper.named("stopping")
    assert [(fact["by"], fact["signal"]) for fact in stopping] == [("kill", request_fields.get("signal", "SIGTERM"))]


@pytest.mark.requirement("1.6", "F34", "F36", "F39")
@EVERY_TREE
def test_the_deadline_leaves_no_process(place: Path, hostile: Path, parent: Path | None, name: str) -> None:
    """Injector: the hostile programs. On a slow machine the deadline may beat them; then it is set later."""
    tree = TREES[name]
    for timeout_ms in (400, 2000, 10_000):
        with Marked(hostile) as marked, Keeper(place / f"run-{timeout_ms}", cgroup=parent) as keeper:
            begin(keeper, marked, tree, timeout_ms=timeout_ms, kill_grace_ms=GRACE_MS)
            keeper.wait_until(lambda _, m=marked, k=keeper: arrived(m, tree) or k.named("stopping"), SOON_S)
            in_place = arrived(marked, tree) and not keeper.named("stopping")
            assert_over(keeper, marked, "timeout", parent)
            started, stopping = keeper.named("started")[0], keeper.named("stopping")
            assert [(fact["by"], fact["grace_ms"]) for fact in stopping] == [("timeout", GRACE_MS)]
            assert stopping[0]["at"] - started["at"] >= timeout_ms - 50  # `started` is written a little after the start
        if in_place:
            return
    pytest.fail("the tree was never in place before its deadline")


@pytest.mark.requirement("1.6", "F39")
def test_term_reaches_all_and_cont_the_stopped(keeper: Keeper, marked: Marked, parent: Path | None) -> None:
    """Injector: the tree of fifty, of which each process that can notes what reaches it; default signal and grace."""
    tree = TREES["mix"]
    plant(keeper, marked, tree)
    noting = {(name, pid) for name, pid in marked.said("HERE") if name in NOTES_TERM}
    assert len(noting) >= 30, noting
    assert marked.said("TERM") == []
    assert marked.said("CONT") == []
    assert keeper.call("kill")["ok"]
    assert_over(keeper, marked, "kill", parent)
    assert noting - set(marked.said("TERM")) == set()
    assert {pid for _, pid in marked.said("CONT")} >= {pid for name, pid in noting if name == "stopped"}
    stopping, killing = keeper.named("stopping")[0], keeper.named("killing")[0]
    assert (stopping["by"], stopping["signal"], stopping["grace_ms"]) == ("kill", "SIGTERM", 2000)
    assert killing["at"] - stopping["at"] >= 2000 - 2


@pytest.mark.requirement("1.6")
def test_who_cleans_up_within_the_grace_is_not_killed(keeper: Keeper, marked: Marked, parent: Path | None) -> None:
    """The whole run ends upon TERM, each process in its own time: the ladder goes no further and waits no longer."""
    plant(keeper, marked, Tree("tree", ("tidy,300", "tidy,10")))
    assert keeper.call("kill", grace_ms=20_000)["ok"]
    ended = assert_over(keeper, marked, "kill", parent)
    assert marked.counts("TIDY") == {"tidy": 2}
    assert keeper.named("killing") == []
    assert ended["at"] - keeper.named("stopping")[0]["at"] < 15_000


@pytest.mark.requirement("1.6")
def test_the_grace_is_given_where_others_are_deaf(keeper: Keeper, marked: Marked, parent: Path | None) -> None:
    """Injector: a deaf process beside one that needs a part of the grace and one that would need more."""
    plant(keeper, marked, Tree("tree", ("deaf", "tidy,100", "tidy,50000")))
    assert keeper.call("kill", grace_ms=1500)["ok"]
    assert_over(keeper, marked, "kill", parent)
    assert marked.counts("TERM") == {"tree": 1, "tidy": 2}
    assert marked.counts("TIDY") == {"tidy": 1}
    assert keeper.named("killing")[0]["at"] - keeper.named("stopping")[0]["at"] >= 1500 - 2


@pytest.mark.requirement("1.6")
def test_the_exit_is_the_program_s_own(keeper: Keeper, marked: Marked, parent: Path | None) -> None:
    """A main process that ends by itself upon TERM has its own exit code; `by` says who asked for it."""
    plant(keeper, marked, Tree("tidy", ("10",)))
    assert keeper.call("kill", grace_ms=20_000, by="kill")["ok"]
    assert_over(keeper, marked, "kill", parent)
    exited = keeper.named("exited")[0]
    assert (exited["code"], exited["signal"], exited["oom"]) == (0, None, False)


@pytest.mark.requirement("1.6")
def test_kill_is_idempotent(keeper: Keeper, marked: Marked, parent: Path | None) -> None:
    """Injector: three kills at once over two connections, while the tree of fifty holds on: one ladder."""
    plant(keeper, marked, TREES["mix"])
    other = Connection(keeper.directory)
    posted = [(connection, connection.post("kill", grace_ms=400)) for connection in (keeper.connection, other, other)]
    replies = [connection.reply(to) for connection, to in posted]
    assert [reply["ok"] for reply in replies] == [True, True, True], replies
    assert_over(keeper, marked, "kill", parent)
    assert len(keeper.named("stopping")) == 1
    assert len(keeper.named("killing")) == 1
    other.close()


@pytest.mark.requirement("1.6", "F36")
def test_a_pty_run_is_killed_alike(keeper: Keeper, marked: Marked, parent: Path | None) -> None:
    """Injector: the tree of fifty on a terminal, whose hang-up upon the main process's end not all of them survive."""
    plant(keeper, marked, TREES["mix"], pty={"rows": 24, "cols": 80})
    assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
    assert_over(keeper, marked, "kill", parent)


@pytest.mark.requirement("1.6")
def test_a_process_that_leaves_the_cgroup_is_killed(place: Path, hostile: Path, parent: Path | None) -> None:
    """Injector: a program that moves itself into the parent's cgroup; where none is given it has nowhere to go."""
    with Marked(hostile) as marked, Keeper(place / "run", cgroup=parent) as keeper:
        refuge = [] if parent is None else [str(parent / "cgroup.procs")]
        tree = Tree("escaper", tuple(refuge)) if refuge else Tree("deaf", ())
        started = begin(keeper, marked, tree)
        keeper.wait_until(lambda _: marked.counts("HERE")[tree.program] == len(refuge) + 1, SOON_S)
        if parent is not None:
            own = (parent / "cgroup.procs").read_text().split()
            assert own == [str(started["pid"])]
        assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
        assert_over(keeper, marked, "kill", parent)
