"""SIGKILL of keepers at each swept call and at hundreds of random moments (F04, F05, M2): all remains are whole."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.faults.test_keeper_killed import POINTS, dies_at_random, sweep

SWEEP = range(1, 41)


def prove(kills: int) -> str:
    """Sweeps all points, then so many random kills; an AssertionError says what did not hold."""
    lines: list[str] = []
    with tempfile.TemporaryDirectory(prefix="limpet-prove-") as base:
        for number, point in enumerate(POINTS):
            place = Path(base) / f"point-{number}"
            place.mkdir()
            reached = sweep(place, point, SWEEP)
            assert reached >= point.least, f"{point.name}: only {reached} such calls were ever made"
            lines.append(f"killed at call 1 to {reached} of {point.name} ({point.calls})")
        for seed in range(kills):
            place = Path(base) / f"random-{seed}"
            place.mkdir()
            dies_at_random(place, seed)
    return "\n".join(
        [*lines, f"killed at {kills} random moments", "journal, spools and bare line feeds whole every time"]
    )


def main() -> int:
    """The command line: prints the report, or what did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=300)
    try:
        print(prove(parser.parse_args().kills))
    except AssertionError as violation:
        print(f"VIOLATED: {violation}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
