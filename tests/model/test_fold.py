"""The fold: total over any facts, with no way back; over real histories one end, honest sizes, honest durability."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import pytest
from hypothesis import Phase as Stage
from hypothesis import given, settings

from limpet.dialects.runs.types import describe
from limpet.model.facts import AnyFact, Ended, Lost, NotStarted, Requeued, SyncFailed
from limpet.model.merge import merge
from limpet.model.run import Phase, Run, fold
from limpet.model.status import STATUSES, status_of
from tests.model.histories import any_facts, histories

PHASES = list(Phase)
TERMINAL = {"completed", "failed", "killed", "timed_out"}
ENDS = (Ended, NotStarted, Lost)

Journals = tuple[list[AnyFact], list[AnyFact]]
thorough = settings(max_examples=100, deadline=None, database=None, phases=[Stage.generate, Stage.shrink])


def steps(facts: list[AnyFact]) -> Iterator[tuple[Run, AnyFact, Run]]:
    run = Run(run_id="r1")
    for fact in facts:
        after = fold(run, fact)
        yield run, fact, after
        run = after


def history(journals: Journals) -> list[AnyFact]:
    return list(merge(*journals))


@thorough
@given(any_facts)
def test_any_facts_fold_to_a_run_that_can_be_shown(facts: list[AnyFact]) -> None:
    """Total and pure: nothing is raised, nothing that was given is changed, every state has its word and its JSON."""
    for before, fact, after in steps(facts):
        kept = msgspec.json.encode(before)
        assert fold(before, fact) == after
        assert msgspec.json.encode(before) == kept
        assert status_of(after) in STATUSES
        msgspec.json.encode(describe(after))


@thorough
@given(any_facts)
def test_there_is_no_way_back(facts: list[AnyFact]) -> None:
    """But a further attempt, which nothing that is over gets."""
    for before, fact, after in steps(facts):
        if isinstance(fact, Requeued):
            assert after.attempt == before.attempt + (not before.is_over)
            assert before.is_over or after.phase is Phase.QUEUED
            continue
        assert PHASES.index(after.phase) >= PHASES.index(before.phase), fact


@pytest.mark.requirement("0.8", "1.3")
@thorough
@given(histories())
def test_a_run_ends_once_and_in_one_way(journals: Journals) -> None:
    """After its first end a run has one status; what may still change is what is left of it."""
    ends = 0
    for before, fact, after in steps(history(journals)):
        is_end = status_of(before) not in TERMINAL and status_of(after) in TERMINAL
        ends += is_end
        assert not is_end or isinstance(fact, ENDS)
        if status_of(before) in TERMINAL:
            assert status_of(after) == status_of(before), fact
            assert after.ended_by == before.ended_by, fact
            assert after.finished_at == before.finished_at, fact
        assert (status_of(after) in TERMINAL) == (after.ended_by is not None) == after.is_over
        assert after.exit_code is None or after.signal is None
    assert ends <= 1


@pytest.mark.requirement("0.8")
@thorough
@given(histories())
def test_only_a_run_that_runs_is_stopping(journals: Journals) -> None:
    for _, fact, after in steps(history(journals)):
        assert not (after.is_over and after.stopping), fact


@pytest.mark.requirement("0.5", "0.7")
@thorough
@given(histories())
def test_sizes_never_fall(journals: Journals) -> None:
    for before, fact, after in steps(history(journals)):
        for name, stream in before.streams.items():
            grown = after.streams[name]
            assert grown.bytes >= stream.bytes, fact
            assert grown.head_end >= stream.head_end, fact
            assert grown.kept_from >= stream.kept_from, fact
            assert grown.head_end <= grown.bytes, fact
            assert grown.kept_from <= grown.bytes, fact
        heads = sum(stream.head_end for stream in after.streams.values())
        assert after.output_bytes == sum(stream.bytes for stream in after.streams.values())
        if after.is_over and before.is_over:
            assert heads == sum(stream.head_end for stream in before.streams.values()), fact
        else:
            assert heads == min(after.output_bytes, after.max_output_bytes)


@pytest.mark.requirement("0.13", "F19")
@thorough
@given(histories())
def test_durable_is_never_more_than_is_known_to_be(journals: Journals) -> None:
    """Never above the size, never falling, and never past the start of a sync that failed."""
    failed: dict[str, int] = {}
    for before, fact, after in steps(history(journals)):
        if isinstance(fact, SyncFailed):
            failed[fact.stream] = min(fact.start, failed.get(fact.stream, fact.start))
        for name, stream in after.streams.items():
            assert stream.durable <= stream.bytes, fact
            assert stream.durable <= failed.get(name, stream.bytes), fact
            assert name not in before.streams or stream.durable >= before.streams[name].durable, fact


@pytest.mark.requirement("0.8")
@thorough
@given(histories())
def test_a_run_without_a_keeper_is_over_and_closed(journals: Journals) -> None:
    facts = history(journals)
    runs = [after for _, fact, after in steps(facts) if isinstance(fact, Lost)]
    for run in runs:
        assert run.is_over
        assert not run.output_open
    assert len(runs) == sum(isinstance(fact, Lost) for fact in facts)
