"""What waits for a client that reads too slowly: nothing that may be lost, and of the rest no more than so much."""

from collections import deque
from typing import Final

from limpet.engine.feed import Event
from limpet.surfaces.ws.messages import encode, text_frame

HELD_MAX_BYTES: Final = 8 << 20
"""Events and answers that may not be lost wait up to here; whoever is further behind has to connect anew."""
CURSORS_MAX: Final = 1000


class Behind:
    """One client's backlog: frames that it will get, and where to read what it will not."""

    def __init__(self) -> None:
        self.lost = 0
        self._held: deque[bytes] = deque()
        self._held_bytes = 0
        self._cursors: dict[str, dict[str, int]] = {}

    def __bool__(self) -> bool:
        return bool(self._held) or bool(self.lost)

    def hold(self, frame: bytes) -> bool:
        """Keeps a frame until it can be sent; False where that is one too many."""
        self._held.append(frame)
        self._held_bytes += len(frame)
        return self._held_bytes <= HELD_MAX_BYTES

    def lose(self, event: Event) -> None:
        """Notes where to read what this event tells."""
        self.lost += 1
        if event.place is not None and (event.run_id in self._cursors or len(self._cursors) < CURSORS_MAX):
            stream, offset = event.place
            self._cursors.setdefault(event.run_id, {}).setdefault(stream, offset)

    def next(self) -> bytes:
        """The frame to send first: what was lost, so that it is known before the end of a run is."""
        if self.lost:
            notice = {"type": "dropped", "count": self.lost, "cursors": self._cursors}
            self.lost, self._cursors = 0, {}
            return text_frame(encode(notice))
        frame = self._held.popleft()
        self._held_bytes -= len(frame)
        return frame
