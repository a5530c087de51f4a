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
        self._set: dict[str, tuple[float, Callable[[], None]]] = {}

    def set(self, name: str, after_s: float, call: Callable[[], None]) -> None:
        self._set[name] = (time.monotonic() + after_s, call)

    def clear(self, *names: str) -> None:
        for name in names:
            self._set.pop(name, None)

    def left_s(self, name: str) -> float | None:
        """How long until that one; None when it is not set."""
        return self._set[name][0] - time.monotonic() if name in self._set else None

    def next_s(self) -> float | None:
        """How long the loop may sleep; None for ever. However far away a timer is, the system can sleep that long."""
        if not self._set:
            return None
        return min(max(0.0, min(when for when, _ in self._set.values()) - time.monotonic()), MOST_S)

    def fire(self) -> None:
        """Calls what is due, earliest first."""
        now = time.monotonic()
        for _, name in sorted((when, name) for name, (when, _) in self._set.items() if when <= now):
            due = self._set.get(name)
            if due is not None and due[0] <= now:
                del self._set[name]
                due[1]()
