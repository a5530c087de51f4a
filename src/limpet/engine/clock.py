"""The two clocks of the engine, in one place: a simulation has its own."""

import time


def wall_ms() -> int:
    """Milliseconds since the epoch; may jump. For what people read, never for order or how long."""
    return time.time_ns() // 1_000_000


def monotonic_s() -> float:
    """Seconds from some moment on; never goes back."""
    return time.monotonic()
