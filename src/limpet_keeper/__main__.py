"""Starts one keeper cold, or the nursery that forks them warm: `python -m limpet_keeper keep DIR | nursery`.

Run by its path with `-I -S` it is leaner: nothing that the machine adds to its Python gets in.
"""

from __future__ import annotations

import os
import sys

if not __package__:
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from limpet_keeper import nursery, system
from limpet_keeper.keeper import Keeper

USAGE = "usage: python -m limpet_keeper (keep DIR | nursery) [--cgroup PARENT]"


def main(arguments: list[str]) -> int:
    cgroup_parent: str | None = None
    if len(arguments) > 2 and arguments[-2] == "--cgroup":
        cgroup_parent = arguments[-1]
        arguments = arguments[:-2]
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    system.reset_signals()
    if len(arguments) == 2 and arguments[0] == "keep":
        # A shell's job leads a group, and so cannot lead a session: its child can.
        if os.getpgrp() == os.getpid() and (child := os.fork()):
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        return 0 if nursery.keep(Keeper(), os.path.abspath(arguments[1]), cgroup_parent, os.umask(0o077)) else 1
    if arguments == ["nursery"]:
        nursery.serve(cgroup_parent)
        return 0
    print(USAGE, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
