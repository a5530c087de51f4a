"""Waits for what a store tells of itself."""

from __future__ import annotations

import threading
from collections.abc import Callable

WITHIN_S = 20.0


class News:
    """Give it to a store as `on_news`."""

    def __init__(self) -> None:
        self._came = threading.Condition()

    def __call__(self) -> None:
        with self._came:
            self._came.notify_all()

    def wait(self, holds: Callable[[], bool]) -> None:
        with self._came:
            assert self._came.wait_for(holds, WITHIN_S)
