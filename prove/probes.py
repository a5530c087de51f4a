"""A daemon that shows, in shared memory, what each of its threads does, and can be killed at a chosen moment of it.

`python prove/probes.py FILE` is `limpet serve --ready-json` with probes around what it does. The file outlives SIGKILL:
what stands in it is what the daemon was at when it died. A death that was ordered comes from the kernel, by a timer
whose signal is SIGKILL, so many microseconds after the chosen work began: the daemon has no part in it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import signal
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

# What the main thread can be at; where one lies in another, the inner one counts, but all of adopting is that.
PHASES: Final = (
    "interpreter and imports",
    "opening the home",
    "adopting runs",
    "serving, at none of these",
    "ingesting a journal",
    "reading a call",
    "claiming a keeper",
    "recording what was asked",
    "answering a call",
)
IMPORTS, OPENING, ADOPTING, SERVING, INGESTING, READING, CLAIMING, RECORDING, ANSWERING = range(len(PHASES))
# What two other threads can be at.
BESIDE: Final = ("at rest", "committing to the database", "syncing records")
_REST, COMMITTING, SYNCING = range(len(BESIDE))

_SIZE: Final = 4096
# Main thread's phase, store's thread, syncing thread; then the order: target, entries left, delay in µs; two times.
_STATE: Final = struct.Struct("3B")
_ORDER: Final = struct.Struct("3I")
_ORDER_AT: Final = 16
_TIMES: Final = struct.Struct("3d")
_TIMES_AT: Final = 64
COMMIT_TARGET: Final = 100
SYNC_TARGET: Final = 101


class Sight:
    """The shared memory, as who kills sees it."""

    def __init__(self, path: Path) -> None:
        path.write_bytes(bytes(_SIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), _SIZE)

    def begin(self, target: int | None = None, entries: int = 1, delay_us: int = 1) -> None:
        """A new daemon is about to begin; it dies so long after its nth entry into what is chosen, if anything is."""
        self._memory[:_SIZE] = bytes(_SIZE)
        self.order(target, entries, delay_us)

    def order(self, target: int | None, entries: int = 1, delay_us: int = 1) -> None:
        """The same for one that lives."""
        chosen = 0 if target is None else target + 1
        _ORDER.pack_into(self._memory, _ORDER_AT, chosen, entries, max(1, delay_us))

    def state(self) -> tuple[int, int, int]:
        """What the three threads are at, or were when it died."""
        return _STATE.unpack_from(self._memory, 0)

    def adopting_s(self) -> float | None:
        """How long it took to take all runs over; None where it was not done."""
        began, done, _ = _TIMES.unpack_from(self._memory, _TIMES_AT)
        return done - began if done else None


class _SignalEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signo", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("rest", ctypes.c_byte * 48),
    )


class _Probes:
    """The other side: in the daemon."""

    def __init__(self, path: str) -> None:
        with open(path, "r+b") as file:
            self.memory = mmap.mmap(file.fileno(), _SIZE)
        self.library = ctypes.CDLL(None, use_errno=True)
        self.timer = ctypes.c_void_p()
        event = _SignalEvent(signo=signal.SIGKILL)
        assert self.library.timer_create(time.CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self.timer)) == 0

    def enter(self, slot: int, phase: int, target: int) -> int:
        """From now on that; what it was before."""
        before = self.memory[slot]
        self.memory[slot] = phase
        chosen, left, delay_us = _ORDER.unpack_from(self.memory, _ORDER_AT)
        if chosen == target + 1 and left:
            _ORDER.pack_into(self.memory, _ORDER_AT, chosen, left - 1, delay_us)
            if left == 1:
                self.die_after(delay_us)
        return before

    def die_after(self, delay_us: int) -> None:
        once = (ctypes.c_long * 4)(0, 0, 0, delay_us * 1000)
        assert self.library.timer_settime(self.timer, 0, once, None) == 0

    def time(self, place: int) -> None:
        struct.pack_into("d", self.memory, _TIMES_AT + 8 * place, time.monotonic())

    def around(self, owner: Any, name: str, phase: int) -> None:
        """The main thread is at `phase` while it is in that function."""
        inner: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(inner)
        def probed(*args: Any, **fields: Any) -> Any:
            if self.memory[0] < SERVING:
                return inner(*args, **fields)
            before = self.enter(0, phase, phase)
            try:
                return inner(*args, **fields)
            finally:
                self.memory[0] = before

        setattr(owner, name, probed)

    def beside(self, owner: Any, name: str, slot: int, phase: int, target: int) -> None:
        """The same for a thread of its own."""
        inner: Callable[..., Any] = getattr(owner, name)

        @functools.wraps(inner)
        def probed(*args: Any, **fields: Any) -> Any:
            self.enter(slot, phase, target)
            try:
                return inner(*args, **fields)
            finally:
                self.memory[slot] = _REST

        setattr(owner, name, probed)


def main() -> int:
    probes = _Probes(sys.argv[1])
    probes.enter(0, IMPORTS, IMPORTS)

    from limpet import daemon
    from limpet.engine.home import Home
    from limpet.engine.nursery import IdleKeeper
    from limpet.engine.recovery import Recovery
    from limpet.store.commits import Commits
    from limpet.store.journals import DaemonJournal, JournalReader
    from limpet.surfaces.http import calls
    from limpet.surfaces.http.hot import Hot

    opened, adopt_all = Home.open, Recovery.adopt_all

    def open_home(self: Home) -> None:
        probes.enter(0, OPENING, OPENING)
        opened(self)

    async def adopt(self: Recovery, found: Any, take_over: Any) -> None:
        # The loop turns between the steps of it: what it is at then is still this.
        probes.enter(0, ADOPTING, ADOPTING)
        probes.time(0)
        await adopt_all(self, found, take_over)
        probes.time(1)
        probes.enter(0, SERVING, SERVING)

    Home.open = open_home
    Recovery.adopt_all = adopt
    probes.around(JournalReader, "read_new", INGESTING)
    probes.around(calls, "decode", READING)
    probes.around(calls, "encode", ANSWERING)
    probes.around(Hot, "_write", ANSWERING)
    probes.around(IdleKeeper, "claim", CLAIMING)
    probes.around(IdleKeeper, "claim_attempt", CLAIMING)
    probes.around(DaemonJournal, "append", RECORDING)
    probes.beside(Commits, "_write", 1, COMMITTING, COMMIT_TARGET)
    probes.beside(DaemonJournal, "sync", 2, SYNCING, SYNC_TARGET)
    return daemon.serve(home=os.environ["LIMPET_HOME"], ready_json=True)


if __name__ == "__main__":
    sys.exit(main())
