"""The world of one history: its clock, its chances, what is to happen next, and the trace of what did."""

import hashlib
import heapq
import random
from collections.abc import Callable
from typing import Final

EPOCH_MS: Final = 1_700_000_000_000
# More steps than any history needs: one that takes more turns in a circle.
MOST_STEPS: Final = 200_000

Call = Callable[[], object]


class Violation(AssertionError):  # noqa: N818  (what it is called everywhere)
    """Something that must hold did not: `seed` shows it again."""

    def __init__(self, seed: int, message: str) -> None:
        super().__init__(f"seed {seed}: {message}")
        self.seed = seed
        self.message = message


class World:
    """One seed decides everything in it. Nothing happens at once: each thing waits for its moment."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.now_s = 1000.0
        self.boot = 1
        # What the wall clock is off by: it may jump, and nothing is to depend on it.
        self.wall_off_ms = 0
        self.steps = 0
        self.trace: list[str] = []
        self.keeps_trace = False
        self._digest = hashlib.blake2b(digest_size=16)
        self._events: list[tuple[float, int, Call]] = []
        self._serial = 0
        self._last_pid = 5_000_000  # beyond any that a system gives

    # Time.

    def wall_ms(self) -> int:
        return EPOCH_MS + self.wall_off_ms + int(self.now_s * 1000)

    def monotonic_s(self) -> float:
        return self.now_s

    def after(self, delay_s: float, call: Call) -> None:
        """Has something happen so much later."""
        self._serial += 1
        heapq.heappush(self._events, (self.now_s + delay_s, self._serial, call))

    def soon(self, call: Call) -> None:
        """Has something happen after as long as things take: mostly a moment, sometimes far longer."""
        chance = self.random.random()
        self.after(chance * 0.004 if chance < 0.97 else (chance - 0.97) * 20, call)

    def step(self, until_s: float | None) -> None:
        """The next thing happens, or the time comes up to which nothing does."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise self.violation("it goes on without end")
        if self._events and (until_s is None or self._events[0][0] <= until_s):
            when, _, call = heapq.heappop(self._events)
            self.now_s = max(self.now_s, when)
            call()
        elif until_s is None:
            raise self.violation("everybody waits, and nothing can happen any more")
        else:
            self.now_s = max(self.now_s, until_s)

    def run_for(self, seconds: float) -> None:
        """All that happens in so much time, with no daemon there."""
        until_s = self.now_s + seconds
        while self.now_s < until_s:
            self.step(until_s)

    # What was seen.

    def new_pid(self) -> int:
        self._last_pid += 1
        return self._last_pid

    def boot_id(self) -> str:
        return f"boot-{self.seed}-{self.boot}"

    def say(self, *words: object) -> None:
        """Puts what happened into the trace."""
        line = f"{self.now_s:.6f} " + " ".join(map(str, words))
        self._digest.update(line.encode())
        if self.keeps_trace:
            self.trace.append(line)

    def digest(self) -> str:
        """Names the whole trace: the same seed has the same."""
        return self._digest.hexdigest()

    def violation(self, message: str) -> Violation:
        self.say("VIOLATION", message)
        return Violation(self.seed, message)
