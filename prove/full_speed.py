"""A gibibyte at full speed into a keeper without reader or connection (F54): all bytes whole, memory flat."""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.faults.disks import MIB
from tests.faults.kept import Kept, dense_end

PTY = {"rows": 24, "cols": 80}
WARM_LINES = 4_000_000  # before the first look at its memory
GROWTH_KIB = 1024


def peak_kib(pid: int) -> int:
    """The most memory that a process ever had."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def lines_for(size_bytes: int) -> int:
    """How far a sequence of numbers must go to be so long."""
    last, digits = 0, 1
    while (whole := 9 * 10 ** (digits - 1) * (digits + 1)) < size_bytes:
        size_bytes -= whole
        last = 10**digits - 1
        digits += 1
    return last + -(-size_bytes // (digits + 1))


def sequence_hash(last: int) -> str:
    """The hash of what `seq 1 LAST` says, straight from it."""
    digest = hashlib.sha256()
    with subprocess.Popen(["seq", "1", str(last)], stdout=subprocess.PIPE) as numbers:
        assert numbers.stdout is not None
        while data := numbers.stdout.read(MIB):
            digest.update(data)
    return digest.hexdigest()


def prove(size_mib: int = 1024) -> str:
    """Runs it once through pipes and once through a terminal; an AssertionError says what did not hold."""
    return f"{through('stdout', size_mib)}\n{through('pty', size_mib)}"


def through(stream: str, size_mib: int) -> str:
    """The report of one of the two."""
    last = max(2 * WARM_LINES, lines_for(size_mib * MIB))
    with tempfile.TemporaryDirectory(prefix="limpet-prove-") as base:
        said, go = Path(base) / "said", Path(base) / "go"
        os.mkfifo(said)
        os.mkfifo(go)
        hear, tell = os.open(said, os.O_RDWR), os.open(go, os.O_RDWR)
        script = (
            f"seq 1 {WARM_LINES}; echo >{said}; read x <{go}; seq {WARM_LINES + 1} {last}; echo >{said}; read x <{go}"
        )
        try:
            with Kept(Path(base) / "run") as kept:
                kept.begin(
                    "/bin/sh", "-c", script, spool_max_bytes=8 * size_mib * MIB, pty=PTY if stream == "pty" else None
                )
                kept.connection.close()
                os.read(hear, 1)
                before_kib = peak_kib(kept.pid)
                os.write(tell, b"\n")
                begun = time.monotonic()
                os.read(hear, 1)
                took_s = time.monotonic() - begun
                after_kib = peak_kib(kept.pid)
                os.write(tell, b"\n")
                assert kept.wait_gone(120) == 0
                facts = kept.facts()
                spool = kept.directory / f"{stream}.spool"
                size_bytes = spool.stat().st_size
                assert facts[-1]["fact"] == "sealed"
                assert dense_end(facts, stream) == size_bytes >= size_mib * MIB
                with spool.open("rb") as file:
                    assert hashlib.file_digest(file, "sha256").hexdigest() == sequence_hash(last), "bytes differ"
        finally:
            os.close(hear)
            os.close(tell)
    assert after_kib - before_kib <= GROWTH_KIB, f"memory grew from {before_kib} to {after_kib} KiB"
    return (
        f"full speed through {stream}: {size_bytes} bytes whole, "
        f"{size_bytes / took_s / MIB:.0f} MiB/s with the program's own time, "
        f"keeper's peak {before_kib} KiB after the first {WARM_LINES} lines, {after_kib} KiB at the end"
    )


def main() -> int:
    """The command line: prints the report, or what did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mib", type=int, default=1024)
    try:
        print(prove(parser.parse_args().mib))
    except AssertionError as violation:
        print(f"VIOLATED: {violation}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
