"""Whether a process of a run listens on a TCP port: by the kernel's tables, in whatever network namespace it is."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from limpet.model.facts import Witness
from limpet_keeper import system
from limpet_keeper.tree import descendants

_LISTENS: Final = b"0A"


def listens(keeper: Witness, port: int) -> bool:
    """Whether something below the keeper has that port open. Never of a process that took a keeper's number."""
    if system.start_time(keeper.pid) != keeper.start_time:
        return False
    by_namespace: dict[int, set[str]] = {}
    for pid in descendants(keeper.pid):
        try:
            namespace = Path(f"/proc/{pid}/ns/net").stat().st_ino
            if namespace not in by_namespace:
                by_namespace[namespace] = set(_listening(pid, port))
            inodes = by_namespace[namespace]
            if inodes and any(link in inodes for link in _open_sockets(pid)):
                return True
        except OSError:
            continue  # it has ended, or is not ours to look at
    return False


def _listening(pid: int, port: int) -> Iterator[str]:
    """The names of all sockets that listen there in the process's network, as its descriptors show them."""
    end = b":%04X" % port
    for table in ("tcp", "tcp6"):
        try:
            with open(f"/proc/{pid}/net/{table}", "rb") as rows:
                for row in rows:
                    fields = row.split(None, 10)
                    if len(fields) > 9 and fields[3] == _LISTENS and fields[1].endswith(end):
                        yield f"socket:[{fields[9].decode()}]"
        except FileNotFoundError:
            continue  # a kernel without IPv6


def _open_sockets(pid: int) -> Iterator[str]:
    for path in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):  # closed meanwhile
            yield str(path.readlink())
