"""A keeper under faults: a driver that leaves nothing behind, and the checks that the fault tests share."""

from __future__ import annotations

import itertools
import os
import signal
import time
import zlib
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any

from tests.keeper.driver import REPLY_WITHIN_S, Connection, Fact, Frame, Keeper

GOES_ON_WITHIN_MS = 3000  # 1000 by the contract; the rest is for a loaded machine
SPOOL = "stdout.spool"
JOURNAL = "keeper.journal"

_tags = itertools.count(1)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@cache
def sequence(last: int) -> bytes:
    """What `seq 1 LAST` says: no two places of it look alike."""
    return "".join(f"{number}\n" for number in range(1, last + 1)).encode()


def difference(got: bytes, expected: bytes) -> str:
    """Where two long texts part; empty when they do not."""
    if got == expected:
        return ""
    at = next((i for i, (a, b) in enumerate(zip(got, expected, strict=False)) if a != b), min(len(got), len(expected)))
    return f"{len(got)} bytes, {len(expected)} expected; at {at}: {got[at : at + 40]!r}, not {expected[at : at + 40]!r}"


def prefix_difference(got: bytes, expected: bytes) -> str:
    return difference(got, expected[: len(got)])


def is_alive(pid: int) -> bool:
    """Whether the process still runs (a zombie does not)."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def dense_end(facts: Sequence[Fact], stream: str) -> int:
    """The end of a stream's `wrote` ranges, which leave nothing out and say nothing twice."""
    end = 0
    for fact in facts:
        if fact["fact"] == "wrote" and fact["stream"] == stream:
            assert fact["start"] == end < fact["end"], fact
            end = fact["end"]
    return end


def stalls(facts: Sequence[Fact]) -> list[Fact]:
    """The stalls and what ended them, which take turns."""
    turns = [fact for fact in facts if fact["fact"] in ("stalled", "resumed")]
    for place, fact in enumerate(turns):
        assert fact["fact"] == ("stalled", "resumed")[place % 2], turns
    return turns


class NotPreparedError(Exception):
    """The keeper refused before it was one."""


class Kept(Keeper):
    """A keeper whose end is sure: it and all that its run started are gone when the test is."""

    def __init__(self, directory: Path, *, env: dict[str, str] | None = None) -> None:
        self.tag = f"FAULT_RUN={os.getpid()}.{next(_tags)}"
        self.ears: list[Connection] = []
        self.asker: Connection | None = None
        try:
            super().__init__(directory, env=env)
        except AssertionError as refused:
            if "'failed'" not in str(refused):
                raise
            raise NotPreparedError from refused

    def __enter__(self) -> Kept:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for ear in self.ears:
            ear.close()
        super().__exit__(kind, error, trace)
        self.end_the_run()

    def end_the_run(self) -> None:
        """Kills the processes that carry this run's tag."""
        for entry in Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            with suppress(OSError):
                handle = os.pidfd_open(int(entry.name))
                try:
                    if self.tag.encode() in (entry / "environ").read_bytes().split(b"\0"):
                        signal.pidfd_send_signal(handle, signal.SIGKILL)
                finally:
                    os.close(handle)

    def request(self, *argv: str, **fields: Any) -> Frame:
        """The fields of a start of `argv`, marked as ours."""
        name, _, value = self.tag.partition("=")
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", name: value}
        return {"run": "r1", "argv": list(argv), "cwd": "/", "env": env} | fields

    def start(self, *argv: str, **fields: Any) -> Frame:
        return self.call("start", **self.request(*argv, **fields))

    def begin(self, *argv: str, **fields: Any) -> int:
        """Starts what must start; its pid. From here on only facts of state wake the test."""
        reply = self.start(*argv, **fields)
        assert reply["ok"], reply
        assert self.call("wake", on="state")["ok"]
        return reply["pid"]

    def ear(self) -> Connection:
        """Another connection, that hears facts of state."""
        connection = Connection(self.directory)
        self.ears.append(connection)
        assert connection.call("hello", protocol=1, wake="state")["ok"]
        return connection

    def stalled_now(self) -> Any:
        """What the keeper itself says of its storage."""
        if self.asker is None:  # a connection of its own: asking must not change what wakes the test
            self.asker = Connection(self.directory)
            self.ears.append(self.asker)
        return self.asker.call("hello", protocol=1)["stalled"]

    def wait_stalled(self, nth: int = 1, within_s: float = REPLY_WITHIN_S) -> Fact:
        """The nth stall."""

        def seen(facts: list[Fact]) -> Fact | None:
            turns = stalls(facts)[::2]
            return turns[nth - 1] if len(turns) >= nth else None

        return self.wait_until(seen, within_s, f"stall {nth}")

    def wait_resumed(self, freed_ms: int, nth: int = 1) -> Fact:
        """The end of the nth stall, in time after there was room for all that waited."""

        def seen(facts: list[Fact]) -> Fact | None:
            turns = stalls(facts)[1::2]
            return turns[nth - 1] if len(turns) >= nth else None

        fact = self.wait_until(seen, what=f"end of stall {nth}")
        assert fact["at"] - freed_ms <= GOES_ON_WITHIN_MS, f"went on {fact['at'] - freed_ms} ms after there was room"
        return fact

    def wait_grown(self, freed_ms: int, before: int, stream: str = "stdout") -> Fact:
        """The first bytes past `before`, in time after there was room for some (the stall may stay, for the rest)."""
        assert self.call("wake", on="every")["ok"]

        def seen(facts: list[Fact]) -> Fact | None:
            wrote = (fact for fact in facts if fact["fact"] == "wrote" and fact["stream"] == stream)
            return next((fact for fact in wrote if fact["end"] > before), None)

        fact = self.wait_until(seen, what=f"byte past {before}")
        assert self.call("wake", on="state")["ok"]
        assert fact["at"] - freed_ms <= GOES_ON_WITHIN_MS, f"went on {fact['at'] - freed_ms} ms after there was room"
        return fact

    def stays_without(self, name: str, for_s: float) -> None:
        """That fact does not come in that time (a wait for nothing has no event to end it)."""
        until = time.monotonic() + for_s
        while (left := until - time.monotonic()) > 0:
            assert not self.named(name)
            with suppress(TimeoutError):
                self.connection.wakeup(left)
        assert not self.named(name)

    def finish(self, **expected: bytes) -> list[Fact]:
        """Waits for the keeper's own end; each stream is whole, in the journal, in the spool and under the seal."""
        self.wait_fact("sealed", within_s=60)
        assert self.wait_gone() == 0
        facts = self.facts()
        assert facts[-1]["fact"] == "sealed"
        turns = stalls(facts)
        assert len(turns) % 2 == 0, turns
        for stream, data in expected.items():
            assert dense_end(facts, stream) == len(data)
            assert not difference(self.spool(stream), data)
            seal = facts[-1]["streams"][stream]
            assert (seal["bytes"], seal["hole"], seal["crc32"]) == (len(data), None, f"{zlib.crc32(data):08x}")
        return facts


def wait_stall_frame(connection: Connection, stalled: bool, within_s: float = REPLY_WITHIN_S) -> Any:
    """The next wakeup that says that storage stalls, or goes on again."""
    until = time.monotonic() + within_s
    while True:
        frame = connection.wakeup(max(0.001, until - time.monotonic()))
        if "stalled" in frame and (frame["stalled"] is not None) == stalled:
            return frame["stalled"]
