"""Python programs add sinks: each is told of statuses, hits and output with one snippet, and slows nothing (1.9)."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from .fifos import Gate, Lifeline
from .hits import wait_params, watch
from .home import TAG, Answer, Home, until
from .inbox import Recorder, open_engine, taken
from .items import SNIPPET_MAX_CHARS, text_of
from .surface import Http

NewHome = Callable[..., Home]
OUTPUT_LINES = 100_000


class Engine:
    """An engine in this process, by the calls that these tests make."""

    def __init__(self, engine: Any) -> None:
        self._engine = engine

    async def ok(self, op: str, **params: Any) -> Answer:
        answer: Answer = await self._engine.call(op, **params)
        assert answer["ok"] is True, answer
        return answer

    async def ran(self, command: str, **params: Any) -> str:
        """A run that is over."""
        run_id = str((await self.ok("shell", action="spawn", command=command, **params))["run_id"])
        await self.ok("runs.wait", **wait_params([run_id], {"exit": True}))
        return run_id


@asynccontextmanager
async def engine(home: Home, *sinks: object) -> AsyncGenerator[Engine]:
    async with open_engine(home.path, sinks=list(sinks)) as opened:
        yield Engine(opened)


async def seen(holds: Callable[[], bool], what: str) -> None:
    await asyncio.to_thread(until, holds, what)


def run(monkeypatch: pytest.MonkeyPatch, home: Home, work: Callable[[Home], Coroutine[Any, Any, None]]) -> None:
    """What an engine in this process starts is swept up like all that the home starts."""
    monkeypatch.setenv(TAG, str(home.base))
    asyncio.run(work(home))


def watched(sink: Recorder, run_id: str) -> set[str]:
    """Told at least once: a sink may be told of a hit again, under the same id."""
    notes = sink.notes("watch", run_id)
    assert len({note["id"] for note in notes}) == len({note["event"] for note in notes}), notes
    return {note["event"] for note in notes}


@pytest.mark.requirement("1.9", "6.2", "1.4")
def test_a_sink_is_told_all_three(new_home: NewHome, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Recorder()

    async def work(home: Home) -> None:
        async with engine(home, sink) as opened:
            run_id = await opened.ran(
                "echo one; sleep 0.3; echo two; exit 3", watch=[watch("tw[a-z]", "hit")], session_id="s"
            )
            await seen(lambda: [note["status"] for note in sink.notes("status", run_id)][-1:] == ["failed"], "the end")
            await seen(lambda: watched(sink, run_id) == {"hit"}, "the hit")
            await seen(lambda: text_of_notes(sink, run_id) == "one\ntwo\n", "the output")
            hit = sink.notes("watch", run_id)[0]
            assert isinstance(hit["id"], str)
            assert "two" in str(hit)
            notes = [note for kind in ("status", "watch", "output") for note in sink.notes(kind, run_id)]
            assert all("one\ntwo\n".startswith(note["snippet"]) for note in notes), notes
            assert sink.notes("status", run_id)[-1]["snippet"] == "one\ntwo\n"

    home = new_home()
    run(monkeypatch, home, work)
    # The default sink is not replaced by it.
    home.start()
    (message,), _ = taken(Http(home), "s", 1)
    assert message["event"] == "hit"


def text_of_notes(sink: Recorder, run_id: str) -> str:
    return "".join(note["text"] for note in sink.notes("output", run_id) if note["stream"] == "stdout")


@pytest.mark.requirement("1.9", "1.4")
def test_the_snippet_is_bounded(new_home: NewHome, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = Recorder()

    async def work(home: Home) -> None:
        async with engine(home, sink) as opened:
            run_id = await opened.ran("seq 1 9999; echo NEEDLE", watch=[watch("NEEDLE\n", "hit")])
            await seen(lambda: watched(sink, run_id) == {"hit"}, "the hit")
            whole = "".join(f"{n}\n" for n in range(1, 10_000)) + "NEEDLE\n"
            hit = sink.notes("watch", run_id)[0]
            assert hit["snippet"] == whole[-SNIPPET_MAX_CHARS:]
            for kind in ("status", "output"):
                assert all(len(note["snippet"]) <= SNIPPET_MAX_CHARS for note in sink.notes(kind, run_id))

    run(monkeypatch, new_home(), work)


class BadSinkError(Exception):
    """What a sink of somebody else's fails with."""


@pytest.mark.requirement("1.9")
@pytest.mark.parametrize("kind", ["raises", "hangs"])
def test_a_bad_sink_slows_neither_a_run_nor_another_sink(
    new_home: NewHome, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The bad one is told first, of everything; it fails each time, or never comes back from the first."""
    called, release = threading.Event(), threading.Event()

    def bad(_: str) -> None:
        called.set()
        if kind == "raises":
            raise BadSinkError("this sink always fails")
        assert release.wait(50)

    good = Recorder()

    async def work(home: Home) -> None:
        async with engine(home, Recorder(bad, "bad"), good) as opened:
            try:
                async with asyncio.timeout(40):
                    for turn in range(3):
                        run_id = await opened.ran(f"seq 1 {OUTPUT_LINES}; echo NEEDLE", watch=[watch("NEEDLE", "hit")])
                        items = (await opened.ok("shell", action="log", run_id=run_id, limit=1000))["items"]
                        assert text_of(items).startswith("1\n2\n3\n"), turn
                        await seen(lambda run_id=run_id: watched(good, run_id) == {"hit"}, "the good sink's hit")
                    assert called.is_set()
            finally:
                release.set()

    run(monkeypatch, new_home(), work)


@pytest.mark.requirement("1.9", "1.8", "1.11")
def test_a_sink_is_told_of_what_came_while_there_was_none(
    new_home: NewHome, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """At least once, with an id: the engine is closed before the hit, another one is opened behind it."""
    first, second = Recorder(), Recorder()
    made: list[str] = []

    async def work(home: Home) -> None:
        with Gate(tmp_path) as gate, Lifeline(tmp_path) as lifeline:
            async with engine(home, first) as opened:
                params = {"command": lifeline.hold + gate.wait + "echo NEEDLE", "watch": [watch("NEEDLE", "hit")]}
                made.append((await opened.ok("shell", action="spawn", **params))["run_id"])
                await asyncio.to_thread(lifeline.word)
            gate.open()
            assert await asyncio.to_thread(lifeline.gone, 30)
        async with engine(home, second) as opened:
            await seen(lambda: watched(second, made[0]) == {"hit"}, "the hit")

    run(monkeypatch, new_home(), work)
    assert watched(first, made[0]) == set()
    assert isinstance(second.notes("watch", made[0])[0]["id"], str)
