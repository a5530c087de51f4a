"""Starts the daemon of a home, once however many try, and returns when it is ready."""

import asyncio
import fcntl
import json
import os
import socket
import subprocess
import sys
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from limpet.client.home import make_home, socket_of
from limpet.model.errors import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

READY_S: Final = 30.0
_LINE_MAX_BYTES: Final = 64 * 1024


async def start(home: str, *, ready_s: float = READY_S) -> None:
    """Returns once a daemon listens for this home: one that was there, another starter's, or our own.

    Refused with reason `home_held` when another process has the home but does not listen: it stops, or just starts.
    """
    path = socket_of(home)
    make_home(home)
    async with _only_starter(home):
        if is_listening(path):
            return
        said = await _spawn(home, ready_s)
    if said.get("event") != "ready":
        known = {name: value for name, value in said.items() if name in ("reason", "pid", "field")}
        raise Refusal(str(said.get("error", "unavailable")), str(said.get("message", said)), **known)


def is_listening(path: str) -> bool:
    """Whether somebody takes connections there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


@asynccontextmanager
async def _only_starter(home: str) -> "AsyncGenerator[None]":
    """A file lock among starters. A thread waits for it: asyncio has no lock between processes."""
    loop = asyncio.get_running_loop()
    held: asyncio.Future[None] = loop.create_future()
    descriptor = os.open(f"{home}/start.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    given_up = False

    def settle() -> None:
        if given_up:
            os.close(descriptor)
        elif not held.done():
            held.set_result(None)

    def wait() -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            loop.call_soon_threadsafe(settle)
        except RuntimeError:  # the loop has closed: nobody waits any more
            os.close(descriptor)

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        held.set_result(None)
    except BlockingIOError:
        threading.Thread(target=wait, name="limpet-start", daemon=True).start()
    try:
        await held
    except asyncio.CancelledError:
        given_up = True
        if held.done() and not held.cancelled():
            os.close(descriptor)
        raise
    try:
        yield
    finally:
        os.close(descriptor)


async def _spawn(home: str, ready_s: float) -> dict[str, Any]:
    """Runs `limpet serve` apart from us (own session, own parent) and reads the first line that it says."""
    log = os.open(f"{home}/daemon.log", os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    said_before = os.fstat(log).st_size
    ours, theirs = os.pipe()
    try:
        launcher = subprocess.Popen(  # noqa: ASYNC220  (it blocks for the two ms that a vfork takes)
            # -P: nothing in anybody's working directory becomes a module of the daemon
            [sys.executable, "-P", "-m", "limpet", "serve", "--home", home, "--ready-json", "--detach"],
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=log,
            cwd="/",
            start_new_session=True,
        )
    except BaseException:
        os.close(ours)
        os.close(log)
        raise
    finally:
        os.close(theirs)
    try:
        line = await asyncio.wait_for(_first_line(ours), ready_s)
    except TimeoutError:
        message = f"the daemon was not ready within {ready_s:g} s: see {home}/daemon.log"
        raise Refusal("unavailable", message, reason="not_ready") from None
    else:
        complaint = os.pread(log, _LINE_MAX_BYTES, said_before).decode(errors="replace").rstrip().rpartition("\n")[2]
    finally:
        os.close(ours)
        os.close(log)
        await asyncio.to_thread(launcher.wait)  # it ends as soon as it has forked the daemon
    try:
        said: Any = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        complaint = complaint.removeprefix("limpet: ") or f"the daemon did not start: see {home}/daemon.log"
        # the contract's words: a daemon of any version says them
        raise Refusal("unavailable", complaint, reason="home_held" if "held by pid" in complaint else "not_started")
    return said  # pyright: ignore[reportUnknownVariableType]


async def _first_line(descriptor: int) -> bytes:
    """Up to the first newline, or what there was at the end."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[bytes] = loop.create_future()
    got = bytearray()

    def readable() -> None:
        try:
            data = os.read(descriptor, 4096)
        except BlockingIOError:
            return
        got.extend(data)
        if not done.done() and (not data or b"\n" in data or len(got) > _LINE_MAX_BYTES):
            done.set_result(bytes(got).partition(b"\n")[0])

    os.set_blocking(descriptor, False)
    loop.add_reader(descriptor, readable)
    try:
        return await done
    finally:
        loop.remove_reader(descriptor)
