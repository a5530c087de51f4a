"""What is told to whoever listens just now: the latest events, numbered through, and who wants each."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import msgspec

from limpet.model.errors import Refusal

# How many events are kept for those who come back, those that may be lost for a slow reader by their bytes.
KEPT_EVENTS: Final = 4000
KEPT_HINT_BYTES: Final = 4 << 20
_encode: Final = msgspec.json.Encoder().encode


class Event(msgspec.Struct, frozen=True):
    """One event. `payload` is JSON already; a `hint` may be lost for whoever is slow."""

    seq: int
    name: str
    payload: bytes
    hint: bool
    run_id: str
    # Whose sessions it belongs to: limpet's, and the caller's own.
    sessions: tuple[str, ...]
    # Of output, which stream it is of, and its first byte that this event tells of or says is dropped.
    place: tuple[str, int] | None = None

    @property
    def frame(self) -> bytes:
        """The event as every surface shows it."""
        head = b'{"type":"event","event":"%b","payload":' % self.name.encode()
        return b'%b%b,"seq":%d}' % (head, self.payload, self.seq)


class Wanted(NamedTuple):
    """Which events somebody wants to hear."""

    names: frozenset[str]
    session: str | None = None

    def holds(self, event: Event) -> bool:
        """Whether it is one of them."""
        return event.name in self.names and (self.session is None or self.session in event.sessions)


class Feed:
    """Events are numbered without a gap for as long as the home lives; a reader is a number."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names: tuple[str, ...] = tuple(names)
        self.last_seq = 0
        self._kept: deque[Event] = deque(maxlen=KEPT_EVENTS)
        self._hints: deque[Event] = deque()
        self._hint_bytes = 0
        self._listeners: dict[Callable[[Event], None], None] = {}
        self._waiting: set[asyncio.Future[None]] = set()

    def wanted(self, globs: Iterable[str] | None = None, session: str | None = None) -> Wanted:
        """Those whose names fit one of the patterns, all where there is none."""
        globs = ["*"] if globs is None else list(globs)
        return Wanted(frozenset(name for name in self.names if any(fnmatchcase(name, each) for each in globs)), session)

    def publish(
        self,
        name: str,
        payload: dict[str, Any],
        *,
        run_id: str,
        sessions: tuple[str, ...],
        place: tuple[str, int] | None = None,
    ) -> None:
        """Tells everybody. Waits for nobody."""
        self.last_seq += 1
        event = Event(self.last_seq, name, _encode(payload), place is not None, run_id, sessions, place)
        if event.hint:
            self._hints.append(event)
            self._hint_bytes += len(event.payload)
            while self._hint_bytes > KEPT_HINT_BYTES:
                self._hint_bytes -= len(self._hints.popleft().payload)
        else:
            self._kept.append(event)
        for listener in tuple(self._listeners):
            listener(event)
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    def listen(self, listener: Callable[[Event], None]) -> Callable[[], None]:
        """Calls it with each event from here on; what it gives back ends that."""
        self._listeners[listener] = None
        return lambda: self._listeners.pop(listener, None)

    def check(self, after: int) -> None:
        """Refuses a number that no event has."""
        if after > self.last_seq:
            message = f"`after` is beyond the end: the last event has seq {self.last_seq}"
            raise Refusal("invalid_argument", message, reason="cursor_ahead", field="after", last_seq=self.last_seq)

    def after(self, seq: int) -> tuple[list[Event], int]:
        """What is kept of the events behind that number, in order, and how many are not kept any more."""
        kept = [event for held in (self._kept, self._hints) for event in reversed_until(held, seq)]
        kept.sort(key=lambda event: event.seq)
        return kept, self.last_seq - seq - len(kept)

    async def next(self, after: int, within_s: float | None) -> None:
        """Waits until there is an event behind that number, or until the time is over."""
        if self.last_seq > after:
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(future)
        try:
            async with asyncio.timeout(within_s):
                await future
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(future)


def reversed_until(held: "deque[Event]", seq: int) -> list[Event]:
    """The events of a queue behind that number, the last first."""
    found: list[Event] = []
    for event in reversed(held):
        if event.seq <= seq:
            break
        found.append(event)
    return found
