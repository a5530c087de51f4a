"""A daemon with few descriptors says so to those who come, goes on with its runs, and recovers (F44)."""

import contextlib
import http.client
import json
import os
import resource
import socket
import time
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from .fifos import Gate
from .home import Answer, Home, until
from .surface import Http

NewHome = Callable[..., Home]

CLIENTS = 200
LIMIT = 64
HEAD = "POST /v1/call/{op} HTTP/1.1\r\nHost: localhost\r\n{type}Content-Length: {size}\r\n\r\n"
# With the very last descriptor gone, nobody can be let in to be told: the connection is closed without a word.
UNTOLD = 0
TYPE = "Content-Type: application/json\r\n"


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@contextlib.contextmanager
def crowd(home: Home) -> Generator[list[socket.socket]]:
    """So many clients that connect and ask nothing."""
    with contextlib.ExitStack() as stack:
        clients: list[socket.socket] = []
        for _ in range(CLIENTS):
            client = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            client.settimeout(30)
            client.connect(str(home.socket))
            clients.append(client)
        yield clients


def ask(client: socket.socket, op: str, params: Answer) -> tuple[int, Answer]:
    """One call on a connection that has been waiting."""
    body = json.dumps(params)
    with contextlib.suppress(BrokenPipeError):  # it was answered and closed before it was asked
        client.sendall((HEAD.format(op=op, type=TYPE, size=len(body)) + body).encode())
    reply = http.client.HTTPResponse(client)
    try:
        reply.begin()
    except (http.client.RemoteDisconnected, ConnectionResetError):
        return UNTOLD, {}
    return reply.status, json.loads(reply.read())


@pytest.mark.requirement("F44", "0.3", "1.11")
def test_two_hundred_clients_and_sixty_four_descriptors(new_home: NewHome, gate: Gate) -> None:
    """Injector: RLIMIT_NOFILE of the daemon lowered to 64 by prlimit, and 200 connections."""
    home = new_home()
    pid = home.start()["pid"]
    run_id = Http(home).spawn("echo one; " + gate.wait + "echo two; exit 3")
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (LIMIT, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1]))
    with crowd(home) as clients:
        used_s, began = cpu_s(pid), time.monotonic()
        until(lambda: time.monotonic() - began > 2, "the daemon to have had nothing to do for a while")
        assert cpu_s(pid) - used_s < 0.5, "it is busy with nobody"
        assert descriptors(pid) <= LIMIT
        answers = [ask(client, "runs.list", {}) for client in clients]
        told = Counter(status for status, _ in answers)
        assert set(told) - {UNTOLD} == {200, 503}, told
        assert told[503] + told[UNTOLD] >= CLIENTS - LIMIT, told
        assert told[503] > told[UNTOLD], told
        refused = {answer["reason"] for status, answer in answers if status == 503}
        assert refused == {"too_many_connections"}
        # Who was let in goes on, the runs too, and others can be started.
        inside = next(client for client, (status, _) in zip(clients, answers, strict=True) if status == 200)
        gate.open()
        _, ended = ask(inside, "runs.wait", {"run_ids": [run_id], "timeout_ms": 30_000})
        assert ended["run"]["exit_code"] == 3, ended
        _, ran = ask(inside, "shell", {"command": "echo in the crowd"})
        assert ran.get("stdout") == "in the crowd\n", ran
    until(lambda: descriptors(pid) < LIMIT // 2 + 8, "the crowd's connections to be closed")
    for _ in range(50):
        assert Http(home).ok("shell", {"command": "echo after"})["stdout"] == "after\n"
    assert Http(home).bytes_of(run_id) == b"one\ntwo\n"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    assert Http(home).ok("runs.verify")["findings"] == []


@pytest.mark.requirement("F44", "1.11", "0.8")
def test_no_run_is_given_up_because_no_file_can_be_opened(new_home: NewHome, gate: Gate) -> None:
    """Injector: RLIMIT_NOFILE of the daemon lowered below what it has open, while runs start, write and end."""
    home = new_home()
    pid = home.start()["pid"]
    alive = [Http(home).spawn(f"echo one; {gate.wait}echo two; exit {n}") for n in range(8)]
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    refused = started = 0
    for spare in (6, 4, 3, 2, 1, 2, 3):
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors(pid) + spare, before[1]))
        for _ in range(4):
            answer: Answer = {}
            try:
                answer = Http(home).call("shell", {"action": "spawn", "command": gate.wait + "exit 5"})
            except (OSError, http.client.HTTPException):  # with the very last one gone, nobody can be let in to be told
                answer = {"ok": False, "error": "unavailable", "reason": "closed"}
            if answer["ok"]:
                alive.append(answer["run_id"])
                started += 1
            else:
                refused += 1
                assert (answer["error"], "reason" in answer) == ("unavailable", True), answer
    assert refused, "there were descriptors enough"
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    known = Http(home).ok("runs.list", {"limit": 1000})["runs"]
    for _ in known:
        gate.open()
    ended = [Http(home).finish(run_id) for run_id in alive]
    assert {facts["ended_by"] for facts in ended} == {"self"}, ended
    assert [facts["exit_code"] for facts in ended] == [*range(8), *[5] * started]
    # A start that was refused because it could not be put on disk may go on: the refusal said so.
    assert {run["run_id"] for run in known} >= set(alive)
