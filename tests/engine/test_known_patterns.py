"""A pattern that is known is answered at once: nobody who waits for it waits for another's to be compiled."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest

import limpet
from limpet.engine.matching import compile_pattern, known_pattern
from limpet.model.errors import Refusal


@pytest.mark.requirement("3.5")
def test_what_was_compiled_or_refused_is_known() -> None:
    assert known_pattern("seen for the first time") is None
    made = compile_pattern("seen for the first time")
    assert known_pattern("seen for the first time") is made
    assert known_pattern("seen for the first time", "line") is None
    with pytest.raises(Refusal):
        compile_pattern("matches nothing at all|")
    with pytest.raises(Refusal, match=r"for\[3\]\.regex cannot be used"):
        known_pattern("matches nothing at all|", field="for[3].regex")


@pytest.mark.requirement("1.8")
def test_a_wait_for_a_known_pattern_while_another_is_compiled(tmp_path: Path) -> None:
    """The thread that compiles is held, as by a pattern that takes long; one that is not known waits for it."""
    held, let_go = threading.Event(), threading.Event()

    def hold() -> None:
        held.set()
        let_go.wait()

    async def scenario() -> None:
        async with limpet.open(tmp_path / "home") as engine:
            run_id = (await engine.call_checked("shell", command="echo it is known"))["run_id"]

            async def wait(regex: str) -> str:
                asked = {"run_ids": [run_id], "for": [{"regex": regex}]}
                return (await engine.call_checked("runs.wait", **asked))["hit"]["match"]

            assert await wait("it is kn[o]wn") == "it is known"
            engine.engine.thread.submit(hold)
            try:
                assert await asyncio.to_thread(held.wait, 20)
                assert await wait("it is kn[o]wn") == "it is known"
                waiting = asyncio.ensure_future(wait("not kn[o]wn yet|known"))
                await asyncio.sleep(0)
                assert not waiting.done()
            finally:
                let_go.set()
            assert await waiting == "known"

    asyncio.run(asyncio.wait_for(scenario(), 60))
