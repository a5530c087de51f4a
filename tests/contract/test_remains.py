"""What is left of a lost run and cannot be ended is named, and no second attempt is started beside it (1.11)."""

import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile.cgroups import group, hierarchy

from .fifos import Lifeline
from .home import Home, running, until
from .remains import kill_keeper
from .surface import Http

NewHome = Callable[..., Home]


@pytest.fixture
def freezer() -> Iterator[Path]:
    mount = hierarchy("freezer")
    if mount is None:
        pytest.skip("no cgroup v1 freezer that may be written: nothing else holds a process against SIGKILL here")
    with group(mount) as path:
        yield path


@contextmanager
def held(freezer: Path, pid: int) -> Generator[None]:
    """A process that the kernel does not let go, whoever kills it; let go, and killed, at the end."""
    (freezer / "cgroup.procs").write_text(str(pid))
    (freezer / "freezer.state").write_text("FROZEN")
    try:
        until(lambda: (freezer / "freezer.state").read_text().strip() == "FROZEN", "the process to freeze")
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        (freezer / "freezer.state").write_text("THAWED")
        until(lambda: not running(pid), "the process to be gone")


@pytest.mark.requirement("1.11", "0.8", "F05")
def test_a_survivor_of_a_lost_keeper_is_named(new_home: NewHome, lifeline: Lifeline, freezer: Path) -> None:
    """Injector: SIGKILL to the keeper of a command that a v1 freezer holds."""
    home = new_home()
    home.start()
    http = Http(home)
    run_id = http.spawn(lifeline.hold + "echo said; exec sleep 1000")
    pid = int(lifeline.word())
    http.read(run_id, wait_ms=60_000)
    with held(freezer, pid):
        at = kill_keeper(home, run_id)
        facts = http.finish(run_id)
        assert time.monotonic() - at < 3, "1 s by the contract; the rest is for a loaded machine"
        assert (facts["status"], facts["ended_by"], facts["survivors"]) == ("failed", "lost", [pid]), facts
        assert running(pid)
        assert http.bytes_of(run_id) == b"said\n"


@pytest.mark.requirement("1.11", "1.6")
def test_a_run_whose_remains_stay_is_not_started_again(
    new_home: NewHome, lifeline: Lifeline, freezer: Path, tmp_path: Path
) -> None:
    """Injector: SIGKILL to daemon and keeper of a command that a v1 freezer holds; then a new daemon."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn(f"echo started >>'{tmp_path}/starts'; " + lifeline.hold + "exec sleep 1000")
    pid = int(lifeline.word())
    with held(freezer, pid):
        home.kill_daemon()
        kill_keeper(home, run_id)
        home.start()
        http = Http(home)
        facts = http.finish(run_id, 20_000)
        assert (facts["status"], facts["ended_by"], facts["survivors"]) == ("failed", "lost", [pid]), facts
        assert facts["attempt"] == 1
        # Others are served all the while.
        assert http.ok("shell", {"command": "echo on"})["stdout"] == "on\n"
        home.kill_daemon()
        home.start()
        assert Http(home).facts(run_id)["status"] == "failed"
    assert (tmp_path / "starts").read_text() == "started\n"
