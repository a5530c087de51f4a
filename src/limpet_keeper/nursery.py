"""The nursery: a small warm process that forks keepers on demand, and may die freely."""

from __future__ import annotations

import gc
import os

from limpet_keeper import lean_json, system
from limpet_keeper.bare import signal
from limpet_keeper.prepare import prepare, remove

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from limpet_keeper.keeper import Keeper


def keep(path: str, cgroup_parent: str | None, umask: int) -> bool:
    """The life of one keeper: ready, announced on stdout, serving, gone. False when it could not be made ready."""
    os.setsid()
    try:
        keeper = prepare(path, cgroup_parent, umask)
    except OSError as error:
        refusal = {"failed": path, "errno": system.error_name(error), "message": os.strerror(error.errno or 0)}
        _announce(refusal)
        return False
    try:
        _announce({"ready": path, "pid": os.getpid()})
        _let_go_of_stdio()
        keeper.serve()
    except BrokenPipeError:
        pass  # whoever wanted a keeper is gone
    finally:
        _leave(keeper)
    return True


def _leave(keeper: Keeper) -> None:
    unclaimed = keeper.run is None
    if unclaimed:
        keeper.launcher.abandon()
    keeper.leave()
    if unclaimed:
        remove(keeper.path, keeper.directory_fd)


def _announce(message: Mapping[str, object]) -> None:
    # One write of less than a pipe takes at once: lines of keepers do not mix.
    os.write(1, lean_json.encode(message).encode() + b"\n")


def _let_go_of_stdio() -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    os.close(null)


def serve(cgroup_parent: str | None) -> None:
    """Forks a keeper for each line on stdin, until its end."""
    umask = os.umask(0o077)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for number in (signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # What is alive now is shared by all keepers: the collector must not touch, and so copy, it.
    gc.collect()
    gc.freeze()
    unread = b""
    while data := os.read(0, 65536):
        *lines, unread = (unread + data).split(b"\n")
        for line in lines:
            path = lean_json.decode(line)["prepare"]
            try:
                child = os.fork()
            except OSError as error:
                _announce({"failed": path, "errno": system.error_name(error), "message": os.strerror(error.errno or 0)})
                continue
            if child == 0:
                _be_keeper(path, cgroup_parent, umask)


def _be_keeper(path: str, cgroup_parent: str | None, umask: int) -> None:
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        keep(path, cgroup_parent, umask)
        code = 0
    finally:
        if code:
            import traceback  # its last words go to the log of whoever started the nursery

            traceback.print_exc()
        os._exit(code)
