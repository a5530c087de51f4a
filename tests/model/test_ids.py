"""Made ids sort as they were made, and are ids as callers may choose them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.model.errors import Refusal
from limpet.model.ids import PATTERN, IdMaker, check_id, make_id

# Until the year 3084.
TIMES = st.integers(0, (1 << 45) - 1)
SERIALS = st.integers(0, (1 << 20) - 1)


@pytest.mark.requirement("0.4")
@given(st.tuples(TIMES, SERIALS), st.tuples(TIMES, SERIALS))
def test_made_ids_sort_by_time_then_by_serial(one: tuple[int, int], other: tuple[int, int]) -> None:
    first, second = make_id(*one), make_id(*other)
    assert (first < second) == (one < other)
    assert (first == second) == (one == other)
    assert check_id("run_id", first) == first


@pytest.mark.requirement("0.4")
@given(TIMES, st.integers(0, 1 << 40))
def test_a_serial_that_has_run_over_is_still_one(at_ms: int, serial: int) -> None:
    assert make_id(at_ms, serial) == make_id(at_ms, serial % (1 << 20))


@pytest.mark.requirement("0.4", "F67")
@given(st.text(max_size=140) | st.from_regex(r"[A-Za-z0-9._-]{0,140}\n?", fullmatch=True))
def test_an_id_is_taken_exactly_if_it_has_the_form(text: str) -> None:
    fits = re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", text, re.ASCII) is not None
    assert (re.search(PATTERN, text) is not None) == fits
    if fits:
        assert check_id("key", text) == text
        return
    with pytest.raises(Refusal) as refusal:
        check_id("key", text)
    assert (refusal.value.code, refusal.value.fields["field"]) == ("invalid_argument", "key")


@pytest.mark.parametrize("off_ms", [-3_600_000, -1, 0, 1])
def test_the_next_engines_ids_sort_behind_the_last_known(off_ms: int) -> None:
    """Whatever its numbers begin with, and whatever was done to the clock meanwhile."""
    last = IdMaker(0xFFFF).make(1_700_000_000_000)
    assert IdMaker(0, last).make(1_700_000_000_000 + off_ms) > last
