"""A daemon that goes and comes back: the client finds it again and repeats what is safe to repeat, nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.client.client import AsyncClient
from tests.http.rows import Engine
from tests.http.serving import Place, serving

WAITS: list[tuple[str, dict[str, Any]]] = [("try.wait", {}), ("try.once", {"key": "k"})]


def cut(place: Place) -> None:
    """Injector: every connection ends as if the daemon had been killed."""
    connections = list(place.server._state.connections)  # pyright: ignore[reportPrivateUsage]
    assert connections
    for connection in connections:
        connection.transport.abort()


def play(scenario: Callable[[], Awaitable[None]]) -> None:
    asyncio.run(asyncio.wait_for(scenario(), 60))


@pytest.mark.requirement("6.2")
@pytest.mark.parametrize(("operation", "params"), WAITS)
def test_a_cut_wait_is_asked_again(tmp_path: Path, operation: str, params: dict[str, Any]) -> None:
    """Injector: the connection is cut while the call waits."""

    async def scenario() -> None:
        async with serving(tmp_path) as place, AsyncClient(tmp_path, start=False) as client:
            wait = asyncio.ensure_future(client.call(operation, **params))
            await place.engine.entered.wait()
            place.engine.entered.clear()
            cut(place)
            await place.engine.let_go.wait()
            await place.engine.entered.wait()
            place.engine.released.set()
            assert (await wait)["ok"] is True
            assert place.engine.calls == 2

    play(scenario)


@pytest.mark.requirement("6.2")
@pytest.mark.parametrize("repeat", [None, False])
def test_what_is_not_safe_is_not_asked_again(tmp_path: Path, repeat: bool | None) -> None:
    """Injector: the connection is cut while the call waits."""

    async def scenario() -> None:
        async with serving(tmp_path) as place, AsyncClient(tmp_path, start=False) as client:
            operation = "try.once" if repeat is None else "try.wait"
            wait = asyncio.ensure_future(client.call_raw(operation, repeat=repeat))
            await place.engine.entered.wait()
            cut(place)
            with pytest.raises(limpet.LimpetError) as raised:
                await wait
            assert (raised.value.code, raised.value.reason) == ("unavailable", "connection_lost")
            assert (await client.call("try.nothing"))["ok"] is True
            assert place.engine.calls == 2

    play(scenario)


@pytest.mark.requirement("6.2", "6.1")
@pytest.mark.parametrize(("operation", "params"), WAITS)
def test_a_wait_goes_on_at_the_next_daemon(tmp_path: Path, operation: str, params: dict[str, Any]) -> None:
    """Injector: the server stops, and another one takes its place."""

    async def scenario() -> None:
        second = Engine()
        second.released.set()
        async with AsyncExitStack() as stack:
            async with serving(tmp_path) as place:
                client = await stack.enter_async_context(AsyncClient(tmp_path, start=False))
                wait = asyncio.ensure_future(client.call(operation, **params))
                await place.engine.entered.wait()
            assert place.engine.let_go.is_set()
            assert not wait.done()
            async with serving(tmp_path, second):
                assert (await wait)["ok"] is True
            assert (place.engine.calls, second.calls) == (1, 1)

    play(scenario)


@pytest.mark.requirement("6.2", "6.1")
def test_a_start_without_key_is_told_that_it_was_interrupted(tmp_path: Path) -> None:
    """Injector: the server stops; another one takes its place, so that the client can ask it what may be repeated."""

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            async with serving(tmp_path) as place:
                client = await stack.enter_async_context(AsyncClient(tmp_path, start=False))
                wait = asyncio.ensure_future(client.call("try.once"))
                await place.engine.entered.wait()
            async with serving(tmp_path) as second:
                answer = await wait
                assert (answer["error"], answer["reason"]) == ("unavailable", "interrupted")
                assert second.engine.calls == 0

    play(scenario)


@pytest.mark.requirement("6.2")
def test_an_idle_client_finds_the_next_daemon(tmp_path: Path) -> None:
    """Injector: the server stops, and another one takes its place."""

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            async with serving(tmp_path):
                client = await stack.enter_async_context(AsyncClient(tmp_path, start=False))
                assert (await client.call("try.nothing"))["ok"] is True
            async with serving(tmp_path) as place:
                place.engine.released.set()
                assert (await client.call("try.once"))["ok"] is True

    play(scenario)


def test_patience_ends(tmp_path: Path) -> None:
    """Injector: the server stops and none comes."""

    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            async with serving(tmp_path):
                client = await stack.enter_async_context(AsyncClient(tmp_path, start=False, patience_s=0.3))
            with pytest.raises(limpet.LimpetError) as raised:
                await client.call("try.nothing")
            assert (raised.value.code, raised.value.reason) == ("unavailable", "not_running")

    play(scenario)


def test_none_runs_and_none_is_started(tmp_path: Path) -> None:
    async def scenario() -> None:
        with pytest.raises(limpet.LimpetError) as raised:
            async with limpet.connect(tmp_path, start=False):
                raise AssertionError("connected to nobody")
        assert (raised.value.code, raised.value.reason) == ("unavailable", "not_running")
        assert str(tmp_path) in raised.value.message

    play(scenario)


OLD = b'HTTP/1.1 200 OK\r\nserver: limpet/0.0.1\r\ncontent-length: 11\r\n\r\n{"ok":true}'


@pytest.mark.requirement("6.1")
def test_an_old_daemon_is_named(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(65536):
            writer.write(OLD)
        writer.close()

    async def scenario() -> None:
        server = await asyncio.start_unix_server(answer, tmp_path / "daemon.sock")
        async with server, AsyncClient(tmp_path, start=False) as client:
            with pytest.warns(RuntimeWarning, match=r"limpet 0\.0\.1.*limpet restart"):
                assert (await client.call("try.nothing"))["ok"] is True
            assert client.daemon_version == "0.0.1"
            assert (await client.call("try.nothing"))["ok"] is True  # told once

    play(scenario)
