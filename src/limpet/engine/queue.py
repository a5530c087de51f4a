"""Whose turn it is: first in, first out in a session, side by side across sessions, so many at once."""

from collections import OrderedDict, deque


class Queue:
    """Runs by their ids. Who enters either may start or waits; who leaves says who may start now."""

    def __init__(self, max_parallel: int) -> None:
        self._max_parallel = max_parallel
        self._started: set[str] = set()
        # Of each session with a run in it: those runs, the one whose turn it is first.
        self._sessions: dict[str, deque[str]] = {}
        self._session_of: dict[str, str] = {}
        # Those whose turn it is in their session, and who lack a free place.
        self._ready: OrderedDict[str, None] = OrderedDict()

    def enter(self, run_id: str, session_id: str) -> bool:
        """Whether the run may start now."""
        line = self._sessions.setdefault(session_id, deque())
        line.append(run_id)
        self._session_of[run_id] = session_id
        if line[0] == run_id:
            self._ready[run_id] = None
        return run_id in self._next()

    def enter_started(self, run_id: str, session_id: str) -> None:
        """For a run that goes on already: its session waits for it, whatever the number of places."""
        self._sessions.setdefault(session_id, deque()).appendleft(run_id)
        self._session_of[run_id] = session_id
        self._started.add(run_id)

    def leave(self, run_id: str) -> list[str]:
        """Those that may start now. One that is not in the queue leaves nothing."""
        session_id = self._session_of.pop(run_id, None)
        if session_id is None:
            return []
        line = self._sessions[session_id]
        line.remove(run_id)
        self._started.discard(run_id)
        self._ready.pop(run_id, None)
        if not line:
            del self._sessions[session_id]
        elif line[0] not in self._started:
            self._ready[line[0]] = None
        return self._next()

    def waits_for(self, run_id: str) -> str | None:
        """The run right before it in its session; None for one that waits for a free place, or for nothing."""
        line = self._sessions.get(self._session_of.get(run_id, ""))
        if line is None or run_id in self._started:
            return None
        place = line.index(run_id)
        return line[place - 1] if place else None

    def holds(self, run_id: str) -> bool:
        """Whether the run is in the queue, started or not."""
        return run_id in self._session_of

    def is_waiting(self, run_id: str) -> bool:
        """Whether the run is in the queue and may not start yet."""
        return run_id in self._session_of and run_id not in self._started

    def _next(self) -> list[str]:
        turn: list[str] = []
        while self._ready and len(self._started) < self._max_parallel:
            run_id, _ = self._ready.popitem(last=False)
            self._started.add(run_id)
            turn.append(run_id)
        return turn
