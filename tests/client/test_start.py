"""A daemon that is not running is started: once, apart from its starter, or not at all and then with the reason."""

import asyncio
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

import limpet
from limpet.client.start import is_listening


@pytest.fixture
def home() -> Iterator[Path]:
    """A short path that a socket can have, and no daemon left behind."""
    with tempfile.TemporaryDirectory(prefix="lmp", dir="/tmp") as base:
        path = Path(base) / "h"
        yield path
        stop = [sys.executable, "-m", "limpet", "stop"]
        done = subprocess.run(stop, env={**os.environ, "LIMPET_HOME": str(path)}, capture_output=True, check=False)
        assert done.returncode == 0, done


@pytest.mark.requirement("6.1")
def test_starters_at_once_get_one_daemon(home: Path) -> None:
    async def scenario() -> int:
        async with AsyncExitStack() as stack:
            clients = [limpet.connect(home) for _ in range(5)]
            await asyncio.gather(*(stack.enter_async_context(client) for client in clients))
            (pid,) = {(await client.call_checked("daemon.status"))["pid"] for client in clients}
            return pid

    pid = asyncio.run(asyncio.wait_for(scenario(), 100))
    parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    assert parent != os.getpid()
    assert os.getsid(pid) != os.getsid(0)
    assert Path(f"/proc/{pid}/cwd").readlink() == Path("/")


@pytest.mark.requirement("6.1", "6.2")
def test_a_killed_daemon_is_replaced(home: Path) -> None:
    """Injector: SIGKILL to the daemon."""

    async def scenario() -> None:
        async with limpet.connect(home) as client:
            pid = (await client.call_checked("daemon.status"))["pid"]
            process = os.pidfd_open(pid)
            os.kill(pid, 9)
            await asyncio.to_thread(select.select, [process], [], [], 20)
            os.close(process)
            assert (await client.call_checked("daemon.status"))["pid"] != pid

    asyncio.run(asyncio.wait_for(scenario(), 100))


@pytest.mark.requirement("6.1")
def test_a_daemon_that_cannot_start_says_why(home: Path) -> None:
    home.mkdir(mode=0o700)
    (home / "config.toml").write_text("[run]\nkill_grace_ms = 'soon'\n")

    async def scenario() -> None:
        with pytest.raises(limpet.LimpetError) as raised:
            async with limpet.connect(home):
                raise AssertionError("there is no daemon")
        assert "kill_grace_ms" in raised.value.message, raised.value

    asyncio.run(asyncio.wait_for(scenario(), 100))
    assert not is_listening(str(home / "daemon.sock"))


@pytest.mark.requirement("6.1")
def test_a_home_that_another_has_just_taken_is_waited_for(home: Path) -> None:
    """Injector: a process that holds the home's lock without listening, and lets go when it is told to."""
    home.mkdir(mode=0o700)
    holder = (
        "import fcntl, os, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, fcntl.LOCK_EX);"
        "f.write(f'{os.getpid()}\\n'); f.flush(); print(); sys.stdin.read()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", holder, str(home / "daemon.lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()

        async def scenario() -> None:
            finding = asyncio.ensure_future(limpet.connect(home).__aenter__())
            await asyncio.to_thread(until_one_was_turned_away, home)
            assert not finding.done()
            process.communicate()
            client = await finding
            assert (await client.call_checked("daemon.status"))["home"] == str(home)
            await client.__aexit__(None, None, None)

        asyncio.run(asyncio.wait_for(scenario(), 100))


def until_one_was_turned_away(home: Path) -> None:
    """Its log alone tells; nothing wakes anybody."""
    log = home / "daemon.log"
    deadline = time.monotonic() + 60
    while not (log.exists() and "held by pid" in log.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
