"""The keeper's loop: which descriptors are watched, and whom their events call."""

from __future__ import annotations

import select

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Call = Callable[[int], object]

READ, WRITE = select.POLLIN, select.POLLOUT
# What is asked for by nobody and told to all: the other side went away.
_GONE = select.POLLHUP | select.POLLERR | select.POLLNVAL


class Loop:
    """A poll over a handful of descriptors: no descriptor of its own, and nothing to copy in a fork."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._calls: dict[int, tuple[int, Call]] = {}

    def watch(self, fd: int, mask: int, call: Call) -> None:
        """From now on `call` hears of these events, with what is to be read or written as its argument."""
        known = self._calls.get(fd)
        self._calls[fd] = (mask, call)
        if known is None or known[0] != mask:
            self._poll.register(fd, mask)

    def forget(self, fd: int) -> None:
        """Needed before a descriptor is closed."""
        if self._calls.pop(fd, None) is not None:
            self._poll.unregister(fd)

    def turn(self, wait_s: float | None) -> bool:
        """Waits for events as long as it may, and passes them on; whether there were any."""
        # Rounded up: a timer that is not due yet would have the loop turn in vain.
        events = self._poll.poll(None if wait_s is None else int(wait_s * 1000 + 0.999))
        known = dict(self._calls)
        for fd, mask in events:
            # One call may end what another was to hear of, and the number may be a stranger's by now.
            if self._calls.get(fd) == known[fd]:
                wanted, call = known[fd]
                call(wanted if mask & _GONE else mask)
        return bool(events)
