"""The command: each target in a process of its own, one after the other, the time spread evenly over them."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from fuzz import engine, report
from fuzz.targets import NAMES

DEFAULT_SECONDS = 60.0


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=f"of {', '.join(NAMES)}; all unless given")
    parser.add_argument("--seconds", type=float, default=DEFAULT_SECONDS, help="in all, over the targets (60)")
    parser.add_argument("--corpus", type=Path, help="where inputs and findings are kept (a fresh temporary directory)")
    parser.add_argument("--report", action="store_true", help=f"write the figures into {report.PAGE.name}")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = [name for name in options.targets if name not in NAMES]
    if unknown:
        parser.error(f"no target {', '.join(unknown)}; there are {', '.join(NAMES)}")
    names: list[str] = options.targets or list(NAMES)
    corpus: Path = options.corpus or Path(tempfile.mkdtemp(prefix="limpet-fuzz-"))
    corpus.mkdir(parents=True, exist_ok=True)
    if options.inside:
        engine.run(names[0], options.seconds, corpus)
    results = [one(name, options.seconds / len(names), corpus / name) for name in names]
    for result in results:
        print(report.line(result), flush=True)
    (corpus / "results.json").write_text(json.dumps(results, indent=1) + "\n", "utf-8")
    print(f"inputs and findings: {corpus}")
    if options.report:
        report.write(results)
    return 1 if any(result["findings"] for result in results) else 0


def one(name: str, seconds: float, corpus: Path) -> dict[str, Any]:
    """One target in a child, whose temporary files go with it."""
    corpus.mkdir(exist_ok=True)
    results = corpus / engine.RESULTS
    results.unlink(missing_ok=True)
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="limpet-fuzz-", dir=memory) as scratch, (corpus / "log").open("w") as log:
        done = subprocess.run(
            [sys.executable, "-m", "fuzz", name, "--seconds", str(seconds), "--corpus", str(corpus), "--inside"],
            env=os.environ | {"TMPDIR": scratch},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
    nothing = {"target": name, "guided": True, "executions": 0, "seconds": 0.0, "cpu_seconds": 0.0, "slowest_ms": 0.0}
    told: dict[str, Any] = json.loads(results.read_text("utf-8")) if results.exists() else nothing | {"findings": []}
    if done.returncode:
        last = (corpus / "log").read_text("utf-8", "replace")[-300:]
        sign = f"the fuzzer ended with {done.returncode}"
        told["findings"].append({"sign": sign, "message": last, "input": str(corpus), "bytes": 0, "times": 1})
    return told


if __name__ == "__main__":
    sys.exit(main())
