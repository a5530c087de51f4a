"""The injectors themselves: each hostile program is as hard to kill as it claims, and none outlives its fuse."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.hostile.marked import Marked
from tests.hostile.trees import TREES, Tree
from tests.hostile.watch import SOON_S, arrived


def wait_arrived(marked: Marked, tree: Tree, process: subprocess.Popen[bytes]) -> None:
    """Reads the words of the processes until all are in place."""
    assert process.stdout is not None
    deadline = time.monotonic() + SOON_S
    while not arrived(marked, tree):
        assert time.monotonic() < deadline
        assert process.stdout.readline()


@contextmanager
def launch(marked: Marked, tree: Tree) -> Generator[subprocess.Popen[bytes]]:
    """The tree below a process that reaps what it leaves: init may take its time, and the dead count as processes."""
    argv = [str(marked.programs / "reaper"), *marked.argv(tree.program, *tree.options)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=marked.env) as process:
        try:
            yield process
        finally:
            marked.sweep()


def living(marked: Marked, reaper: int) -> list[int]:
    return [left.pid for left in marked.left() if left.state != "Z" and left.pid != reaper]


@pytest.mark.requirement("F36")
def test_a_hydra_survives_a_naive_killer(hostile: Path) -> None:
    """Eight of eight heads killed one by one: nine and more are left, and never more than it may have."""
    tree = TREES["hydra"]
    with Marked(hostile) as marked, launch(marked, tree) as process:
        wait_arrived(marked, tree, process)
        killed = 0
        while killed < 8:
            killed += marked.kill(living(marked, process.pid)[0])
        deadline = time.monotonic() + SOON_S
        while not 9 <= (heads := len(living(marked, process.pid))) <= 32:
            assert time.monotonic() < deadline, heads


@pytest.mark.requirement("F36")
def test_a_chain_is_never_one_process_for_long(hostile: Path) -> None:
    """Looked at until it was seen under four pids: it lives all the while, and its main process stands aside."""
    tree = TREES["chain-sessions"]
    with Marked(hostile) as marked, launch(marked, tree) as process:
        wait_arrived(marked, tree, process)
        [main] = [pid for _, pid in marked.said("HERE", "tree")]
        seen: set[int] = set()
        deadline = time.monotonic() + SOON_S
        while len(seen) < 4:
            assert time.monotonic() < deadline, seen
            seen |= set(living(marked, process.pid)) - {main}
            assert marked.alive()


@pytest.mark.requirement("F39")
def test_a_stopped_one_is_stopped(hostile: Path) -> None:
    """Three times continued, and stopped again; TERM reaches it and changes nothing."""
    argv = TREES["stopped"]
    with (
        Marked(hostile) as marked,
        subprocess.Popen(marked.argv(argv.program), stdout=subprocess.DEVNULL, env=marked.env) as process,
    ):
        for _ in range(3):
            assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
        assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])
        assert marked.counts("CONT")["stopped"] == 3
        assert marked.counts("TERM")["stopped"] == 3
        process.kill()


@pytest.mark.requirement("F36")
def test_every_fuse_ends_its_program(hostile: Path) -> None:
    """All trees at once, with fuses of four seconds: nobody kills them, and nothing is left."""
    with ExitStack() as stack:
        trees = [(stack.enter_context(Marked(hostile, life_s=4)), tree) for tree in TREES.values()]
        processes = [stack.enter_context(launch(marked, tree)) for marked, tree in trees]
        assert all(marked.wait_dead(SOON_S) for marked, _ in trees), [marked.left() for marked, _ in trees]
        assert [process.wait(SOON_S) for process in processes] == [0] * len(processes)
        assert [tree for marked, tree in trees if not arrived(marked, tree)] == []
