"""What a simulation can see: the engine and the store change files, and ask for the time, through their seams alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).resolve().parents[2] / "src" / "limpet"
CHANGES = {"rename", "unlink", "rmtree", "mkdir", "fsync", "fdatasync", "pwrite", "ftruncate", "write_bytes"}
TIMES = {"time_ns", "monotonic", "monotonic_ns", "urandom"}
# What a history goes through; other parts keep files and clocks of their own.
CHANGING = (
    "engine/adoption",
    "engine/recovery",
    "engine/live_run",
    "engine/nursery",
    "engine/retention",
    "engine/starting",
)
FILES = ("store/journals", "store/run_directory", "engine/durable")


def calls(path: Path, names: set[str]) -> list[str]:
    """Where a function of such a name is called on anything but the seam."""
    found: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names:
            on = node.func.value
            if not (isinstance(on, ast.Name) and on.id in ("disk", "clock")):
                found.append(f"{path.relative_to(SRC)}:{node.lineno}: {node.func.attr}")
    return found


@pytest.mark.parametrize("name", [*CHANGING, *FILES])
def test_changes_go_through_the_disk(name: str) -> None:
    assert calls(SRC / f"{name}.py", CHANGES) == []


@pytest.mark.parametrize("name", CHANGING)
def test_the_engine_asks_its_clock(name: str) -> None:
    assert calls(SRC / f"{name}.py", TIMES) == []


def test_a_way_around_is_found() -> None:
    planted = SRC / "engine" / "live_run.py"
    assert calls(planted, {"now_ms"}) == []
    assert calls(planted, {"read_new"}) != []
