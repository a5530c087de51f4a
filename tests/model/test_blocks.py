"""The fold of a conversation's facts: each block begins and ends once, whatever comes in whatever order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet.model.blocks import Block, Standing, fold_block
from limpet.model.facts import (
    AnyFact,
    BlockBegun,
    Delivered,
    Ended,
    Lost,
    Prompt,
    ResetAsked,
    ShellBegan,
    ShellGone,
    Signalled,
    Stdin,
    StreamEnd,
)

NAMES = st.sampled_from(["b1", "b2", "b3"])
OFFSETS = st.integers(0, 99)


def begun(name: str, *, interactive: bool = False) -> BlockBegun:
    return BlockBegun(n=1, at=1, after=0, block=name, cmd="x", interactive=interactive)


def delivered(name: str, offset: int = 5) -> Delivered:
    return Delivered(n=1, at=1, block=name, offset=offset)


def prompt(name: str | None, code: int = 0, output_end: int = 9) -> Prompt:
    return Prompt(
        n=1,
        at=2,
        output_end=output_end,
        start=output_end,
        end=output_end + 50,
        exit=code,
        cwd_b64="Lw==",
        ts=2,
        first=name is None,
        block=name,
    )


def gone(name: str | None, code: int | None = 3) -> ShellGone:
    return ShellGone(n=1, at=2, pid=7, code=code, signal=None if code is not None else "SIGKILL", offset=9, block=name)


def interrupted() -> Signalled:
    return Signalled(n=1, at=1, signal="SIGINT", to="foreground", sent=1)


FACTS: st.SearchStrategy[AnyFact] = st.one_of(
    st.builds(begun, NAMES, interactive=st.booleans()),
    st.builds(delivered, NAMES, OFFSETS),
    st.builds(prompt, NAMES | st.none(), st.integers(0, 255), OFFSETS),
    st.builds(gone, NAMES | st.none(), st.integers(0, 255) | st.none()),
    st.just(interrupted()),
    st.just(Stdin(n=1, at=1, start=0, end=1, data="Aw==")),
    st.just(ShellBegan(n=1, at=1, pid=7, offset=0)),
    st.just(ResetAsked(n=1, at=1, after=0)),
    st.just(Lost(n=1, at=1, after=0, streams={"pty": 50}, survivors=[], message="")),
    st.just(Ended(n=1, at=1, by="kill", streams={"pty": StreamEnd(60, False)}, survivors=[], cannot_signal=[])),
)


def folded(facts: list[AnyFact]) -> tuple[Standing, list[Block]]:
    standing, ended = Standing(), list[Block]()
    for fact in facts:
        standing, block = fold_block(standing, fact)
        if block is not None:
            ended.append(block)
    return standing, ended


@pytest.mark.requirement("3.2")
@given(st.lists(FACTS, max_size=40))
def test_each_block_ends_once_and_in_the_order_of_its_beginning(facts: list[AnyFact]) -> None:
    standing, ended = folded(facts)
    active = [] if standing.active is None else [standing.active]
    assert [block.seq for block in [*ended, *active]] == list(range(1, standing.blocks + 1))
    for block in ended:
        assert block.status in ("completed", "failed", "cancelled")
        assert block.ts_end is not None
        assert (block.status == "completed") == (block.exit_code == 0 and block.ended_by == "prompt")
        assert (block.start is None) or (block.end is not None and block.end >= block.start)
    assert (standing.mode == "idle") == (standing.active is None)
    assert not standing.is_over or standing.active is None


@pytest.mark.parametrize(
    ("facts", "status", "code", "by"),
    [
        ([prompt("b1")], "completed", 0, "prompt"),
        ([prompt("b1", 7)], "failed", 7, "prompt"),
        ([interrupted(), prompt("b1", 130)], "cancelled", 130, "prompt"),
        ([prompt("b1", 130)], "failed", 130, "prompt"),
        ([gone("b1")], "failed", 3, "shell_gone"),
        ([gone("b1", None)], "failed", None, "shell_gone"),
        ([ResetAsked(n=1, at=1, after=0), gone("b1", None)], "failed", None, "reset"),
    ],
)
def test_how_a_block_ends(facts: list[AnyFact], status: str, code: int | None, by: str) -> None:
    standing, ended = folded([begun("b1"), delivered("b1"), *facts])
    assert [(block.status, block.exit_code, block.ended_by) for block in ended] == [(status, code, by)]
    assert (ended[0].start, ended[0].end) == (5, 9)
    assert standing.mode == "idle"


@pytest.mark.parametrize("stray", [prompt(None), prompt("b0"), gone(None), delivered("b0")])
def test_what_is_about_another_block_ends_nothing(stray: AnyFact) -> None:
    standing, ended = folded([begun("b1", interactive=True), delivered("b1"), stray])
    assert (standing.mode, ended) == ("interactive", [])


def test_a_second_block_does_not_begin_beside_the_first() -> None:
    standing, _ = folded([begun("b1"), begun("b2")])
    assert standing.active is not None
    assert standing.active.block_id == "b1"
