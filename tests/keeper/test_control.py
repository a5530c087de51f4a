"""The control socket: its greeting, frames right and wrong, many connections, and order."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from tests.keeper.driver import Connection, Frame, Keeper
from tests.keeper.samples import assert_whole, extent, random_bytes, wait_extent

FRAME_BYTES = 64 << 20


def assert_closed(connection: Connection) -> None:
    with pytest.raises((EOFError, ConnectionError)):
        connection.receive()


def test_hello(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        hello = keeper.hello()
        assert (hello["protocol"], hello["keeper_pid"], hello["phase"]) == (1, keeper.pid, "idle")
        assert hello["version"]
        assert (hello["run"], hello["pid"], hello["stalled"]) == (None, None, None)
        assert hello["journal_bytes"] == (keeper.directory / "keeper.journal").stat().st_size
        pid = keeper.start("cat", stdin="open")["pid"]
        assert keeper.write(b"12345")["written"] == 5
        wait_extent(keeper, "stdout", 5)
        hello = keeper.hello()
        assert (hello["phase"], hello["pid"], hello["run"]) == ("running", pid, "r1")
        assert hello["streams"] == {"stdout": 5, "stderr": 0}


def test_another_protocol_is_a_conflict(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        other = Connection(keeper.directory)
        for protocol in (0, 2, 99):
            reply = other.call("hello", protocol=protocol)
            assert (reply["ok"], reply["error"], reply["protocol"]) == (False, "conflict", 1)
        assert other.call("hello", protocol=1)["ok"]
        other.close()


def test_a_frame_that_is_wrong_is_answered_and_the_connection_stays(tmp_path: Path) -> None:
    wrong: list[tuple[Frame, str]] = [
        ({"do": "hello", "protocol": 1, "beauty": 1}, "beauty"),
        ({"do": "hello"}, "protocol"),
        ({"do": "hello", "protocol": "1"}, "protocol"),
        ({"do": "hello", "protocol": True}, "protocol"),
        ({"do": "hello", "protocol": 1, "wake": "always"}, "wake"),
        ({"do": "wake", "on": "sometimes"}, "on"),
        ({"do": "wake"}, "on"),
        ({"do": "write", "data": 5}, "data"),
        ({"do": "write"}, "data"),
        ({"do": "write", "data": "not base64!"}, "data"),
        ({"do": "write", "data": "", "close": "yes"}, "close"),
        ({"do": "write", "data": "", "secret": 1}, "secret"),
        ({"do": "signal", "signal": "SIGNONE"}, "signal"),
        ({"do": "signal", "signal": 15}, "signal"),
        ({"do": "signal"}, "signal"),
        ({"do": "signal", "signal": "SIGTERM", "to": "everyone"}, "to"),
        ({"do": "kill", "signal": "TERMINATE"}, "signal"),
        ({"do": "kill", "grace_ms": -1}, "grace_ms"),
        ({"do": "kill", "grace_ms": "soon"}, "grace_ms"),
        ({"do": "kill", "by": 1}, "by"),
        ({"do": "kill", "surprise": None}, "surprise"),
        ({"do": "cancel", "of": "first"}, "of"),
        ({"do": "cancel"}, "of"),
        ({"do": "dance"}, "do"),
        ({"do": 5}, "do"),
        ({}, "do"),
    ]
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        other = Connection(keeper.directory)
        for number, (frame, name) in enumerate(wrong, 1):
            other.send_raw(json.dumps({**frame, "id": number}).encode() + b"\n")
            reply = other.reply(number)
            assert reply.get("error") == "invalid_argument", (frame, reply)
            assert name in reply["message"], (frame, reply)
        for unreadable in (b'{"do": "wake", "on": "never", "id": "one"}', b'{"id": [1], "do": "wake", "on": "never"}'):
            other.send_raw(unreadable + b"\n")
            assert other.reply(None)["error"] == "invalid_argument"
        assert other.call("hello", protocol=1)["phase"] == "running"
        other.close()
        assert keeper.write(b"whole", close=True)["ok"]
        keeper.wait_gone()
        assert keeper.named("ended")[0]["by"] == "self"
        assert keeper.spool() == b"whole"
        assert keeper.named("signalled") == []
        assert keeper.named("stopping") == []


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[1, 2]",
        b'"do"',
        b"17",
        b"null",
        b'{"do": "kill"',
        b'{"do": "kill"} {"do": "kill"}',
        b"\xff\xfe\x00",
        b'{"do": "kill", "by": "\xff"}',
        b"\x00" * 1000,
        b"[" * 200_000,
        b'{"do":' * 200_000,
    ],
    ids=lambda line: repr(line[:24]),
)
def test_a_line_that_is_no_object_closes_its_connection_only(tmp_path: Path, line: bytes) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        other = Connection(keeper.directory)
        other.send_raw(line + b"\n")
        reply = other.reply(None)
        assert (reply["ok"], reply["error"]) == (False, "invalid_argument")
        assert reply["message"]
        assert_closed(other)
        assert keeper.write(b"on", close=True)["ok"]
        keeper.wait_gone()
        assert keeper.named("ended")[0]["by"] == "self"
        assert keeper.spool() == b"on"


def test_a_line_past_the_limit_is_not_gathered_for_ever(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        other = Connection(keeper.directory)
        piece = b" " * (1 << 20)
        with suppress(ConnectionError):  # it may be refused while it is still being sent
            for _ in range(FRAME_BYTES // len(piece) + 8):
                other.send_raw(piece)
        assert other.reply(None)["error"] == "invalid_argument"
        assert_closed(other)
        assert keeper.write(b"on", close=True)["ok"]
        keeper.wait_gone()
        assert keeper.spool() == b"on"


@pytest.mark.requirement("0.12")
def test_a_frame_just_below_the_limit(tmp_path: Path) -> None:
    data = random_bytes(45 << 20)
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("md5sum", stdin="open")["ok"]
        assert keeper.write(data, close=True)["written"] == len(data)
        keeper.wait_gone()
        assert extent(keeper.facts(), "stdout") == 36
        assert keeper.spool().split()[0] == hashlib.md5(data).hexdigest().encode()


def test_mutated_frames_are_each_answered_once(tmp_path: Path) -> None:
    """Injector: bytes of good frames changed by a seeded chance; each line gets one answer, and the keeper stays."""
    chance = random.Random(7)
    good: list[Frame] = [
        {"do": "hello", "id": 1, "protocol": 1, "wake": "never"},
        {"do": "wake", "id": 2, "on": "never"},
        {"do": "resize", "id": 3, "rows": 24, "cols": 80},
        {"do": "write", "id": 4, "data": "AAAA", "secret": False},
        {"do": "cancel", "id": 5, "of": 4},
    ]
    refused = 0
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        other = Connection(keeper.directory)
        for _ in range(500):
            line = bytearray(json.dumps(chance.choice(good)).encode())
            for _ in range(chance.randint(1, 3)):
                line[chance.randrange(len(line))] = chance.choice(b'{}[]",:0e-.\\\x00\xff x')
            other.send_raw(bytes(line) + b"\n")
            answer = other.receive()
            refused += answer["ok"] is False
            assert "re" in answer, (line, answer)
            if is_closed(other):
                other.close()
                other = Connection(keeper.directory)
        other.close()
        assert refused > 100
        assert keeper.write(b"", close=True)["ok"]
        keeper.wait_gone()
        assert keeper.named("exited")[0]["code"] == 0


def is_closed(connection: Connection) -> bool:
    """Closed right behind its last answer, or still good for a request."""
    try:
        connection.call("wake", on="never")
    except (EOFError, ConnectionError):
        return True
    return False


def test_half_a_line_then_close_does_nothing(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        for half in (b'{"do": "kill", "id": 1}', b'{"do": "wri', b"{"):
            other = Connection(keeper.directory)
            other.send_raw(half)
            other.close()
        assert keeper.write(b"on", close=True)["ok"]
        keeper.wait_gone()
        assert keeper.named("ended")[0]["by"] == "self"
        assert keeper.named("stopping") == []


def test_frames_cut_and_glued_anywhere(tmp_path: Path) -> None:
    """The whole life of a run in one send, then one in single bytes."""
    frames: list[Frame] = [
        {"do": "hello", "protocol": 1, "id": 1},
        {"do": "start", "run": "r", "argv": ["cat"], "cwd": "/", "env": {}, "stdin": "open", "id": 2},
        {"do": "write", "data": base64.b64encode(b"one").decode(), "id": 3},
        {"do": "write", "data": base64.b64encode(b"two").decode(), "close": True, "id": 4},
        {"do": "write", "data": base64.b64encode(b"late").decode(), "id": 5},
    ]
    lines = b"".join(json.dumps(frame).encode() + b"\n" for frame in frames)
    for step in (len(lines), 1):
        with Keeper(tmp_path / f"run{step}") as keeper:
            for at in range(0, len(lines), step):
                keeper.connection.send_raw(lines[at : at + step])
            oks = [keeper.connection.reply(number)["ok"] for number in range(1, 6)]
            assert oks == [True, True, True, True, False]
            keeper.wait_gone()
            assert keeper.spool() == b"onetwo"


def test_frames_without_an_id_are_done_and_answered_too(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        keeper.connection.send_raw(b'{"do": "hello", "protocol": 1}\n{"do": "hello", "protocol": 1, "id": 2.5}\n')
        replies = [keeper.connection.receive() for _ in range(2)]
        assert [reply["ok"] for reply in replies] == [True, True]
        assert replies[0].get("re") is None
        assert replies[1]["re"] == 2.5


def test_requests_of_a_connection_are_applied_in_their_order(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        lines = [b"%d\n" % number for number in range(1000)]
        ids = [keeper.connection.post("write", data=base64.b64encode(line).decode()) for line in lines]
        ids.append(keeper.connection.post("write", data="", close=True))
        assert all(keeper.connection.reply(number)["ok"] for number in ids)
        keeper.wait_gone()
        assert_whole(keeper, "stdout", b"".join(lines))


def test_many_connections(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper, ExitStack() as stack:
        assert keeper.start("cat", stdin="open")["ok"]
        others = [Connection(keeper.directory) for _ in range(200)]
        for other in others:
            stack.callback(other.close)
        ids = [other.post("hello", protocol=1, wake="state") for other in others]
        for other, number in zip(others, ids, strict=True):
            assert other.reply(number)["phase"] == "running"
        for other in others[::2]:
            other.close()
        assert others[1].call("write", data="", close=True)["ok"]
        for other in others[1::2]:
            assert other.wakeup()["wake"] > 0
        keeper.wait_gone()


def test_a_client_that_does_not_read_holds_up_nobody(tmp_path: Path) -> None:
    """Thousands of unread replies on one connection; another one is served, and the run goes on."""
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        deaf = Connection(keeper.directory)
        deaf.socket.setblocking(False)
        requests = b'{"do": "hello", "protocol": 1, "id": 1, "wake": "every"}\n' * 20_000
        sent = 0
        try:
            while sent < len(requests):
                sent += deaf.socket.send(requests[sent : sent + 65536])
        except (BlockingIOError, ConnectionError):
            pass
        assert sent >= 65536
        data = random_bytes(1 << 20)
        assert keeper.write(data, close=True)["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", data)
        deaf.close()
