"""The queue against a plain model: order in a session, independence across, so many places, nobody forgotten."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from limpet.engine.queue import Queue

PLACES = 3


class Line(RuleBasedStateMachine):
    """Sessions as lists in the order of arrival; `started` as the queue said."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = Queue(PLACES)
        self.sessions: dict[str, list[str]] = {}
        self.started: list[str] = []
        self.count = 0

    def inside(self) -> list[str]:
        return [run for line in self.sessions.values() for run in line]

    @rule(session=st.sampled_from("abcd"))
    def enter(self, session: str) -> None:
        self.count += 1
        run = f"r{self.count}"
        may_start = self.queue.enter(run, session)
        self.sessions.setdefault(session, []).append(run)
        if may_start:
            self.started.append(run)

    @precondition(lambda self: self.inside())
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        run = data.draw(st.sampled_from(self.inside()))
        told = self.queue.leave(run)
        for line in self.sessions.values():
            if run in line:
                line.remove(run)
        self.started = [each for each in self.started if each != run]
        assert not set(told) & set(self.started)
        self.started += told

    @rule()
    def leave_unknown(self) -> None:
        assert self.queue.leave("nobody") == []

    @invariant()
    def only_the_first_of_each_session_runs(self) -> None:
        firsts = {line[0] for line in self.sessions.values() if line}
        assert set(self.started) <= firsts

    @invariant()
    def no_place_is_left_empty(self) -> None:
        firsts = [line[0] for line in self.sessions.values() if line]
        assert len(self.started) == min(PLACES, len(firsts))

    @invariant()
    def each_says_what_it_waits_for(self) -> None:
        for line in self.sessions.values():
            for before, run in zip([None, *line], line, strict=False):
                assert self.queue.is_waiting(run) == (run not in self.started)
                assert self.queue.waits_for(run) == before


TestLine = pytest.mark.requirement("1.10")(Line.TestCase)
TestLine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None, database=None)


@pytest.mark.requirement("1.10", "1.11")
def test_runs_that_go_on_hold_their_session_beyond_all_places() -> None:
    """After a restart more runs may go on than there are places: none is stopped, nobody else starts."""
    queue = Queue(1)
    queue.enter_started("r1", "a")
    queue.enter_started("r2", "b")
    assert not queue.enter("r3", "a")
    assert not queue.enter("r4", "c")
    assert queue.waits_for("r3") == "r1"
    assert queue.waits_for("r4") is None
    assert queue.leave("r1") == []
    assert queue.leave("r2") == ["r4"]
    assert queue.leave("r4") == ["r3"]
