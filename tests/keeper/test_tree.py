"""A process is signalled if it is the one that was found and may be signalled; who may not is named."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from limpet_keeper import system
from limpet_keeper.tree import Found, send
from tests.keeper.driver import Keeper


@pytest.mark.requirement("1.6")
def test_who_has_the_pid_of_one_that_was_found_is_left_alone() -> None:
    with subprocess.Popen(["sleep", "1000"]) as process:
        start_time = system.start_time(process.pid)
        assert start_time is not None
        try:
            assert not send(Found(process.pid, os.getpid(), start_time - 1), signal.SIGKILL)
            assert process.poll() is None
            assert send(Found(process.pid, os.getpid(), start_time), signal.SIGKILL)
            assert process.wait(30) == -signal.SIGKILL
        finally:
            process.kill()


@pytest.mark.requirement("1.6", "F40")
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="it takes root to give a right up")
def test_who_may_not_be_signalled_is_named(tmp_path: Path) -> None:
    """Injector: a keeper without CAP_KILL, and a child of another user: EPERM. What may be signalled is ended."""
    with Keeper(tmp_path / "run", prefix=["setpriv", "--bounding-set=-kill"]) as keeper:
        nobody = "setpriv --reuid=65534 --regid=65534 --clear-groups sleep 1000"
        assert keeper.sh(f"{nobody} & echo $!; sleep 1000 & echo $!; wait")["ok"]
        while keeper.spool().count(b"\n") < 2:
            time.sleep(0.01)
        theirs, ours = (int(line) for line in keeper.spool().split())
        try:
            while Path(f"/proc/{theirs}").stat().st_uid != 65534:
                time.sleep(0.01)
            assert keeper.call("kill", grace_ms=200)["ok"]
            ended = keeper.wait_fact("ended")
            assert (ended["by"], ended["survivors"], ended["cannot_signal"]) == ("kill", [theirs], [theirs])
            assert not Path(f"/proc/{ours}").exists()
        finally:
            os.kill(theirs, signal.SIGKILL)
        keeper.wait_gone()
