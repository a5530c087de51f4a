"""When a listener is woken: by which facts, never twice unread, and never too little."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.keeper.driver import Connection, Frame, Keeper
from tests.keeper.samples import extent, wait_extent


def waiting_frames(connection: Connection) -> list[Frame]:
    """What lies in the socket now, without waiting."""
    connection.socket.setblocking(False)
    try:
        while data := connection.socket.recv(1 << 16):
            connection.unread += data
    except BlockingIOError:
        pass
    finally:
        connection.socket.setblocking(True)
    *lines, connection.unread = connection.unread.split(b"\n")
    return [json.loads(line) for line in lines]


def settle(keeper: Keeper) -> None:
    """A fact is in the journal a moment before listeners are told: two answers later, they were."""
    for _ in range(2):
        assert keeper.hello()["ok"]


def test_whom_a_fact_wakes(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        modes = ("every", "state", "never", None)
        listeners = {mode: Connection(keeper.directory) for mode in modes}
        for mode, listener in listeners.items():
            assert listener.call("hello", protocol=1, **({"wake": mode} if mode else {}))["ok"]
        assert keeper.sh("cat; exec sleep 1000", stdin="open", sync_ms=50)["ok"]
        settle(keeper)
        seen: dict[Any, int] = {mode: len(woken(listener)) for mode, listener in listeners.items()}
        assert seen == {"every": 1, "state": 1, "never": 0, None: 0}
        assert keeper.write(b"output")["ok"]
        wait_extent(keeper, "stdout", 6)
        keeper.wait_until(lambda facts: facts[-1]["fact"] == "synced" and facts[-1]["streams"].get("stdout") == 6)
        settle(keeper)
        seen = {mode: len(woken(listener)) for mode, listener in listeners.items()}
        assert seen == {"every": 1, "state": 0, "never": 0, None: 0}
        assert listeners["never"].call("wake", on="state")["ok"]
        assert listeners["state"].call("wake", on="never")["ok"]
        assert keeper.write(b"", close=True)["ok"]
        size = listeners["never"].wakeup()["wake"]
        assert (keeper.directory / "keeper.journal").read_bytes()[size - 1 : size] == b"\n"
        assert woken(listeners["state"]) == []
        for listener in listeners.values():
            listener.close()


def woken(listener: Connection) -> list[Frame]:
    """The wakeups that have come: all that were sent before the reply to one more request."""
    before = listener.wakeups
    assert listener.call("cancel", of=0).get("re") is not None
    listener.wakeups = []
    return before


def test_one_unread_wakeup_at_most(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        listener = Connection(keeper.directory)
        assert listener.call("hello", protocol=1, wake="every")["ok"]
        assert keeper.start("cat", stdin="open", sync_ms=1_000_000)["ok"]  # no fact but what is asked for
        for count in range(1, 31):
            assert keeper.write(b"x")["ok"]
            wait_extent(keeper, "stdout", count)
        settle(keeper)
        assert len(waiting_frames(listener)) == 1
        assert waiting_frames(listener) == []
        assert keeper.write(b"x")["ok"]
        wait_extent(keeper, "stdout", 31)
        settle(keeper)
        assert len(waiting_frames(listener)) == 1
        listener.close()


@pytest.mark.parametrize("mode", ["every", "state"])
def test_who_reads_after_a_wakeup_misses_nothing(tmp_path: Path, mode: str) -> None:
    """Thousands of facts; at each wakeup the listener reads to the end; the last one leads it to the last fact."""
    script = "i=0; while [ $i -lt 2000 ]; do echo $i; i=$((i+1)); done"
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.call("wake", on=mode)["ok"]
        assert keeper.sh(script)["ok"]
        facts = keeper.wait_until(lambda facts: facts if facts[-1]["fact"] in ("ended", "sealed") else None)
        assert extent(facts, "stdout") == len(keeper.spool()) == 8890
