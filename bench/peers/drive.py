"""`python -m bench.peers.drive MODULE SCRATCH`: drives one peer, a line of JSON in for each line out."""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from pathlib import Path
from typing import Any, Protocol

from bench.peers import CannotError


class Peer(Protocol):
    """What a driver's module makes; each method answers with figures by name, or raises `CannotError`."""

    def echo(self, count: int) -> dict[str, Any]: ...
    def marker(self, count: int, size_bytes: int, program: str, *, pty: bool) -> dict[str, Any]: ...
    def crowd(self, count: int, command: str, expected_bytes: int) -> dict[str, Any]: ...
    def close(self) -> None: ...


def main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a peer prints must not stand between the answers
    try:
        peer: Peer | None = importlib.import_module(f"bench.peers.{sys.argv[1]}").make(Path(sys.argv[2]))
        why = ""
    except Exception as error:  # noqa: BLE001 - one peer that does not come up is named, and the others are measured
        peer, why = None, f"it does not start: {error!r}"
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            told = {"missing": why} if peer is None else getattr(peer, asked.pop("do"))(**asked)
        except CannotError as cannot:
            told = {"missing": str(cannot)}
        except Exception as error:  # noqa: BLE001
            traceback.print_exc()
            told = {"missing": f"it failed: {error!r}"[:300]}
        print(json.dumps(told), file=out, flush=True)
    if peer is not None:
        peer.close()


if __name__ == "__main__":
    main()
