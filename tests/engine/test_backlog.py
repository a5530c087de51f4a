"""The backlog: what is acked is gone, what is not comes back, and what is lost on the way is told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from limpet.config import BacklogConfig
from limpet.engine.backlog import Backlog, Taken
from limpet.model.errors import Refusal
from limpet.store.acks import Acks

RUN = "0000000000001"
LATER_RUN = "0000000000002"
Work = Callable[[Backlog], Awaitable[None]]


def with_backlog(path: Path, work: Work, **config: float) -> Acks:
    """A backlog on the journal at that path, as an engine that starts would have it."""

    async def run() -> Acks:
        acks = Acks(path / "backlog.journal")
        acks.open(lambda run_id: run_id in (RUN, LATER_RUN))
        with ThreadPoolExecutor(1) as disk:
            backlog = Backlog(acks, BacklogConfig(**config), disk)  # pyright: ignore[reportArgumentType]
            backlog.recall()
            backlog.is_loaded.set()
            await work(backlog)
        return acks

    return asyncio.run(run())


def fill(backlog: Backlog, count: int, run_id: str = RUN, session: str = "s") -> None:
    for seq in range(1, count + 1):
        backlog.put(session, run_id, seq)


def seqs(taken: Taken) -> list[int]:
    return [seq for _, seq in taken.hits]


async def refused(work: Awaitable[object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        await work
    return caught.value


@pytest.mark.requirement("1.9")
def test_acked_is_gone_for_good(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        fill(backlog, 5)
        first = await backlog.take("s", 3)
        assert seqs(first) == [1, 2, 3]
        assert first.lease is not None
        assert seqs(await backlog.take("s", 100)) == [4, 5]
        assert (await backlog.take("s", 100)).lease is None
        assert await backlog.ack(first.lease) == 3
        assert await backlog.ack(first.lease) == 3, "an ack whose answer was lost is asked again"

    async def after_a_restart(backlog: Backlog) -> None:
        fill(backlog, 5)
        again = await backlog.take("s", 100)
        assert seqs(again) == [4, 5]

    acks = with_backlog(tmp_path, work)
    lease = next(iter(acks.leases))
    with_backlog(tmp_path, after_a_restart)

    async def known(backlog: Backlog) -> None:
        assert await backlog.ack(lease) == 3

    with_backlog(tmp_path, known)


@pytest.mark.requirement("1.9")
def test_a_lease_that_was_never_given_is_none(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        fill(backlog, 2)
        taken = await backlog.take("s", 1)
        assert taken.lease is not None
        forged = ("1" if taken.lease[0] == "0" else "0") + taken.lease[1:]
        refusal = await refused(backlog.ack(forged))
        assert (refusal.code, refusal.reason) == ("gone", "lease_over")
        assert await backlog.ack(taken.lease) == 1

    with_backlog(tmp_path, work)


@pytest.mark.requirement("1.9")
def test_what_is_not_acked_in_time_comes_back(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        fill(backlog, 2)
        first = await backlog.take("s", 2)
        began = time.monotonic()
        second = await backlog.take("s", 1, wait_ms=20_000)
        assert 0.05 < time.monotonic() - began < 10, "the wait ends when the lease does"
        assert seqs(second) == [1]
        assert first.lease is not None
        assert (await refused(backlog.ack(first.lease))).reason == "lease_over", "a part of it is another's by now"
        assert second.lease is not None
        assert await backlog.ack(second.lease) == 1
        assert seqs(await backlog.take("s", 9)) == [2]

    with_backlog(tmp_path, work, lease_s=0.1)


@pytest.mark.requirement("1.9")
def test_a_late_ack_counts_while_nobody_else_has_them(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        fill(backlog, 1)
        taken = await backlog.take("s", 1)
        assert taken.lease is not None
        await asyncio.sleep(0.11)  # past the lease: this is the time itself, not a wait for something
        assert await backlog.ack(taken.lease) == 1
        assert (await backlog.take("s", 1)).lease is None

    with_backlog(tmp_path, work, lease_s=0.1)


@pytest.mark.requirement("1.9", "0.7")
def test_the_oldest_go_when_there_are_too_many_and_that_is_told(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        fill(backlog, 3)
        held = await backlog.take("s", 1)
        for seq in range(4, 9):
            backlog.put("s", RUN, seq)
        assert backlog.count == 3
        taken = await backlog.take("s", 100)
        assert (seqs(taken), taken.dropped) == ([7, 8], 5), "the first is handed out: it does not go"
        assert (await backlog.take("s", 100)).dropped == 0, "told to one at a time"
        assert taken.lease is not None
        assert held.lease is not None
        assert await backlog.ack(taken.lease) == 2
        assert await backlog.ack(held.lease) == 1

    async def after_a_restart(backlog: Backlog) -> None:
        fill(backlog, 8)
        taken = await backlog.take("s", 100)
        assert (taken.hits, taken.dropped, taken.lease) == ((), 0, None)

    with_backlog(tmp_path, work, max_messages=3)
    with_backlog(tmp_path, after_a_restart, max_messages=3)


@pytest.mark.requirement("1.9", "0.7")
def test_what_was_dropped_and_not_told_is_told_after_a_restart(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        fill(backlog, 5)
        await backlog.take("s", 1)

    async def after_a_restart(backlog: Backlog) -> None:
        fill(backlog, 5)
        taken = await backlog.take("s", 100)
        assert (seqs(taken), taken.dropped) == ([4, 5], 3)

    with_backlog(tmp_path, work, max_messages=2)
    with_backlog(tmp_path, after_a_restart, max_messages=2)


@pytest.mark.requirement("1.9", "0.7", "1.12")
def test_pruned_runs_take_their_messages_along_and_that_is_told(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        fill(backlog, 3)
        fill(backlog, 2, LATER_RUN)
        await backlog.will_prune([RUN])
        backlog.pruned([RUN])
        taken = await backlog.take("s", 100)
        assert (taken.hits, taken.pruned) == ([(LATER_RUN, 1), (LATER_RUN, 2)], 3)
        assert taken.lease is not None
        assert await backlog.ack(taken.lease) == 2

    acks = with_backlog(tmp_path, work)
    assert acks.pruned == {}


@pytest.mark.requirement("1.9", "F16")
def test_a_full_disk_is_no_reason_to_keep_old_runs(tmp_path: Path) -> None:
    """Injector: a directory stands where the journal is to be."""

    async def work(backlog: Backlog) -> None:
        fill(backlog, 3)
        (tmp_path / "backlog.journal").mkdir()
        await backlog.will_prune([RUN])
        backlog.pruned([RUN])
        assert (await backlog.take("s", 9)).pruned == 3

    with_backlog(tmp_path, work)


@pytest.mark.requirement("1.9")
def test_acks_at_the_same_time(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        fill(backlog, 100)
        leases = [taken.lease for _ in range(10) if (taken := await backlog.take("s", 10)).lease is not None]
        twice = [*leases, *reversed(leases)]
        assert await asyncio.gather(*map(backlog.ack, twice)) == [10] * 20
        assert backlog.count == 0

    async def after_a_restart(backlog: Backlog) -> None:
        fill(backlog, 101)
        assert seqs(await backlog.take("s", 1000)) == [101]

    with_backlog(tmp_path, work)
    with_backlog(tmp_path, after_a_restart)


@pytest.mark.requirement("1.9", "F16")
def test_an_ack_that_the_disk_refuses_removes_nothing(tmp_path: Path) -> None:
    """Injector: a directory stands where the journal is to be."""

    async def work(backlog: Backlog) -> None:
        fill(backlog, 2)
        taken = await backlog.take("s", 2)
        assert taken.lease is not None
        (tmp_path / "backlog.journal").mkdir()
        assert (await refused(backlog.ack(taken.lease))).code == "unavailable"
        (tmp_path / "backlog.journal").rmdir()
        assert await backlog.ack(taken.lease) == 2

    with_backlog(tmp_path, work)


@pytest.mark.requirement("1.9")
def test_a_wait_ends_with_the_first_message(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        waiting = asyncio.ensure_future(backlog.take("s", 9, wait_ms=20_000))
        others = asyncio.ensure_future(backlog.take("t", 9, wait_ms=1))
        await others
        assert not waiting.done()
        backlog.put("s", RUN, 7)
        assert seqs(await waiting) == [7]

    with_backlog(tmp_path, work)


@pytest.mark.requirement("1.9")
def test_a_hundred_thousand_messages(tmp_path: Path) -> None:
    async def work(backlog: Backlog) -> None:
        began = time.process_time()
        for number in range(100):
            fill(backlog, 1000, f"{number:013d}", session="big")
        got: list[tuple[str, int]] = []
        while (taken := await backlog.take("big", 1000)).lease is not None:
            got += taken.hits
            await backlog.ack(taken.lease)
        assert got == [(f"{number:013d}", seq) for number in range(100) for seq in range(1, 1001)]
        assert time.process_time() - began < 20

    with_backlog(tmp_path, work, max_messages=200_000)
    assert (tmp_path / "backlog.journal").stat().st_size < 1 << 20
