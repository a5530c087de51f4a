"""Two journals, one order: every fact once, both orders kept, and what an engine saw live is how it begins."""

from __future__ import annotations

import pytest
from hypothesis import Phase as Stage
from hypothesis import given, settings
from hypothesis import strategies as st

from limpet.model.facts import AnyFact, Asked, Killing, StopAsked
from limpet.model.merge import merge
from limpet.model.run import Run, fold
from tests.model.histories import histories

keepers = st.integers(0, 12).map(lambda count: [Killing(n=n, at=0) for n in range(1, count + 1)])
daemons = st.lists(st.integers(-1, 15), max_size=8).map(
    lambda places: [StopAsked(n=n, at=0, after=after, signal="SIGTERM") for n, after in enumerate(places, 1)]
)
thorough = settings(max_examples=100, deadline=None, database=None, phases=[Stage.generate, Stage.shrink])


def places(merged: list[AnyFact], among: list[AnyFact]) -> list[int]:
    known = [id(fact) for fact in merged]
    return [known.index(id(fact)) for fact in among]


def folded(facts: list[AnyFact], run: Run) -> Run:
    for fact in facts:
        run = fold(run, fact)
    return run


@thorough
@given(keepers, daemons)
def test_every_fact_once_and_both_orders_kept(keeper: list[AnyFact], daemon: list[AnyFact]) -> None:
    given_keeper, given_daemon = list(keeper), list(daemon)
    merged = list(merge(iter(keeper), iter(daemon)))
    assert (keeper, daemon) == (given_keeper, given_daemon)
    assert sorted(map(id, merged)) == sorted(map(id, [*keeper, *daemon]))
    assert places(merged, keeper) == sorted(places(merged, keeper))
    assert places(merged, daemon) == sorted(places(merged, daemon))


@thorough
@given(keepers, daemons)
def test_what_was_asked_stands_right_behind_what_was_seen(keeper: list[AnyFact], daemon: list[AnyFact]) -> None:
    """Behind the record that it names, or a later one that a record before it names; at the end if none came."""
    merged = list(merge(keeper, daemon))
    behind = 0
    for fact in daemon:
        assert isinstance(fact, Asked)
        behind = max(behind, fact.after)
        seen = sum(isinstance(each, Killing) for each in merged[: places(merged, [fact])[0]])
        assert seen == min(behind, len(keeper))


@pytest.mark.requirement("1.11", "F01")
@thorough
@given(histories(), st.integers(0, 40))
def test_a_restart_on_the_way_changes_nothing(journals: tuple[list[AnyFact], list[AnyFact]], records: int) -> None:
    """Folded live, to some record, and from there on after a restart: the run that the files alone tell."""
    keeper, daemon = journals
    records = min(records, len(keeper))
    early = [fact for fact in daemon if isinstance(fact, Asked) and fact.after <= records]
    merged = list(merge(keeper, daemon))
    live = list(merge(keeper[:records], early))
    assert merged[: len(live)] == live
    new = Run(run_id="r1")
    assert folded(merged[len(live) :], folded(live, new)) == folded(merged, new)
