"""A pruning that is cut short by the death of the daemon can be run again, and has harmed nobody (F13, 1.12)."""

import contextlib
import http.client
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.injectors import traced

from .fifos import Gate
from .home import Home, running, until
from .remains import seal
from .surface import Http

NewHome = Callable[..., Home]

CALLS = "unlink,unlinkat,rmdir,rename,renameat,renameat2,fdatasync,pwrite64"


@pytest.mark.requirement("F13", "1.12", "0.9")
@pytest.mark.parametrize("when", [1, 2, 3, 5, 8, 13, 21])
def test_killed_while_it_prunes(new_home: NewHome, tmp_path: Path, gate: Gate, when: int) -> None:
    """Injector: strace, SIGKILL at the n-th of the daemon's calls that remove, rename, write or sync, in a pruning."""
    home = new_home()
    pid = home.start()["pid"]
    http_ = Http(home)
    alive = http_.spawn("echo one; " + gate.wait + "exit 3")
    made = [http_.ok("shell", {"command": f"seq 1 1000; exit {n}", "key": f"k{n}"})["run_id"] for n in range(10)]
    seal(home, made)
    http_.read(alive, wait_ms=60_000)
    with traced(pid, tmp_path / "log", calls=CALLS, inject=[f"{CALLS}:signal=KILL:when={when}"]) as trace:
        with contextlib.suppress(OSError, http.client.HTTPException):
            http_.ok("runs.prune", {"keep_bytes": 0})
        until(lambda: not running(pid), "the daemon to be killed")
        trace.wait_end(30)
        assert trace.killed()
    home.start()
    for n, run_id in enumerate(made):
        answer = http_.call("runs.get", {"run_id": run_id})
        if answer["ok"]:
            # Not touched yet: then it is whole.
            assert answer["exit_code"] == n
            assert http_.bytes_of(run_id) == "".join(f"{k}\n" for k in range(1, 1001)).encode()
        else:
            assert (answer["error"], answer["reason"]) == ("gone", "pruned"), answer
            again = http_.call("shell", {"command": f"seq 1 1000; exit {n}", "key": f"k{n}"})
            assert (again["ok"], again["error"]) == (False, "gone"), again
    assert http_.ok("runs.verify")["findings"] == []
    left = {run["run_id"] for run in http_.ok("runs.list", {"limit": 100})["runs"]}
    assert set(http_.ok("runs.prune", {"keep_bytes": 0})["runs"]) == left - {alive}
    assert [run["run_id"] for run in http_.ok("runs.list", {"limit": 100})["runs"]] == [alive]
    assert {file.parents[1].name for file in (home.path / "runs").rglob("*.spool")} == {alive}
    gate.open()
    assert http_.finish(alive)["exit_code"] == 3
    assert http_.bytes_of(alive) == b"one\n"
