"""runs.wait for a port holds once something of the run's own tree listens there, and for nobody else's (0.11)."""

import socket
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from .fifos import Gate
from .hits import timed_out, wait
from .surface import Http, Surface

LISTEN = """
import socket, sys, threading
there = socket.socket({family})
there.bind(({address!r}, {port}))
{listen}
print("bound", flush=True)
threading.Event().wait()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def listener(port: int, *, listen: bool = True, v6: bool = False) -> str:
    """A command that binds a port, listens there or not, and stays."""
    script = LISTEN.format(
        family="socket.AF_INET6" if v6 else "socket.AF_INET",
        address="::1" if v6 else "127.0.0.1",
        port=port,
        listen="there.listen()" if listen else "pass",
    )
    return f"'{sys.executable}' -c '{script.replace(chr(39), chr(34))}'"


@pytest.mark.requirement("0.11", "0.2")
def test_a_port_of_the_runs_tree(surface: Surface, gate: Gate) -> None:
    port = free_port()
    run_id = surface.spawn(f"{gate.wait} (setsid {listener(port)}) & wait")
    other = surface.spawn("exec sleep 1000")
    timed_out(surface, [run_id, other], {"port": port})
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(wait, surface, [other, run_id], {"regex": "nosuch"}, {"port": port})
        gate.open()
        answer = waiting.result(60)
    assert (answer["run_id"], answer["met"]) == (run_id, {"port": port})
    with socket.create_connection(("127.0.0.1", port), 20):
        assert wait(surface, [run_id], {"port": port}, timeout_ms=10_000)["run_id"] == run_id
    for each in (run_id, other):
        surface.ok("runs.kill", {"run_id": each})


@pytest.mark.requirement("0.11")
def test_a_strangers_port_is_not_the_runs(http: Http) -> None:
    run_id = http.spawn("exec sleep 1000")
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        timed_out(http, [run_id], {"port": stranger.getsockname()[1]}, timeout_ms=700)
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.11")
def test_another_runs_port_is_not_the_runs(http: Http) -> None:
    port = free_port()
    server, bystander = http.spawn(listener(port)), http.spawn("exec sleep 1000")
    assert wait(http, [server, bystander], {"port": port})["run_id"] == server
    timed_out(http, [bystander], {"port": port}, timeout_ms=700)
    for run_id in (server, bystander):
        http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.11")
def test_a_bound_port_is_not_one_that_listens(http: Http) -> None:
    port = free_port()
    run_id = http.spawn(listener(port, listen=False))
    assert http.read(run_id, wait_ms=60_000)["data"] == "bound\n"
    timed_out(http, [run_id], {"port": port}, timeout_ms=700)
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("0.11")
@pytest.mark.skipif(not socket.has_ipv6, reason="this machine has no IPv6")
def test_a_port_of_ipv6(http: Http) -> None:
    port = free_port()
    run_id = http.spawn(listener(port, v6=True))
    assert wait(http, [run_id], {"port": port})["run_id"] == run_id
    http.ok("runs.kill", {"run_id": run_id})
