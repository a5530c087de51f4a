"""Every operation has a typed method on every client: it asks by the name, and says what comes back (6.2, 0.2)."""

import asyncio
import inspect
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import limpet
from docs import typed_methods
from limpet.client.client import AsyncClient
from limpet.client.methods.inherited import AsyncMethods, SyncMethods
from limpet.client.portal import SyncClient
from limpet.daemon import InProcess
from limpet.dialects import ROWS
from limpet.model.operation import Operation
from tests.contract.home import Home

Asked = list[tuple[str, dict[str, Any]]]


class AsyncEar(AsyncMethods):
    def __init__(self) -> None:
        self.asked: Asked = []

    async def call_checked(self, operation: str, /, **params: Any) -> dict[str, Any]:
        self.asked.append((operation, params))
        return {"ok": True}


class SyncEar(SyncMethods):
    def __init__(self) -> None:
        self.asked: Asked = []

    def call_checked(self, operation: str, /, **params: Any) -> dict[str, Any]:
        self.asked.append((operation, params))
        return {"ok": True}


def method_of(client: object, row: Operation[Any, Any]) -> Callable[..., Any]:
    found: Any = client
    for name in row.name.split("."):
        found = getattr(found, name)
    return found


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home()
    made.start()
    yield made
    made.close()


@pytest.mark.requirement("6.2", "0.2")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_each_row_has_its_method(row: Operation[Any, Any]) -> None:
    """With its parameters by their public names, those that Python has a word for excepted."""
    method = method_of(AsyncEar(), row)
    words = row.name.replace(".", "_").split("_")
    params = "".join(word[:1].upper() + word[1:] for word in words) + "Params"
    assert params in str(inspect.get_annotations(method)["params"])
    types = import_module(f"limpet.client.types.{row.name.partition('.')[0]}")
    named: dict[str, object] = getattr(types, params).__annotations__
    taken = [*named, *(name for name in inspect.signature(method).parameters if name != "params")]
    public = dict(zip(row.request.__struct_fields__, row.request.__struct_encode_fields__, strict=True))
    assert {name.removesuffix("_") for name in taken} == set(public.values())
    given = dict.fromkeys(taken, 7)
    expected: Asked = [(row.name, dict.fromkeys((name.removesuffix("_") for name in taken), 7))]
    waits, now = AsyncEar(), SyncEar()
    assert asyncio.run(method_of(waits, row)(**given)) == {"ok": True}
    assert method_of(now, row)(**given) == {"ok": True}
    assert waits.asked == now.asked == expected
    assert method.__doc__ == row.summary


async def answers_of_shell(client: AsyncMethods) -> dict[str | None, dict[str, Any]]:
    """A real answer for each value of what decides its shape."""
    started = await client.shell(action="spawn", command="read -r x; exit", pty=True)
    run_id = started["run_id"]
    answers: dict[str | None, Any] = {
        None: await client.shell(command="true"),
        "spawn": started,
        "poll": await client.shell(action="poll", run_id=run_id),
        "log": await client.shell(action="log", run_id=run_id),
        "send_keys": await client.shell(action="send_keys", run_id=run_id, keys=["Enter"]),
        "kill": await client.shell(action="kill", run_id=run_id),
    }
    return answers


@pytest.mark.requirement("6.2", "1.1", "1.2", "1.4")
def test_an_answer_has_what_its_type_says(tmp_path: Path) -> None:
    """What is always there is there, and nothing that the type does not know."""

    async def run() -> dict[str | None, dict[str, Any]]:
        async with limpet.open(tmp_path / "home") as engine:
            return await answers_of_shell(engine)

    types = import_module("limpet.client.types.shell")
    _, shapes = typed_methods.SHAPES["shell"]
    answers = asyncio.run(run())
    assert set(answers) == set(shapes)
    for value, answer in answers.items():
        kind = getattr(types, shapes[value][0])
        assert kind.__required_keys__ <= set(answer) <= kind.__required_keys__ | kind.__optional_keys__, value


def test_all_clients_have_them() -> None:
    assert issubclass(AsyncClient, AsyncMethods)
    assert issubclass(InProcess, AsyncMethods)
    assert issubclass(SyncClient, SyncMethods)


async def talk(client: AsyncMethods) -> None:
    started = await client.shell(action="spawn", command="echo hi; exit 3")
    run_id = started["run_id"]
    ended = await client.runs.wait(run_ids=[run_id], for_=[{"exit": True}], timeout_ms=60_000)
    assert ended["ok"] is True
    assert ended["run"]["exit_code"] == 3
    seen = await client.runs.wait(run_ids=[run_id], for_=[{"regex": "hi"}], from_={run_id: {"stdout": 0}})
    assert seen["ok"] is True
    missed = await client.runs.wait(run_ids=[run_id], for_=[{"regex": "never"}], timeout_ms=1)
    assert missed["ok"] is False
    assert missed["error"] == "timeout"
    assert (await client.runs.read(run_id=run_id))["data"] == "hi\n"
    with pytest.raises(limpet.LimpetError) as raised:
        await client.runs.get(run_id="nosuch")
    assert raised.value.code == "not_found"
    opened = await client.pty.run(conversation_id="typed", cmd="cd /; pwd", timeout_ms=60_000)
    assert opened["output"] == "/\n"
    assert (await client.pty.close(conversation_id="typed"))["ok"] is True


@pytest.mark.requirement("6.2", "0.2")
def test_a_talk_with_a_daemon(home: Home) -> None:
    async def run() -> None:
        async with limpet.connect(home.path, start=False) as client:
            await talk(client)

    asyncio.run(run())


@pytest.mark.requirement("6.2", "0.2")
def test_a_talk_in_process(tmp_path: Path) -> None:
    async def run() -> None:
        async with limpet.open(tmp_path / "home") as engine:
            await talk(engine)

    asyncio.run(run())


@pytest.mark.requirement("6.2", "0.2")
def test_a_talk_without_a_loop(home: Home) -> None:
    with limpet.connect_sync(home.path, start=False) as client:
        answer = client.shell(command="echo hi")
        assert answer["stdout"] == "hi\n"
        assert client.runs.get(run_id=answer["run_id"])["exit_code"] == 0
        with pytest.raises(limpet.LimpetError):
            client.blocks.since(conversation_id="nosuch", limit=1)
        assert client.daemon.status()["pid"] != os.getpid()


@pytest.mark.requirement("6.2")
def test_what_is_not_used_is_not_imported(home: Home) -> None:
    """A program that names its operations pays for no types."""
    check = (
        "import asyncio, sys, limpet\n"
        "async def main():\n"
        f"    async with limpet.connect({str(home.path)!r}, start=False) as client:\n"
        "        await client.call('daemon.status')\n"
        "asyncio.run(main())\n"
        "print([name for name in sys.modules if name.startswith('limpet.client.types.')])\n"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "[]\n"
