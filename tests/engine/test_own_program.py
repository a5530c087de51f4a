"""A program with an engine of its own: it ends when it is done, and its runs go on without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import asyncio, sys, limpet

async def main():
    async with limpet.open(sys.argv[1]) as engine:
        print((await engine.call("shell", action="spawn", command="exec sleep 1000"))["run_id"])

asyncio.run(main())
"""
KILL = PROGRAM.replace(
    'call("shell", action="spawn", command="exec sleep 1000"))["run_id"]',
    "call_checked('runs.kill', run_id=sys.argv[2]))['status']",
)


@pytest.mark.requirement("6.2", "1.11")
def test_who_reads_what_a_program_says_does_not_wait_for_its_runs(tmp_path: Path) -> None:
    """Its output and errors end with it, though keepers that it started go on."""
    home = str(tmp_path / "home")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, home], capture_output=True, stdin=subprocess.DEVNULL, timeout=60, check=True
    )
    run_id = done.stdout.decode().strip()
    killed = subprocess.run(
        [sys.executable, "-c", KILL, home, run_id],
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=True,
    )
    assert killed.stdout.decode().strip() in ("running", "killed"), killed
