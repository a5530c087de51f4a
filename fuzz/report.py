"""The figures as a line, and as docs/reports/fuzz.md: `python -m fuzz.report RESULTS.json ... [--note TEXT]`."""

from __future__ import annotations

import argparse
import base64
import datetime as dt
import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reports" / "fuzz.md"
# An input as short as this is shown; longer ones are named by their size.
SHOWN_BYTES = 120

HEAD = """# Fuzzing

Figures of the longest recorded runs of `fuzz/`; `make fuzz` takes a minute. What each target asserts stands in its file
under `fuzz/targets/`; what was found is replayed by `tests/formats/test_found.py`. An input that takes more than 100 ms
of processor time is a finding.

| target | inputs | executions | seconds | CPU seconds | slowest sound input | kinds of findings |
|---|---|---|---|---|---|---|
"""


def kind(result: dict[str, Any]) -> str:
    return "guided" if result["guided"] else "plain random"


def line(result: dict[str, Any]) -> str:
    return (
        f"{result['target']}: {result['executions']} executions in {result['seconds']} s ({kind(result)}), "
        f"slowest {result['slowest_ms']} ms, {len(result['findings'])} findings"
    )


def page(results: Sequence[dict[str, Any]], where: str) -> str:
    rows = [
        f"| {result['target']} | {kind(result)} | {result['executions']:,} | {result['seconds']:.0f} "
        f"| {result['cpu_seconds']:.0f} | {result['slowest_ms']} ms | {len(result['findings'])} |\n"
        for result in results
    ]
    total = f"\n{sum(result['executions'] for result in results):,} executions in all. {where}\n"
    found = [finding(result["target"], each) for result in results for each in result["findings"]]
    told = "".join(found) if found else "None in these runs.\n"
    return HEAD + "".join(rows) + total + "\n## Findings of these runs\n\n" + told


def finding(target: str, found: dict[str, Any]) -> str:
    saved = Path(found["input"])
    data = saved.read_bytes() if saved.is_file() and found["bytes"] <= SHOWN_BYTES else b""
    shown = f"; input (base64): `{base64.b64encode(data).decode()}`" if data else ""
    message = found["message"].replace("\n", " ").replace("`", "'")
    return f"- {target}: {found['sign']}, {found['times']:,} times: `{message}`; {found['bytes']} bytes{shown}\n"


def write(results: Sequence[dict[str, Any]], note: str = "") -> None:
    today = dt.datetime.now(tz=dt.UTC).date()
    where = (
        f"{today}, CPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores. {note}".strip()
    )
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    PAGE.write_text(page(results, where), "utf-8")


def read(paths: Sequence[str]) -> list[dict[str, Any]]:
    """The results of one target, or of several, in each file."""
    results: list[dict[str, Any]] = []
    for path in paths:
        told: Any = json.loads(Path(path).read_text("utf-8"))
        results += told if type(told) is list else [told]
    return results


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m fuzz.report", description=__doc__)
    parser.add_argument("results", nargs="+", metavar="RESULTS.json")
    parser.add_argument("--note", default="", help="how they were run")
    options = parser.parse_args()
    write(read(options.results), options.note)
