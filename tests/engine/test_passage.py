"""A passage looks at each byte once and in order, whatever holes, attempts, ends and growth lie on its way."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import msgspec
import pytest

from limpet.engine import passage
from limpet.engine.matching import Hit, compile_pattern
from limpet.engine.passage import Passage
from limpet.model.run import Run
from limpet.model.stream import Stream
from limpet.store.memory_blobs import MemoryBlobs


class Talk:
    """A run whose bytes and holes a test lays out, attempt by attempt."""

    def __init__(self, *attempts: bytes, **stream: Any) -> None:
        self.blobs = MemoryBlobs()
        parts, size = [0], 0
        for number, data in enumerate(attempts, start=1):
            self.blobs.write(f"runs/r/{number}/stdout.spool", 0, data)
            size += len(data)
            parts.append(size)
        self.stream = Stream(bytes=size, parts=tuple(parts[: len(attempts)]), **stream)
        self.to_come: list[Stream] = []

    def run(self) -> Run:
        return Run(run_id="r", streams={"stdout": self.stream}, attempt=len(self.stream.parts))

    def catch_up(self) -> None:
        if self.to_come:
            self.stream = self.to_come.pop(0)

    def passage(self, pattern: str, offset: int = 0, match_type: Any = "regex") -> Passage[Hit]:
        begin = compile_pattern(pattern, match_type).scanner
        return Passage(self.run, self.catch_up, self.blobs, ThreadPoolExecutor(1), "stdout", offset, begin)


def spans(hits: list[Hit]) -> list[tuple[int, int]]:
    return [(hit.start, hit.end) for hit in hits]


def test_each_byte_once_however_it_grows() -> None:
    talk = Talk(b"needle nee", open=True)
    looking = talk.passage("needle")
    assert spans(asyncio.run(looking.go_on())) == [(0, 6)]
    assert asyncio.run(looking.go_on()) == []
    talk.blobs.write("runs/r/1/stdout.spool", 10, b"dle")
    talk.stream = msgspec.structs.replace(talk.stream, bytes=13)
    assert looking.restart_at <= 7
    assert spans(asyncio.run(looking.go_on())) == [(7, 13)]
    assert looking.finish() == []


@pytest.mark.requirement("1.8", "1.11")
def test_no_match_goes_on_from_one_attempt_to_the_next() -> None:
    talk = Talk(b"end needle", b" then need", b"le needle", open=False)
    looking = talk.passage(r"needle$|^ then|^le")
    assert spans(asyncio.run(looking.go_on())) == [(4, 10), (10, 15), (20, 22)]
    assert spans(looking.finish()) == [(23, 29)]


@pytest.mark.requirement("0.7", "1.5")
def test_what_is_gone_is_missed_and_said() -> None:
    talk = Talk(b"needle" + b"\0" * 20 + b"dle needle\nneedle", holes=((8, 26),), open=True)
    looking = talk.passage("^needle|nee|dle")
    assert spans(asyncio.run(looking.go_on())) == [(0, 3), (3, 6), (26, 29), (30, 33), (33, 36), (37, 40), (40, 43)]
    assert looking.missed == [(8, 26)]


@pytest.mark.requirement("0.7", "1.5")
def test_a_hole_that_is_made_while_it_is_read_is_missed_and_said() -> None:
    """Injector: the hole is told only when the bytes, zeros by then, have been read."""
    talk = Talk(b"\0" * 1000 + b"needle", open=True)
    looking = talk.passage(r"\x00|needle")
    talk.to_come = [msgspec.structs.replace(talk.stream, holes=((0, 1000),))]
    assert spans(asyncio.run(looking.go_on())) == [(1000, 1006)]
    assert looking.missed == [(0, 1000)]


@pytest.mark.requirement("0.8")
def test_what_survivors_wrote_is_not_looked_at() -> None:
    talk = Talk(b"needle need" + b"le needle", ended_at=11, open=True)
    looking = talk.passage("needle")
    assert spans(asyncio.run(looking.go_on()) + looking.finish()) == [(0, 6)]
    assert looking.position == 11


@pytest.mark.requirement("3.5")
def test_a_passage_that_begins_in_a_line_knows_what_stands_before() -> None:
    talk = Talk(b"a needle\nneedle", open=False)
    looking = talk.passage("^needle", offset=2)
    assert spans(asyncio.run(looking.go_on()) + looking.finish()) == [(9, 15)]


@pytest.mark.requirement("3.5")
def test_much_at_once_goes_through_the_thread_and_stops_when_nobody_waits() -> None:
    talk = Talk(b"x" * (4 * passage.AT_ONCE_BYTES) + b"needle", open=False)
    looking = talk.passage("needle")
    hits = asyncio.run(looking.go_on(to_first=True))
    assert spans(hits) == [(4 * passage.AT_ONCE_BYTES, 4 * passage.AT_ONCE_BYTES + 6)]

    async def leave() -> None:
        task = asyncio.ensure_future(talk.passage("needle").go_on())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(leave())
