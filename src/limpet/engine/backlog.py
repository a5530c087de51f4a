"""The backlog of each session: hits of its runs that nobody has acked, handed out under leases."""

import asyncio
import logging
import secrets
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import msgspec

from limpet.config import BacklogConfig
from limpet.engine import clock
from limpet.model.errors import Refusal
from limpet.store.acks import Acks, Mark, Record

_log: Final = logging.getLogger("limpet.engine")

Hit = tuple[str, int]
"""A run's id and the seq of its item. They are in the order in which they are handed out."""


class Lease(msgspec.Struct, kw_only=True):
    """What was handed out to somebody, until when, and what they were told was missing."""

    hits: list[Hit]
    until_s: float
    dropped: int = 0
    pruned: dict[str, int] = {}


class Taken(msgspec.Struct, frozen=True, kw_only=True):
    """The oldest that were free, and how many were dropped for others or pruned since somebody was told last."""

    hits: Sequence[Hit] = ()
    lease: str | None = None
    dropped: int = 0
    pruned: int = 0


class _Session:
    """One session's hits that are not acked, in order; to whom each was handed out last; and what is to be told."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self.owners: dict[Hit, str] = {}
        self.leases: dict[str, Lease] = {}
        self.dropped = 0
        self.pruned: dict[str, int] = {}
        self.waiting: set[asyncio.Future[None]] = set()

    def has(self, hit: Hit) -> bool:
        place = bisect_left(self.hits, hit)
        return self.hits[place : place + 1] == [hit]

    def is_free(self, hit: Hit, now_s: float) -> bool:
        owner = self.owners.get(hit)
        return owner is None or self.leases[owner].until_s <= now_s

    def void(self, name: str) -> None:
        """Ends a lease: what is still there of it is nobody's."""
        for hit in self.leases.pop(name).hits:
            if self.owners.get(hit) == name:
                del self.owners[hit]

    def remove(self, hits: set[Hit]) -> None:
        self.hits = [hit for hit in self.hits if hit not in hits]
        for hit in hits:
            self.owners.pop(hit, None)

    def lowest_left(self, run_id: str, done: set[Hit]) -> int | None:
        """The first hit of the run that is still there when these are not."""
        for place in range(bisect_left(self.hits, (run_id, 0)), len(self.hits)):
            hit = self.hits[place]
            if hit[0] != run_id:
                return None
            if hit not in done:
                return hit[1]
        return None


class Backlog:
    """For the event loop alone; only acks wait for the disk, in a thread."""

    def __init__(self, acks: Acks, config: BacklogConfig, disk: ThreadPoolExecutor) -> None:
        self._acks = acks
        self._config = config
        self._disk = disk
        self._sessions: dict[str, _Session] = {}
        self._session_of: dict[str, str] = {}
        self._session_of_lease: dict[str, str] = {}
        self._acking: dict[str, asyncio.Future[int]] = {}
        self._dropped: dict[str, list[int]] = {}
        self._is_writing = False
        self.is_loaded = asyncio.Event()

    def recall(self) -> None:
        """What the journal of acks, which is open, says was not told yet."""
        for session_id, count in self._acks.dropped.items():
            self._session(session_id).dropped = count
        for run_id, (session_id, count) in self._acks.pruned.items():
            self._session(session_id).pruned[run_id] = count

    def _session(self, session_id: str) -> _Session:
        return self._sessions.setdefault(session_id, _Session())

    @property
    def count(self) -> int:
        """How many messages wait in all."""
        return sum(len(session.hits) for session in self._sessions.values())

    def put(self, session_id: str, run_id: str, seq: int) -> None:
        """Takes a hit in, once; the oldest of its session goes when there are too many."""
        session, hit = self._session(session_id), (run_id, seq)
        if session.has(hit) or self._acks.holds(run_id, seq):
            return
        insort(session.hits, hit)
        self._session_of[run_id] = session_id
        if len(session.hits) > self._config.max_messages:
            self._drop_one(session)
        for future in session.waiting:
            if not future.done():
                future.set_result(None)

    def _drop_one(self, session: _Session) -> None:
        """The oldest that is not handed out; of those that are, none: they are about to be acked."""
        now_s = clock.passed_s()
        place = next((place for place, hit in enumerate(session.hits) if session.is_free(hit, now_s)), None)
        if place is None:
            return
        run_id, seq = session.hits.pop(place)
        session.owners.pop((run_id, seq), None)
        session.dropped += 1
        self._dropped.setdefault(run_id, []).append(seq)
        if not self._is_writing:
            self._is_writing = True
            asyncio.get_running_loop().call_soon(self._write_dropped)

    def _write_dropped(self) -> None:
        """In the background, all that were dropped meanwhile at once."""
        dropped, self._dropped = self._dropped, {}
        record = Record(
            at=clock.now_ms(),
            marks={run_id: self._mark(run_id, seqs) for run_id, seqs in dropped.items()},
            dropped={name: self._session(name).dropped for name in {self._session_of[run_id] for run_id in dropped}},
        )
        writing = asyncio.get_running_loop().run_in_executor(self._disk, lambda: self._acks.put(record, sync=False))
        writing.add_done_callback(self._wrote_dropped)

    def _wrote_dropped(self, writing: "asyncio.Future[None]") -> None:
        self._is_writing = False
        if not writing.cancelled() and (error := writing.exception()) is not None:
            _log.warning("messages that were dropped may come back after a restart: %s", error)
        if self._dropped:
            self._is_writing = True
            self._write_dropped()

    def _mark(self, run_id: str, seqs: Iterable[int]) -> Mark:
        done = {(run_id, seq) for seq in seqs}
        session = self._sessions[self._session_of[run_id]]
        return self._acks.mark_after(run_id, (seq for _, seq in done), session.lowest_left(run_id, done))

    # Handing out.

    async def take(self, session_id: str, most: int, wait_ms: int = 0) -> Taken:
        """The oldest free messages under a lease; waits for the first as long as is said."""
        await self.is_loaded.wait()
        until_s = clock.passed_s() + wait_ms / 1000
        while True:
            session, now_s = self._session(session_id), clock.passed_s()
            taken = self._lease(session_id, session, most, now_s)
            if taken.lease is not None or now_s >= until_s:
                self._leave_if_empty(session_id, session)
                return taken
            ends_s = [lease.until_s for lease in session.leases.values() if lease.until_s > now_s]
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            session.waiting.add(future)
            try:
                await asyncio.wait({future}, timeout=min([until_s, *ends_s]) - now_s)
            finally:
                session.waiting.discard(future)
                future.cancel()

    def _lease(self, session_id: str, session: _Session, most: int, now_s: float) -> Taken:
        free = (hit for hit in session.hits if session.is_free(hit, now_s))
        hits = [hit for hit, _ in zip(free, range(most), strict=False)]
        over = [name for name, lease in session.leases.items() if lease.until_s <= now_s]
        taken_again = {session.owners.get(hit) for hit in hits}
        for name in over:
            # One that is over still counts until somebody else has a part of what it was for.
            if name in taken_again or not session.leases[name].hits:
                self._void(session, name)
        is_told = any(lease.until_s > now_s and (lease.dropped or lease.pruned) for lease in session.leases.values())
        dropped, pruned = (0, {}) if is_told else (session.dropped, dict(session.pruned))
        if not hits and not dropped and not pruned:
            return Taken()
        name = secrets.token_hex(16)
        until_s = now_s + self._config.lease_s
        session.leases[name] = Lease(hits=hits, until_s=until_s, dropped=dropped, pruned=pruned)
        session.owners.update(dict.fromkeys(hits, name))
        self._session_of_lease[name] = session_id
        return Taken(hits=hits, lease=name, dropped=dropped, pruned=sum(pruned.values()))

    def _void(self, session: _Session, name: str) -> None:
        session.void(name)
        self._session_of_lease.pop(name, None)

    def _leave_if_empty(self, session_id: str, session: _Session) -> None:
        if not (session.hits or session.leases or session.waiting or session.dropped or session.pruned):
            self._sessions.pop(session_id, None)

    async def ack(self, lease: str) -> int:
        """Removes for good what was handed out under the lease; how many that were. On disk when it returns."""
        await self.is_loaded.wait()
        if lease in self._acks.leases:
            return self._acks.leases[lease]
        acking = self._acking.get(lease)
        if acking is None:
            if lease not in self._session_of_lease:
                message = "`lease` is none, or it is over and its messages were handed out again: take them anew"
                raise Refusal("gone", message, reason="lease_over", field="lease")
            acking = self._acking[lease] = asyncio.ensure_future(self._ack(lease))
            acking.add_done_callback(lambda _: self._acking.pop(lease))
        return await asyncio.shield(acking)

    async def _ack(self, name: str) -> int:
        session_id = self._session_of_lease[name]
        session = self._sessions[session_id]
        lease = session.leases[name]
        lease.until_s = float("inf")  # nobody else is to get them while the disk works
        hits = {hit for hit in lease.hits if session.has(hit)}
        seqs: dict[str, list[int]] = {}
        for run_id, seq in hits:
            seqs.setdefault(run_id, []).append(seq)
        record = Record(
            at=clock.now_ms(),
            marks={
                run_id: self._acks.mark_after(run_id, done, session.lowest_left(run_id, hits))
                for run_id, done in seqs.items()
            },
            leases={name: len(hits)},
            dropped={session_id: session.dropped - lease.dropped} if lease.dropped else {},
            pruned=dict.fromkeys(lease.pruned, (session_id, 0)),
        )
        try:
            await asyncio.get_running_loop().run_in_executor(self._disk, lambda: self._acks.put(record, sync=True))
        except OSError as error:
            lease.until_s = 0.0
            message = f"the ack could not be put on disk ({error.strerror}): nothing was removed; ask again"
            raise Refusal("unavailable", message, reason="storage_full") from error
        session.remove(hits)
        session.dropped -= lease.dropped
        for run_id in lease.pruned:
            session.pruned.pop(run_id, None)
        self._void(session, name)
        self._leave_if_empty(session_id, session)
        return len(hits)

    # Runs that are pruned.

    async def will_prune(self, run_ids: Iterable[str]) -> None:
        """Puts on disk how many messages are about to go with runs."""
        going: dict[str, tuple[str, int]] = {}
        for run_id in run_ids:
            session_id = self._session_of.get(run_id)
            if session_id is not None and (count := len(self._hits_of(run_id))):
                going[run_id] = (session_id, count)
        if going:
            record = Record(at=clock.now_ms(), pruned=going)
            try:
                await asyncio.get_running_loop().run_in_executor(self._disk, lambda: self._acks.put(record, sync=True))
            except OSError as error:  # a full disk is to be made room on all the more
                _log.warning("that %d runs take messages along is not told after a restart: %s", len(going), error)

    def pruned(self, run_ids: Iterable[str]) -> None:
        """The runs are gone, their messages with them."""
        run_ids = list(run_ids)
        for run_id in run_ids:
            hits = set(self._hits_of(run_id))
            session_id = self._session_of.pop(run_id, None)
            if session_id is not None and hits:
                session = self._sessions[session_id]
                session.remove(hits)
                session.pruned[run_id] = len(hits)
        self._acks.forget(run_ids)

    def _hits_of(self, run_id: str) -> list[Hit]:
        session = self._sessions.get(self._session_of.get(run_id, ""))
        if session is None:
            return []
        first, behind = (bisect_left(session.hits, (run_id, seq)) for seq in (0, 1 << 62))
        return session.hits[first:behind]
