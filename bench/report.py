"""Renders the rows of a bench as a table for people and as JSON for whoever compares runs."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.measure import Facts, Row, median, quantile

RESULTS = Path(__file__).parent / "results"


def environment() -> Facts:
    processor = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line for line in processor if line.startswith("model name")), ": unknown")
    return {
        "cores": len(os.sched_getaffinity(0)),
        "cpu": model.split(":", 1)[1].strip(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "load_before": os.getloadavg()[0],
        "at": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "command": sys.argv[1:],
    }


def required(row: Row) -> str:
    parts = [
        *([f">= {row.at_least:g}"] if row.at_least is not None else []),
        *([f"<= {row.at_most:g}"] if row.at_most is not None else []),
    ]
    return " and ".join(parts) + (f" {row.unit}" if parts and row.of_value else "")


def verdict(row: Row) -> str:
    return {None: "", True: "pass", False: "FAIL"}[row.passed]


def figure(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(rows: Sequence[Row]) -> str:
    head = ("", "scenario", "unit", "limit", "limpet", "ratio", "required", "")
    lines: list[tuple[str, ...]] = [head]
    for row in rows:
        limit = figure(median(row.limit)) if row.limit else ""
        ratio = f"{row.ratio:.2f}" if row.ratio is not None else ""
        own = figure(median(row.limpet))
        lines.append((row.scenario, row.what, row.unit, limit, own, ratio, required(row), verdict(row)))
    widths = [max(len(line[place]) for line in lines) for place in range(len(head))]
    told = [
        "  ".join(
            cell.rjust(width) if 3 <= place <= 5 else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    for place in range(len(rows), 0, -1):
        told[place + 1 : place + 1] = beside(rows[place - 1])
    return "\n".join(told)


def beside(row: Row) -> list[str]:
    """What peers took, the least first; then who is missing, and why."""
    known = sorted(row.peers.items(), key=lambda peer: median(peer[1]))
    lines = [
        f"    {name}: {figure(median(values))} {row.unit}, p99 {figure(quantile(values, 0.99))}"
        for name, values in known
    ]
    return [*lines, *(f"    {name}: none: {why}" for name, why in row.missing.items())]


def as_json(environment: Facts, rows: Sequence[Row]) -> str:
    told = [
        {
            "scenario": row.scenario,
            "what": row.what,
            "unit": row.unit,
            "limit": median(row.limit) if row.limit else None,
            "limpet": median(row.limpet),
            "ratio": row.ratio,
            "at_least": row.at_least,
            "at_most": row.at_most,
            "bounds": "value" if row.of_value else "ratio",
            "passed": row.passed,
            "limit_values": row.limit,
            "limpet_values": row.limpet,
            "facts": row.facts,
            "peers": row.peers,
            "missing": row.missing,
        }
        for row in rows
    ]
    return json.dumps({"environment": environment, "rows": told}, indent=1) + "\n"


def save(text: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
