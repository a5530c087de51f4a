"""Named moments on the monotonic clock, and what to do then."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


# No system sleeps for every number of seconds; waking up in between costs nothing.
MOST_S = 86400.0


class Timers:
    """A handful of timers: setting one again moves it."""

    def __init__(self) -> None:
        self._when: dict[str, float] = {}
        self._calls: dict[str, Callable[[], None]] = {}

    def set(self, name: str, after_s: float, call: Callable[[], None]) -> None:
        self._when[name] = time.monotonic() + after_s
        self._calls[name] = call

    def clear(self, *names: str) -> None:
        for name in names:
            self._when.pop(name, None)

    def left_s(self, name: str) -> float | None:
        """How long until that one; None when it is not set."""
        return self._when[name] - time.monotonic() if name in self._when else None

    def next_s(self) -> float | None:
        """How long the loop may sleep; None for ever. However far away a timer is, the system can sleep that long."""
        if not self._when:
            return None
        return min(max(0.0, min(self._when.values()) - time.monotonic()), MOST_S)

    def fire(self) -> None:
        """Calls what is due, earliest first."""
        now = time.monotonic()
        while self._when:
            name = min(self._when, key=self._when.__getitem__)
            if self._when[name] > now:
                return
            del self._when[name]
            self._calls[name]()
