"""Reads a recorded run's directory with the product's own readers, as the daemon would after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from limpet.dialects.runs.types import describe
from limpet.engine.live_run import LiveRun
from limpet.model.run import Run
from limpet.store.blobs import spool_name
from limpet.store.memory_blobs import MemoryBlobs
from limpet.store.run_directory import RunDirectory

GOLDEN = Path(__file__).resolve().parent / "golden"
MANIFEST = "SHA256"


def recall(directory: Path) -> Run:
    """The run as its two journals tell it."""
    live = LiveRun(Run(run_id=directory.name), RunDirectory(directory), lambda _live, _items: None)
    try:
        live.recall()
        return live.run
    finally:
        live.detach()


def spools(directory: Path) -> MemoryBlobs:
    """Its spools, under the names that they have in a home."""
    blobs = MemoryBlobs()
    for path in directory.glob("*/*.spool"):
        blobs.write(spool_name(directory.name, int(path.parent.name), path.stem), 0, path.read_bytes())
    return blobs


def public_state(directory: Path) -> dict[str, Any]:
    """What `runs.get` would say of it, but for the words of an error, which may become better ones."""
    run = recall(directory)
    named: dict[str, Any] = msgspec.to_builtins(describe(run))
    named["error_message"] = named["error_message"] is not None
    return named | {"argv": run.argv, "env": run.env, "key": run.key, "timeout_ms": run.timeout_ms}
