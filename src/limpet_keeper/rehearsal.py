"""A keeper's life, lived by the nursery itself: what each keeper would touch first is then touched, and shared."""

from __future__ import annotations

import gc
import os

from limpet_keeper import lean_json
from limpet_keeper.bare import signal, socket
from limpet_keeper.control import SOCKET_NAME
from limpet_keeper.keeper import Keeper
from limpet_keeper.prepare import announce_ready, let_go, prepare, remove

# The interpreter fits a function to what it meets in it once it was called eight times.
TIMES = 10
# In memory on every Linux: a rehearsal waits for no disk.
STAGE = "/dev/shm"
SCRIPT: tuple[dict[str, object], ...] = (
    {"id": 1, "do": "hello", "protocol": 1, "wake": "state"},
    {
        "id": 2,
        "do": "start",
        "run": "rehearsal",
        "argv": ["/bin/sh", "-c", "echo"],
        "cwd": "/",
        "env": {"PATH": "/bin"},
        "timeout_ms": 1000,
    },
)


def rehearse() -> None:
    """Leaves nothing behind but memory that is good to fork. Where it cannot be done, keepers are only heavier."""
    path = f"{STAGE}/limpet-{os.urandom(8).hex()}"
    lines = b"".join(lean_json.encode(request).encode() + b"\n" for request in SCRIPT)
    try:
        for _ in range(TIMES):
            _live(path, lines)
            gc.collect()
    except OSError:
        pass  # no such stage, no room on it, no process to be had: the first keeper will tell
    signal.set_wakeup_fd(-1)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _live(path: str, lines: bytes) -> None:
    keeper = Keeper()
    prepare(keeper, path, None, 0o077)
    null = os.open(os.devnull, os.O_RDWR)
    announce_ready(keeper, null)
    let_go(null, null)
    client = socket.socket(socket.AF_UNIX)
    client.connect(f"{path}/{SOCKET_NAME}")
    client.send(lines)
    keeper.serve()
    keeper.leave()
    remove(keeper)
    client.close()
