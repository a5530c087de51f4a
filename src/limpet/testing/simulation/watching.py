"""What a client of a simulated daemon knows of its runs, and what no later answer may contradict."""

from typing import Final

import msgspec

from limpet.dialects.shell.types import ItemInfo, ShellRequest, ShellResponse
from limpet.testing.simulation.machine import Attempt
from limpet.testing.simulation.world import World

_ORDER: Final = {"queued": 0, "running": 1}
_END: Final = 2


class Asked:
    """One run that a client asked for: what it was told of it so far."""

    def __init__(self, world: World, number: int, request: ShellRequest) -> None:
        self.world = world
        self.number = number
        self.request = request
        self.run_id: str | None = None
        # Refused for good, or nobody asks again.
        self.is_given_up = False
        self.is_pruned = False
        self.items: dict[int, ItemInfo] = {}
        self.cursor = 0
        self.rank = (0, 0)
        self.end: tuple[object, ...] | None = None
        self.attempts: list[Attempt] = []

    @property
    def session(self) -> str | None:
        return self.request.session_id

    def answered(self, run_id: str) -> None:
        """A start was answered."""
        if self.run_id not in (None, run_id):
            raise self.world.violation(f"call {self.number} was answered with {self.run_id}, then with {run_id}")
        self.run_id = run_id

    def began(self, attempt: Attempt) -> None:
        """The command was executed."""
        for other in self.attempts:
            if other.run_id != attempt.run_id:
                raise self.world.violation(f"call {self.number} started {other.run_id} and {attempt.run_id}")
            if other.number == attempt.number:
                raise self.world.violation(f"{attempt.run_id} was started twice in attempt {attempt.number}")
            if other.process.is_alive:
                raise self.world.violation(f"{attempt.run_id} was started again beside itself")
            if other.is_kept_to_the_end:
                raise self.world.violation(f"{attempt.run_id} was started again after its end")
        self.attempts.append(attempt)

    def polled(self, answer: ShellResponse, since_seq: int) -> None:
        """An answer to `poll`."""
        status, attempt = str(answer.status), int(answer.attempt or 0)
        rank = (attempt, _ORDER.get(status, _END))
        if rank < self.rank:
            raise self.world.violation(f"{self.run_id} went from {self.rank} back to {rank} ({status})")
        self.rank = rank
        if rank[1] == _END:
            end = (status, attempt, answer.exit_code, answer.signal, answer.ended_by, answer.finished_at)
            if self.end not in (None, end):
                raise self.world.violation(f"{self.run_id} ended as {self.end}, then as {end}")
            self.end = end
        elif self.end is not None:
            raise self.world.violation(f"{self.run_id} had ended as {self.end}, and is {status} again")
        self.logged(answer, since_seq, None)

    def logged(self, answer: ShellResponse, since_seq: int, stream: str | None) -> None:
        """A page of items: what was seen once stays as it was."""
        assert answer.items is not msgspec.UNSET
        assert answer.next_seq is not msgspec.UNSET
        place = since_seq
        for item in answer.items:
            if (stream is None and item.seq != place + 1) or item.seq <= place:
                raise self.world.violation(f"{self.run_id}: item {item.seq} stands behind {place}")
            place = item.seq
            known = self.items.setdefault(item.seq, item)
            if known != item:
                raise self.world.violation(f"{self.run_id}: item {item.seq} was {known}, and is {item}")
        if answer.next_seq < place or (stream is None and answer.next_seq != place):
            raise self.world.violation(f"{self.run_id}: the next cursor is {answer.next_seq} behind item {place}")
        self.cursor = max(self.cursor, answer.next_seq)

    def forget(self) -> None:
        """The power was cut: what was not on disk may have been otherwise."""
        self.items.clear()
        self.cursor, self.rank, self.end = 0, (0, 0), None

    def last(self) -> Attempt | None:
        return max(self.attempts, key=lambda attempt: attempt.number, default=None)
