"""Limits where nothing may be made and little may be asked for: what is told to one who is not root."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from limpet.config import RunConfig
from limpet.engine.limits import limits_of


def test_what_is_asked_for_stands_above_the_configuration() -> None:
    config = RunConfig(limit_pids=7, limit_cpu_secs=60)
    assert limits_of({}, config) == {"pids": 7, "cpu_secs": 60}
    assert limits_of({"pids": 100, "memory_bytes": 1}, config) == {"pids": 100, "cpu_secs": 60, "memory_bytes": 1}
    assert limits_of({}, RunConfig()) == {}


@pytest.mark.requirement("0.14")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_who_may_make_no_group_is_told_so() -> None:
    """Injector: another uid, which no cgroup is delegated to, under a hard limit of 50 CPU seconds."""
    # Python itself may lie where only root may read: it becomes another when it has all that it needs.
    script = (
        "import os, resource\n"
        "from limpet.engine.limits import Limits\n"
        "limits = Limits('/')\n"
        "resource.setrlimit(resource.RLIMIT_CPU, (50, 50))\n"
        "os.setgroups([])\n"
        "os.setresgid(65534, 65534, 65534)\n"
        "os.setresuid(65534, 65534, 65534)\n"
        "for name, most in (('memory_bytes', 1), ('pids', 1), ('cpu_secs', 49), ('cpu_secs', 50)):\n"
        "    print(limits.why_not(name, most))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, timeout=60)
    memory, pids, short, long = done.stdout.decode().splitlines()
    for why in (memory, pids):
        assert "denied" in why or "no cgroup hierarchy" in why, done
    assert short == "None"
    assert "hard limit of this user is 50" in long, done
