"""Plays, as the first process of a pid namespace, how a stranger gets the pid of a dead process of the run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.hostile.marked import Marked
from tests.hostile.watch import SOON_S
from tests.keeper.driver import Keeper

PIDFD_OPEN = "434"  # the same number everywhere; the first argument is the pid


def take(pid: int) -> subprocess.Popen[bytes]:
    """A stranger in a session of its own that has this pid."""
    for _ in range(50):  # somebody else may fork in between
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        stranger = subprocess.Popen(["sleep", "60"], start_new_session=True)
        if stranger.pid == pid:
            return stranger
        stranger.kill()
        stranger.wait()
    raise AssertionError(f"pid {pid} was not to be had")


def wait_for(seen: Callable[[], object], what: str) -> None:
    """For what has no event: the state of a process that is not ours."""
    deadline = time.monotonic() + SOON_S
    while not seen():
        assert time.monotonic() < deadline, what
        time.sleep(0.002)


def after_the_exit(keeper: Keeper, marked: Marked) -> dict[str, object]:
    """The main process is long gone, a daemon of the run is not; the stranger has the main process's pid."""
    started = keeper.start(*marked.argv("daemon", "close"), env=marked.env)
    ended = keeper.wait_fact("ended", SOON_S)
    assert ended["survivors"], ended
    with take(started["pid"]) as stranger:
        signals = [keeper.call("signal", signal="SIGKILL", to=to).get("sent", 0) for to in ("main", "group")]
        assert keeper.call("kill", grace_ms=60)["ok"]
        keeper.wait_fact("survivors_gone", SOON_S)
        told: dict[str, object] = {
            "taken": stranger.pid == started["pid"],
            "survivors_dead": not marked.alive(),
            "stranger_alive": stranger.poll() is None,
            "signals": signals,
        }
        stranger.kill()
    return told


def asked_for(keeper_pid: int, pid: int) -> bool:
    """Whether a thread of the keeper stands at pidfd_open of that pid."""
    calls = [task.read_text().split() for task in Path(f"/proc/{keeper_pid}/task").glob("*/syscall")]
    return any(call[0] == PIDFD_OPEN and int(call[1], 16) == pid for call in calls if len(call) > 1)


def during_the_kill(keeper: Keeper, marked: Marked) -> dict[str, object]:
    """The keeper has seen a process; before it opens a pidfd of it (strace holds it there), the pid is a stranger's."""
    script = 'trap "" TERM; "$@" & echo "child $!"; wait; while :; do sleep 1; done'
    keeper.start("/bin/sh", "-c", script, "sh", *marked.argv("deaf"), env=marked.env)
    keeper.wait_until(lambda _: marked.counts("HERE")["deaf"] and b"child" in keeper.spool(), SOON_S)
    said = re.search(rb"child (\d+)", keeper.spool())
    assert said
    child = int(said[1])
    command = ["strace", "-f", "-q", "-o", "/dev/null", "-e", "trace=pidfd_open"]
    command += ["-e", "inject=pidfd_open:delay_enter=1500000", "-p", str(keeper.pid)]
    tracer = subprocess.Popen(command)
    wait_for(lambda: "TracerPid:\t0" not in Path(f"/proc/{keeper.pid}/status").read_text(), "strace")
    keeper.connection.post("kill", grace_ms=60)
    wait_for(lambda: asked_for(keeper.pid, child), "the keeper never asked for a pidfd of the child")
    assert marked.kill(child)
    wait_for(lambda: not Path(f"/proc/{child}").exists(), "the shell did not reap its child")
    with take(child) as stranger:
        stood_there = asked_for(keeper.pid, child)
        tracer.terminate()  # the rest goes at its own speed
        tracer.wait()
        keeper.wait_fact("ended", SOON_S)
        told: dict[str, object] = {
            "taken": stranger.pid == child and stood_there,
            "survivors_dead": not marked.alive(),
            "stranger_alive": stranger.poll() is None,
            "signals": [],
        }
        stranger.kill()
    return told


def main(scenario: str, programs: str, parent: str) -> int:
    """Plays one scenario and prints what became of everybody."""
    play = {"after_the_exit": after_the_exit, "during_the_kill": during_the_kill}[scenario]
    with (
        tempfile.TemporaryDirectory(prefix="limpet-runs-") as place,
        Marked(Path(programs)) as marked,
        Keeper(Path(place) / "run", cgroup=Path(parent) if parent else None) as keeper,
    ):
        told = play(keeper, marked)
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
