"""`python -m prove [PROOF ...] [--scale 0.1]`: the long proofs, each with its report in docs/reports/prove.md."""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import re
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from prove import (
    daemon_kills,
    daemon_sweep,
    disk_full_cycles,
    full_speed,
    gate_matrix,
    histories,
    hostile_trees,
    keeper_kills,
    keepers_lost,
    mcp_clients,
    mutations,
    planted_damage,
    power_cuts,
    soak,
    store_lost,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reports" / "prove.md"
HEAD = """# Long proofs

What the tests show in short, over many rounds: `make prove`, or `python -m prove NAME`. Each block is the report of the
last whole run of that proof; a violation is reported as such, and makes the command fail.
"""
BLOCK = re.compile(r"^(## (\w+)\n.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
# name -> the proof, and how many rounds make it whole
PROOFS: dict[str, tuple[Callable[[int], str], int]] = {
    "daemon_kills": (daemon_kills.prove, 1000),
    "keeper_kills": (keeper_kills.prove, 300),
    "daemon_sweep": (daemon_sweep.prove, 1000),
    "keepers_lost": (keepers_lost.prove, 300),
    "hostile_trees": (hostile_trees.prove, 1000),
    "disk_full_cycles": (disk_full_cycles.prove, 500),
    "store_lost": (store_lost.prove, 1000),
    "planted_damage": (planted_damage.prove, 10_000),
    "power_cuts": (power_cuts.prove, 200),
    "soak": (soak.prove, 600),
    "full_speed": (full_speed.prove, 1024),
    "gate_matrix": (gate_matrix.prove, 20_000),
    "histories": (histories.prove, 50_000),
    "mcp_clients": (mcp_clients.prove, 1),
    "mutations": (mutations.prove, len(mutations.breaks())),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m prove", description=__doc__)
    parser.add_argument("proofs", nargs="*", metavar="PROOF", help=f"of {', '.join(PROOFS)}; all unless given")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the rounds; below 1 no report is written")
    asked = parser.parse_args()
    names: list[str] = asked.proofs or list(PROOFS)
    if unknown := [name for name in names if name not in PROOFS]:
        parser.error(f"no such proof: {', '.join(unknown)}")
    violated = [name for name in names if not one(name, asked.scale)]
    for name in violated:
        print("VIOLATED:", name)
    return 1 if violated else 0


def one(name: str, scale: float) -> bool:
    """Runs one proof; whether it held."""
    prove, rounds = PROOFS[name]
    print(f"== {name}", flush=True)
    began = time.monotonic()
    try:
        report, held = prove(max(1, round(rounds * scale))), True
    except AssertionError as violation:
        traceback.print_exc()
        report, held = f"VIOLATED: {violation}", False
    report += f"\n{time.monotonic() - began:.0f} s"
    print(report, flush=True)
    if scale >= 1:
        write(name, report)
    return held


def write(name: str, report: str) -> None:
    """Puts the report in its place on the page; the others stay."""
    today = dt.datetime.now(tz=dt.UTC).date()
    where = f"{today}, {os.cpu_count()} cores, Linux {platform.release()}, CPython {platform.python_version()}"
    block = f"## {name}\n\n{where}\n\n```text\n{report}\n```\n"
    known = PAGE.read_text("utf-8") if PAGE.exists() else HEAD
    PAGE.parent.mkdir(parents=True, exist_ok=True)
    blocks = {title: text.rstrip() + "\n" for text, title in BLOCK.findall(known)}
    blocks[name] = block
    PAGE.write_text(HEAD + "".join("\n" + blocks[each] for each in PROOFS if each in blocks), "utf-8")


if __name__ == "__main__":
    sys.exit(main())
