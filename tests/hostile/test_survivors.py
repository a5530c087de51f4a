"""Runs whose main process ends before its descendants: the end is told apart from them, and `kill` ends them."""

from __future__ import annotations

import pytest

from tests.hostile.marked import Marked
from tests.hostile.trees import Tree
from tests.hostile.watch import SOON_S, assert_gone, assert_none_left, begin
from tests.keeper.driver import Keeper

GRACE_MS = 60


def kill_survivors(keeper: Keeper, marked: Marked) -> None:
    """Kills twice (the second changes nothing); then none is left, by `survivors_gone`."""
    assert keeper.call("hello", protocol=1, wake="every")["phase"] == "lingering"
    assert marked.alive()
    first, second = (keeper.connection.post("kill", grace_ms=GRACE_MS) for _ in range(2))
    assert keeper.connection.reply(first)["ok"]
    assert keeper.connection.reply(second)["ok"]
    keeper.wait_fact("survivors_gone", SOON_S)
    assert_none_left(keeper, marked)
    assert_gone(keeper)
    names = [fact["fact"] for fact in keeper.facts()]
    assert [names.count(name) for name in ("stopping", "killing", "ended", "survivors_gone")] == [1, 1, 1, 1]
    assert names.index("ended") < names.index("stopping") < names.index("killing") < names.index("survivors_gone")


@pytest.mark.requirement("0.8", "1.6", "F34", "F35")
@pytest.mark.parametrize("streams", ["keep", "close"])
def test_a_daemon_outlives_its_run_until_kill(keeper: Keeper, marked: Marked, streams: str) -> None:
    """Injector: a daemon that notes TERM and goes on; with `keep` the end of its run's stdout never comes."""
    begin(keeper, marked, Tree("daemon", (streams,)))
    ended = keeper.wait_fact("ended", SOON_S)
    exited = keeper.named("exited")[0]
    [(_, pid)] = marked.said("HERE")
    assert (exited["code"], exited["signal"]) == (0, None)
    assert (ended["by"], ended["survivors"], ended["cannot_signal"]) == ("self", [pid], [])
    assert [ended["streams"][name]["open"] for name in ("stdout", "stderr")] == [streams == "keep"] * 2
    assert ended["at"] - exited["at"] < 10_000  # 250 ms of quiet, at most 1 s, on a machine that has the time
    assert marked.said("TERM") == []
    kill_survivors(keeper, marked)
    assert marked.said("TERM") == [("daemon", pid)]


@pytest.mark.requirement("0.8", "F35")
def test_a_chatty_survivor_does_not_put_off_the_end(keeper: Keeper, marked: Marked) -> None:
    """Injector: a descendant that writes without a pause: `ended` comes 1 s after the exit, and its words go on."""
    chatty = "timeout 60 sh -c 'while :; do echo word; sleep 0.01; done' & exit 5"  # `timeout` is its fuse
    assert keeper.sh(chatty, env=marked.env)["ok"]
    ended, exited = keeper.wait_fact("ended", SOON_S), keeper.named("exited")[0]
    assert exited["code"] == 5
    assert ended["by"] == "self"
    assert ended["streams"]["stdout"]["open"]
    assert len(ended["survivors"]) >= 2
    assert 1000 - 50 <= ended["at"] - exited["at"] < 10_000
    at_the_end = ended["streams"]["stdout"]["end"]
    keeper.wait_until(lambda _: len(keeper.spool()) > at_the_end + 20, SOON_S, "more output")
    assert keeper.call("kill", grace_ms=GRACE_MS)["ok"]
    keeper.wait_fact("survivors_gone", SOON_S)
    assert_none_left(keeper, marked)
    assert_gone(keeper)


@pytest.mark.requirement("1.6", "F34", "F36")
@pytest.mark.parametrize("tree", [Tree("chain", ("group",)), Tree("chain", ("session",))], ids=["group", "session"])
def test_a_chain_is_ended_after_its_run(keeper: Keeper, marked: Marked, tree: Tree) -> None:
    """Injector: a chain whose first link is the main process: whoever is named in `survivors` is gone at once."""
    begin(keeper, marked, tree)
    ended = keeper.wait_fact("ended", SOON_S)
    assert ended["by"] == "self"
    assert ended["streams"]["stdout"]["open"]
    kill_survivors(keeper, marked)


@pytest.mark.requirement("1.6", "F36")
def test_a_hydra_is_ended_after_its_run(keeper: Keeper, marked: Marked) -> None:
    """Injector: a hydra in the background of a shell that exits."""
    argv = marked.argv("hydra", "8")
    assert keeper.start("/bin/sh", "-c", '"$@" & exit 3', "sh", *argv, env=marked.env)["ok"]
    keeper.wait_until(lambda _: marked.counts("HERE")["hydra"] == 8, SOON_S)
    ended = keeper.wait_fact("ended", SOON_S)
    assert keeper.named("exited")[0]["code"] == 3
    assert set(ended["survivors"]) >= {pid for _, pid in marked.said("HERE")}
    kill_survivors(keeper, marked)
