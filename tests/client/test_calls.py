"""The async client on a real server: answers, failures, many calls at once, and what a cancelled one lets go."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import limpet
from limpet.client.client import AsyncClient
from limpet.client.codec import Codec, fast, light
from tests.http.serving import Place, serving

Scenario = Callable[[AsyncClient, Place], Awaitable[None]]


def play(home: Path, scenario: Scenario, codec: Codec | None = None, caller: dict[str, Any] | None = None) -> None:
    async def run() -> None:
        client = AsyncClient(home, start=False, codec=codec, caller=caller)
        async with serving(home) as place, client:
            await scenario(client, place)

    asyncio.run(asyncio.wait_for(run(), 60))


@pytest.mark.requirement("6.2")
@pytest.mark.parametrize("codec", [fast(), light()], ids=["fast", "light"])
def test_answers(tmp_path: Path, codec: Codec) -> None:
    async def scenario(client: AsyncClient, _place: Place) -> None:
        assert await client.call("try.echo", text="é\n") == {"ok": True, "text": "é\n", "calls": 1}
        assert await client.call("try.nothing") == {"ok": True}
        assert await client.call_raw("try.echo", b'{"text":"raw"}') == {"ok": True, "text": "raw", "calls": 3}
        assert client.home == str(tmp_path)
        assert client.daemon_version == limpet.__version__

    play(tmp_path, scenario, codec)


@pytest.mark.requirement("6.2", "0.3")
def test_a_failure_is_an_answer_or_an_error(tmp_path: Path) -> None:
    async def scenario(client: AsyncClient, _place: Place) -> None:
        answer = await client.call("try.refuse")
        assert (answer["ok"], answer["error"], answer["mode"]) == (False, "busy", "interactive")
        with pytest.raises(limpet.LimpetError) as raised:
            await client.call_checked("try.refuse")
        assert (raised.value.code, raised.value.reason, raised.value.fields) == (
            "busy",
            "mode",
            {"mode": "interactive"},
        )
        assert raised.value.answer().items() <= answer.items()
        for call in (client.call, client.call_checked):
            timed_out = await call("try.time_out")
            assert (timed_out["ok"], timed_out["error"], timed_out["next_seq"]) == (False, "timeout", 7)

    play(tmp_path, scenario)


@pytest.mark.parametrize("name", ["try.ehco", "", "a b", "../x", "a\r\nb: c", "%00", "é"])
def test_any_name_gets_an_answer(tmp_path: Path, name: str) -> None:
    async def scenario(client: AsyncClient, _place: Place) -> None:
        assert (await client.call(name))["error"] == "not_found"
        assert (await client.call("try.nothing"))["ok"] is True

    play(tmp_path, scenario)


@pytest.mark.parametrize("codec", [fast(), light()], ids=["fast", "light"])
@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"text": "x", "number": 10**400}, "number"),
        ({"text": "x", "number": 2**64}, "number"),
        ({"text": object()}, "text"),
        ({"text": "x", "txet": 1}, "txet"),
        ({"text": "\ud800"}, None),
        ({"text": "x", "ratio": float("nan")}, None),
    ],
    ids=["too large", "larger than 64 bits", "an object", "unknown", "half a character", "not a number"],
)
def test_what_cannot_be_said_is_refused(
    tmp_path: Path, params: dict[str, Any], field: str | None, codec: Codec
) -> None:
    async def scenario(client: AsyncClient, _place: Place) -> None:
        answer = await client.call("try.echo", **params)
        assert (answer["ok"], answer["error"]) == (False, "invalid_argument"), answer
        if field is not None:
            assert answer["field"] == field

    play(tmp_path, scenario, codec)


@pytest.mark.requirement("0.10")
def test_the_caller_is_sent_only_where_asked(tmp_path: Path) -> None:
    caller = {"cwd": "/here", "env": {"A": "é" * 100_000}, "surface": "cli"}

    async def scenario(client: AsyncClient, place: Place) -> None:
        await client.call_raw("try.echo", {"text": "x"}, as_caller=True)
        await client.call_raw("try.echo", {"text": "x"})
        told, silent = place.engine.callers
        assert (told.cwd, told.env, told.surface) == (caller["cwd"], caller["env"], "cli")
        assert (silent.cwd, silent.env) == (None, None)

    play(tmp_path, scenario, caller=caller)


def test_waits_hold_up_nobody(tmp_path: Path) -> None:
    async def scenario(client: AsyncClient, place: Place) -> None:
        place.engine.awaited_calls = 200
        waits = [asyncio.ensure_future(client.call("try.wait")) for _ in range(200)]
        await place.engine.entered.wait()
        assert (await client.call("try.nothing"))["ok"] is True
        assert not any(wait.done() for wait in waits)
        place.engine.released.set()
        assert [answer["ok"] for answer in await asyncio.gather(*waits)] == [True] * 200

    play(tmp_path, scenario)


def test_a_cancelled_call_lets_go(tmp_path: Path) -> None:
    async def scenario(client: AsyncClient, place: Place) -> None:
        wait = asyncio.ensure_future(client.call("try.wait"))
        await place.engine.entered.wait()
        wait.cancel()
        await place.engine.let_go.wait()
        assert (await client.call("try.nothing"))["ok"] is True

    play(tmp_path, scenario)


def test_large_requests_and_answers(tmp_path: Path) -> None:
    async def scenario(client: AsyncClient, _place: Place) -> None:
        text = "é:\n" * 3_000_000
        assert (await client.call("try.echo", text=text))["text"] == text
        answer = await client.call("try.echo", text="x" * (65 << 20))
        assert (answer["ok"], answer["error"]) == (False, "too_large")

    play(tmp_path, scenario)
