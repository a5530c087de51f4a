"""A pytest plugin that writes down which collected test proves which requirement; it runs in a collecting process."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

MARKS_FILE = "LIMPET_MARKS_FILE"


def pytest_collection_finish(session: pytest.Session) -> None:
    """Marks of functions, classes, modules and parameters alike, as pytest itself gathers them for each test."""
    proofs: list[dict[str, Any]] = []
    for item in session.items:
        # a test that is always skipped, or expected to fail, proves nothing
        idle = any(item.get_closest_marker(name) for name in ("skip", "xfail"))
        for mark in item.iter_markers("requirement"):
            ids = [number if isinstance(number, str) else None for number in mark.args]
            proofs += [{"test": item.nodeid, "ids": ids, "idle": idle}]
    Path(os.environ[MARKS_FILE]).write_text(json.dumps(proofs), "utf-8")
