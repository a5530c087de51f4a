"""The nursery: a small warm process that forks keepers on demand, and may die freely."""

from __future__ import annotations

import gc
import os
from os import setsid  # called once: a look into `os` would cost more memory than the call

from limpet_keeper import lean_json
from limpet_keeper.bare import signal
from limpet_keeper.keeper import Keeper
from limpet_keeper.packing import fill_gaps
from limpet_keeper.prepare import announce, announce_ready, let_go, prepare, remove
from limpet_keeper.rehearsal import rehearse
from limpet_keeper.system import BY_DEFAULT, CHILD_ENDED, IGNORED, NOTHING, become_subreaper, error_name, handle


def keep(keeper: Keeper, path: str, cgroup_parent: str | None, umask: int) -> bool:
    """The life of one keeper: ready, announced on stdout, serving, gone. False when it could not be made ready."""
    setsid()
    handle(IGNORED, NOTHING)
    become_subreaper()
    try:
        prepare(keeper, path, cgroup_parent, umask)
    except OSError as error:
        refusal = {"failed": path, "errno": error_name(error), "message": os.strerror(error.errno or 0)}
        announce(refusal, 1)
        return False
    try:
        announce_ready(keeper, 1)
        let_go(0, 1)
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
        remove(keeper)


def serve(cgroup_parent: str | None) -> None:
    """Forks a keeper for each line on stdin, until its end."""
    umask = os.umask(0o077)
    rehearse()
    handle((signal.SIGCHLD, signal.SIGINT, signal.SIGHUP), NOTHING)
    # What is alive now is shared by all keepers: the collector must not touch, and so copy, it.
    gc.collect()
    fill_gaps()
    keeper = Keeper()
    gc.freeze()
    unread = b""
    while data := os.read(0, 65536):
        *lines, unread = (unread + data).split(b"\n")
        for line in lines:
            path = lean_json.decode(line)["prepare"]
            try:
                child = os.fork()
            except OSError as error:
                announce({"failed": path, "errno": error_name(error), "message": os.strerror(error.errno or 0)}, 1)
                continue
            if child == 0:
                _be_keeper(keeper, path, cgroup_parent, umask)


def _be_keeper(keeper: Keeper, path: str, cgroup_parent: str | None, umask: int) -> None:
    code = 1
    try:
        handle(CHILD_ENDED, BY_DEFAULT)
        keep(keeper, path, cgroup_parent, umask)
        code = 0
    finally:
        if code:
            import traceback  # its last words go to the log of whoever started the nursery

            traceback.print_exc()
        os._exit(code)
