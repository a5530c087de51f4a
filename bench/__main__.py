"""`python -m bench [SCENARIO ...]`: measures, prints a table, writes JSON; exits 1 when a goal is missed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

from bench import (
    background,
    calls,
    crowd,
    gateway,
    growth,
    matching,
    memory,
    pages,
    report,
    shells,
    store,
    streams,
    waits,
)
from bench.measure import Row, Setting

SCENARIOS: dict[str, Callable[[Setting], list[Row]]] = {
    "S1": shells.in_a_conversation,
    "S1path": shells.through_the_daemon,
    "S2": calls.background,
    "S2k": background.keeper_alone,
    "S3a": streams.through_pipes,
    "S3d": streams.through_the_daemon,
    "S3b": streams.through_a_pty,
    "S4": waits.on_markers,
    "S6": crowd.at_once,
    "S7": pages.at_random,
    "WS": gateway.fan_out,
    "EVENTS": gateway.pairs,
    "F60": gateway.stopped_readers,
    "GROW": growth.slopes,
    "MEM": memory.keepers,
    "STORE": store.doors,
    "MATCH": matching.watchers,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help=f"of {', '.join(SCENARIOS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="fewer and smaller rounds: shows order, decides nothing")
    parser.add_argument("--peers", action="store_true", help="peers beside limpet, set up if they are not (S2, S4, S6)")
    parser.add_argument("--dir", type=Path, help="where the measured files go; default: the temporary directory")
    parser.add_argument("--json", type=Path, default=report.RESULTS / "latest.json", help="where the figures go")
    asked = parser.parse_args()
    names: list[str] = asked.scenarios or list(SCENARIOS)
    if unknown := [name for name in names if name not in SCENARIOS]:
        parser.error(f"no such scenario: {', '.join(unknown)}")
    environment = report.environment() | {"quick": asked.quick}
    print(environment, flush=True)
    rows: list[Row] = []
    broken: list[str] = []
    for name in names:
        with tempfile.TemporaryDirectory(prefix="limpet-bench-", dir=asked.dir) as scratch:
            try:
                measured = SCENARIOS[name](Setting(Path(scratch), asked.quick, asked.peers))
            except Exception:  # noqa: BLE001 - one broken scenario must not hide the figures of the others
                traceback.print_exc()
                broken.append(name)
                continue
        print(report.table(measured), end="\n\n", flush=True)
        rows += measured
    report.save(report.as_json(environment | {"broken": broken}, rows), asked.json)
    missed = [f"{row.scenario}: {row.what}" for row in rows if row.passed is False]
    for line in missed:
        print("missed:", line)
    for name in broken:
        print("could not be measured:", name)
    return 1 if missed or broken else 0


if __name__ == "__main__":
    sys.exit(main())
