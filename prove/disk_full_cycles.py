"""A disk that becomes full and free again, hundreds of times, under one command that must never notice (F15, M15).

The disk is a tmpfs with 256 KiB of room. The command fills it; then room for 16 KiB comes, in turns by a filler file
that goes and by a larger size; the command fills that, and so on. It may not be killed, must go on within a second of
each coming of room, and at the end every byte is where it belongs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
import zlib
from pathlib import Path

from tests.faults.disks import KIB, MIB, Tmpfs, small_tmpfs
from tests.faults.kept import Kept, difference, is_alive, now_ms, sequence
from tests.keeper.driver import Fact

ROOM_BYTES = 256 * KIB
STEP_BYTES = 16 * KIB
WITHIN_MS = 1000
FULL_WITHIN_S = 30.0
LINE_BYTES = 6  # at least so many bytes has a line of the sequence, on the whole


class Tail:
    """Reads a journal on, from where it was, and checks its chain."""

    def __init__(self, kept: Kept) -> None:
        self.kept = kept
        self.file = (kept.directory / "keeper.journal").open("rb")
        self.chain = 0
        self.facts: list[Fact] = []
        self.rest = b""

    def read(self) -> None:
        *lines, self.rest = (self.rest + self.file.read()).split(b"\n")
        for line in lines:
            _, crc, body = line.split(b" ", 2)
            self.chain = zlib.crc32(body, self.chain)
            assert f"{self.chain:08x}".encode() == crc, f"the chain breaks after record {len(self.facts)}"
            self.facts.append(json.loads(body))

    def end(self) -> int:
        """How far the spool is known to go."""
        self.read()
        return next((fact["end"] for fact in reversed(self.facts) if fact["fact"] == "wrote"), 0)

    def wait(self, name: str) -> Fact:
        """The first fact of that name."""
        while True:
            self.read()
            for fact in self.facts:
                if fact["fact"] == name:
                    return fact
            self.kept.connection.wakeup()

    def wait_grown(self, before: int) -> Fact:
        """The first fact of bytes past `before`."""
        while self.end() <= before:
            self.kept.connection.wakeup()
        return next(fact for fact in self.facts if fact["fact"] == "wrote" and fact["end"] > before)


def wait_full(kept: Kept, disk: Tmpfs) -> None:
    """Until the disk has no page left and the keeper says so: from the second cycle on it may be one long stall."""
    until = time.monotonic() + FULL_WITHIN_S
    while disk.free_bytes() >= 4096 or not kept.stalled_now():
        assert time.monotonic() < until, f"no stall, with {disk.free_bytes()} bytes free"
        time.sleep(0.005)


def give_room(disk: Tmpfs, fillers: list[Path], cycle: int, size_bytes: int) -> int:
    """Makes room for one step; the disk's size now."""
    if cycle % 2 and fillers:
        fillers.pop().unlink()
        return size_bytes
    disk.resize(size_bytes + STEP_BYTES)
    return size_bytes + STEP_BYTES


def check_end(tail: Tail, expected: bytes) -> None:
    """Nothing is missing, nothing is twice, and the command ended by itself."""
    tail.read()
    facts = {fact["fact"]: fact for fact in tail.facts}
    assert (facts["exited"]["code"], facts["ended"]["by"]) == (0, "self"), (facts["exited"], facts["ended"])
    end = 0
    for fact in tail.facts:
        if fact["fact"] == "wrote":
            assert fact["start"] == end, f"a gap: {fact} after {end}"
            end = fact["end"]
    assert end == len(expected)
    assert not difference(tail.kept.spool(), expected)


def prove(cycles: int, within_ms: int = WITHIN_MS) -> str:
    """Runs so many cycles and returns the report; an AssertionError says what did not hold."""
    waits_ms: list[int] = []
    with tempfile.TemporaryDirectory(prefix="limpet-prove-") as base:
        expected = sequence((ROOM_BYTES + cycles * STEP_BYTES + 4 * MIB) // LINE_BYTES)
        last = expected.count(b"\n")
        fillers_bytes = cycles // 2 * STEP_BYTES
        size_bytes = ROOM_BYTES + fillers_bytes
        with small_tmpfs(Path(base), size_bytes) as disk:
            fillers = [disk.at / f"filler-{place}" for place in range(cycles // 2)]
            for path in fillers:
                path.write_bytes(b"\xee" * STEP_BYTES)
            assert disk.free_bytes() == ROOM_BYTES
            with Kept(disk.at / "run") as kept:
                tail = Tail(kept)
                with tail.file:
                    pid = kept.begin("seq", "1", str(last))
                    assert kept.call("wake", on="every")["ok"]
                    for cycle in range(cycles):
                        wait_full(kept, disk)
                        before = tail.end()
                        assert is_alive(pid), "the command died of a full disk"
                        freed_ms = now_ms()
                        size_bytes = give_room(disk, fillers, cycle, size_bytes)
                        waits_ms.append(tail.wait_grown(before)["at"] - freed_ms)
                        assert waits_ms[-1] <= within_ms, f"cycle {cycle}: went on after {waits_ms[-1]} ms"
                    disk.resize(size_bytes + 2 * len(expected))
                    tail.wait("sealed")
                    assert kept.wait_gone() == 0
                    check_end(tail, expected)
    median_ms = statistics.median(waits_ms)
    return (
        f"disk full: {cycles} cycles, command killed 0 times, gap 0 bytes of {len(expected)}, "
        f"went on after {median_ms:g} ms (median), {max(waits_ms)} ms (longest; {within_ms} allowed)"
    )


def main() -> int:
    """The command line: prints the report, or what did not hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=500)
    try:
        print(prove(parser.parse_args().cycles))
    except AssertionError as violation:
        print(f"VIOLATED: {violation}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
