"""The figures as a line and as a page: docs/reports/fuzz.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reports" / "fuzz.md"


def line(result: dict[str, Any]) -> str:
    kind = "guided" if result["guided"] else "plain random"
    return (
        f"{result['target']}: {result['executions']} executions in {result['seconds']} s ({kind}), "
        f"slowest {result['slowest_ms']} ms, {len(result['findings'])} findings"
    )


def write(results: list[dict[str, Any]]) -> None:
    raise NotImplementedError
