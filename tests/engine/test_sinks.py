"""Sinks: they are told at least once, each at its own pace, and whatever they do holds up nobody else."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.daemon import InProcess
from limpet.model.errors import Refusal

WATCH = [{"regex": "hit [0-9]+$", "event": "found", "match_type": "line"}]


class Listener:
    """Keeps what it hears."""

    def __init__(self, name: str = "listener", raises: int = 0) -> None:
        self.name = name
        self.raises = raises
        self.heard: list[Any] = []
        self.threads: set[int] = set()
        self._turn = threading.Condition()

    def on_status(self, event: limpet.StatusEvent) -> None:
        self._take(event)

    def on_watch(self, event: limpet.WatchEvent) -> None:
        if self.raises:
            self.raises -= 1
            raise SystemExit("not now")
        self._take(event)

    def on_output(self, event: limpet.OutputEvent) -> None:
        self._take(event)

    def _take(self, event: Any) -> None:
        with self._turn:
            self.heard.append(event)
            self.threads.add(threading.get_ident())
            self._turn.notify_all()

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.heard if isinstance(event, kind)]

    def lines(self) -> list[str]:
        """The lines of the hits."""
        return [event.data["line"] for event in self.of(limpet.WatchEvent)]

    def wait(self, holds: Callable[[], bool]) -> None:
        with self._turn:
            assert self._turn.wait_for(holds, 30), self.heard


class Hanging(Listener):
    """Never comes back from what it was told first."""

    def __init__(self) -> None:
        super().__init__("hanging")
        self.let_go = threading.Event()

    def _take(self, event: Any) -> None:
        super()._take(event)
        self.let_go.wait()


async def watched(engine: InProcess, command: str, **fields: Any) -> dict[str, Any]:
    """A run of that command, which is over."""
    return await engine.call_checked("shell", action="spawn", background=False, command=command, watch=WATCH, **fields)


@pytest.mark.requirement("1.9")
def test_each_event_with_the_snippet(tmp_path: Path) -> None:
    listener = Listener()

    async def work() -> dict[str, Any]:
        async with limpet.open(tmp_path / "h", sinks=[listener]) as engine:
            run = await watched(engine, "echo a hit 5; exit 3", session_id="s")
            await asyncio.to_thread(listener.wait, lambda: len(listener.heard) >= 5)
            return run

    run = asyncio.run(work())
    assert [event.status for event in listener.of(limpet.StatusEvent)] == ["queued", "running", "failed"]
    assert listener.of(limpet.StatusEvent)[-1].exit_code == 3
    (output,) = listener.of(limpet.OutputEvent)
    assert (output.stream, output.start, output.end, output.text) == ("stdout", 0, 8, "a hit 5\n")
    (hit,) = listener.of(limpet.WatchEvent)
    assert (hit.event, hit.session_id, hit.run_id) == ("found", "s", run["run_id"])
    assert hit.data == {"match": "hit 5", "span": {"start": 2, "end": 7}, "stream": "stdout", "line": "a hit 5"}
    assert hit.id == f"{run['run_id']}.{hit.seq}"
    for event in (hit, output, listener.of(limpet.StatusEvent)[-1]):
        assert event.snippet == "a hit 5\n"
    assert listener.threads == {*listener.threads} - {threading.get_ident()}
    assert len(listener.threads) == 1


@pytest.mark.requirement("1.9")
def test_async_sinks_are_awaited(tmp_path: Path) -> None:
    class Awaiting(Listener):
        async def on_watch(self, event: limpet.WatchEvent) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
            await asyncio.sleep(0)
            self._take(event)

    listener = Awaiting()

    async def work() -> None:
        async with limpet.open(tmp_path / "h", sinks=[listener]) as engine:
            await watched(engine, "echo hit 1; echo hit 2")
            await asyncio.to_thread(listener.wait, lambda: len(listener.of(limpet.WatchEvent)) == 2)

    asyncio.run(work())


@pytest.mark.requirement("1.9")
def test_one_that_hangs_holds_up_nobody(tmp_path: Path) -> None:
    """Injector: a sink that never comes back from its first call; its queue holds two events."""
    hanging, listener = Hanging(), Listener()
    home = tmp_path / "h"
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[sinks]\nqueue = 2\n")

    async def work() -> None:
        async with limpet.open(home, sinks=[hanging, listener]) as engine:
            for number in range(20):
                await watched(engine, f"echo hit {number}")
            await asyncio.to_thread(listener.wait, lambda: len(listener.of(limpet.WatchEvent)) == 20)
            state = {each["name"]: each for each in (await engine.call_checked("daemon.status"))["sinks"]}
            assert state["hanging"]["delivered"] == 0
            assert state["hanging"]["dropped"] > 0
            assert state["hanging"]["waiting"] <= 4
            assert state["listener"]["delivered"] >= 20
            began = time.monotonic()
        assert time.monotonic() - began < 10
        assert len(hanging.heard) == 1

    try:
        asyncio.run(work())
    finally:
        hanging.let_go.set()

    async def again() -> None:
        patient = Listener("hanging")
        async with limpet.open(home, sinks=[patient]):
            await asyncio.to_thread(patient.wait, lambda: len(patient.of(limpet.WatchEvent)) == 20)
            assert patient.lines() == [f"hit {number}" for number in range(20)], "what it missed waited for it"

    asyncio.run(again())


@pytest.mark.requirement("1.9")
def test_one_that_raises_is_told_again(tmp_path: Path) -> None:
    """Injector: the sink raises SystemExit for the first two calls."""
    listener = Listener(raises=2)

    async def work() -> None:
        async with limpet.open(tmp_path / "h", sinks=[listener]) as engine:
            await watched(engine, "echo hit 1; echo hit 2")
            await asyncio.to_thread(listener.wait, lambda: len(listener.of(limpet.WatchEvent)) == 2)
            (state,) = (await engine.call_checked("daemon.status"))["sinks"]
            assert state["failed"] == 2

    asyncio.run(work())
    assert listener.lines() == ["hit 1", "hit 2"]


@pytest.mark.requirement("1.9")
def test_each_hit_once_over_orderly_restarts_and_none_from_before(tmp_path: Path) -> None:
    home = tmp_path / "h"
    early, late = Listener("early"), Listener("late")

    async def work(sinks: list[Listener], number: int) -> None:
        async with limpet.open(home, sinks=sinks) as engine:
            await watched(engine, f"echo hit {number}")
            for sink in sinks:
                await asyncio.to_thread(sink.wait, lambda sink=sink: f"hit {number}" in sink.lines())

    asyncio.run(work([early], 1))
    asyncio.run(work([early, late], 2))
    for path in (home / "memory").glob("sessions.db*"):
        path.unlink()
    asyncio.run(work([early, late], 3))
    assert [early.lines(), late.lines()] == [["hit 1", "hit 2", "hit 3"], ["hit 2", "hit 3"]]
    # Nor are old statuses told again because the database was lost.
    assert len(early.of(limpet.StatusEvent)) <= 9


@pytest.mark.requirement("1.9", "0.3")
def test_two_of_one_name_are_refused(tmp_path: Path) -> None:
    async def work(sinks: list[Any]) -> None:
        async with limpet.open(tmp_path / "h", sinks=sinks):
            pass

    with pytest.raises(Refusal, match="invalid_argument: two sinks"):
        asyncio.run(work([Listener("same"), Listener("same")]))
    with pytest.raises(Refusal, match="invalid_argument"):
        asyncio.run(work([Listener("../x")]))
