"""STORE: rows a second into the database, and what its reads cost among few and many; a page of a large spool."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path

from bench.measure import Row, Series, Setting
from limpet.model.items import Item, Place
from limpet.model.run import Run
from limpet.store.file_blobs import FileBlobs
from limpet.store.runs import RunFilter
from limpet.store.sqlite import SqliteRunStore

MIB = 1 << 20


def doors(setting: Setting) -> list[Row]:
    """Both doors to storage, without a daemon."""
    return [*_rows(setting), *_runs(setting), _blobs(setting)]


def _run(number: int) -> Run:
    env = {f"NAME_{place}": "value" * 4 for place in range(20)}
    return Run(run_id=f"{number:013d}", session_id=f"s{number % 100}", command=f"make target-{number}", env=env)


def _output(seq: int, stream: str) -> Item:
    return Item(seq=seq, ts=seq, kind="output", stream=stream, start=seq * 100, end=seq * 100 + 100)


def _rows(setting: Setting) -> list[Row]:
    store = SqliteRunStore(setting.directory("items") / "sessions.db")
    run = _run(0)
    rates: Series = []
    pages: dict[int, Series] = {}
    lags: Series = []
    counts = [10**3, 10**5] if setting.quick else [10**3, 10**5, 10**6]
    written = 0
    for count in counts:
        begun, before = time.perf_counter(), written
        lags += asyncio.run(_put_items(store, run, written + 1, count))
        store.flush()
        written = count
        if written - before >= 10**5 - 10**3:
            rates.append((written - before) / (time.perf_counter() - begun))
        pages[count] = _time(lambda end=written: store.items(run.run_id, end // 2, 100, "stderr"), 200)
    store.close()
    few, many = pages[counts[0]], pages[counts[-1]]
    return [
        Row("STORE", "items into the database, one a put", "rows/s", rates, at_least=100_000, of_value=True),
        Row("STORE", "turn of the event loop that puts 100 of them", "ms", lags),
        Row("STORE", f"page of a stream, {counts[-1]} items (limit: {counts[0]})", "ms", many, few, at_most=1.5),
    ]


async def _put_items(store: SqliteRunStore, run: Run, first: int, last: int) -> Series:
    """How long each turn of the loop took."""
    turns: Series = []
    for begin in range(first, last + 1, 100):
        begun = time.perf_counter()
        for seq in range(begin, min(begin + 100, last + 1)):
            item = _output(seq, "stderr" if seq % 4 == 0 else "stdout")
            store.put(run, "running", (item,), Place(keeper_records=seq))
        await asyncio.sleep(0)
        turns.append((time.perf_counter() - begun) * 1000)
    return turns


def _runs(setting: Setting) -> list[Row]:
    path = setting.directory("runs") / "sessions.db"
    store = SqliteRunStore(path)
    count = 10**4 if setting.quick else 10**5
    for number in range(count):
        store.put(_run(number), "completed")
        if number % 1000 == 0:
            store.flush()
    store.flush()
    text = f"target-{count // 2}"
    rows = [
        Row("STORE", f"{what}, {count} runs", "ms", _time(read, 10))
        for what, read in (
            ("get", lambda: store.get(_run(count // 2).run_id)),
            ("list, 100 of a session", lambda: asyncio.run(store.list(RunFilter(session_id="s7")))),
            ("list, one by a text that is rare", lambda: asyncio.run(store.list(RunFilter(text=text)))),
        )
    ]
    store.close()
    rows.append(Row("STORE", f"open and check, {count} runs", "ms", _time(lambda: SqliteRunStore(path).close(), 3)))
    return rows


def _blobs(setting: Setting) -> Row:
    root = setting.directory("blobs")
    size = 64 * MIB if setting.quick else 1024 * MIB
    spool = root / "runs" / "r" / "1" / "stdout.spool"
    _fill(spool, size)
    blobs, chance = FileBlobs(root), random.Random(1)
    places = [chance.randrange(size - 65536) for _ in range(2000)]
    taken = iter(places)
    times = _time(lambda: blobs.read("runs/r/1/stdout.spool", next(taken), 65536), len(places))
    blobs.close()
    return Row("STORE", f"64 KiB at a random place of {size // MIB} MiB", "ms", times)


def _fill(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        for _ in range(size // MIB):
            file.write(random.Random(1).randbytes(4096) * 256)


def _time(read: Callable[[], object], times: int) -> Series:
    taken: Series = []
    for _ in range(times):
        begun = time.perf_counter()
        read()
        taken.append((time.perf_counter() - begun) * 1000)
    return taken
