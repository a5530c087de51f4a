"""The one place where the engine asks what time it is: the wall's for people to read, a steady one to count by."""

import time
from typing import Final

# Counts a suspended machine's time too, where there is such a clock.
_STEADY: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def now_ms() -> int:
    """The wall clock, which somebody may set."""
    return time.time_ns() // 1_000_000


def passed_s() -> float:
    """Rises as time passes, a suspended machine's too; only differences mean anything."""
    return time.clock_gettime(_STEADY)


class Steady:
    """The wall clock as it was when this was made, and what has passed since."""

    def __init__(self) -> None:
        self.began_ms = now_ms()
        self._began_s = passed_s()

    def passed_ms(self) -> int:
        """How long this has been there."""
        return int((passed_s() - self._began_s) * 1000)

    def now_ms(self) -> int:
        """What the wall clock would say had nobody set it."""
        return self.began_ms + self.passed_ms()
