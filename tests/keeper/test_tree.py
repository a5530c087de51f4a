"""A process is signalled if it is the one that was found, and not if it has its pid alone."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from limpet_keeper import system
from limpet_keeper.tree import Found, send


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
