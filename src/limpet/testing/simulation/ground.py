"""What a simulated engine stands on: a store that commits behind and can be lost, rounds of syncs, and a nursery."""

import asyncio
import contextlib
import os
from collections.abc import Callable, Generator, Iterable
from typing import Any

from limpet.config import Config
from limpet.engine.durable import Durable, Record, resolve, settled, sync_names, sync_records
from limpet.engine.ground import Ground
from limpet.engine.home import Home
from limpet.engine.nursery import Nursery
from limpet.model.items import Item, Place
from limpet.model.run import Run
from limpet.store.journals import DaemonJournal
from limpet.store.memory import MemoryRunStore
from limpet.store.runs import RunStore
from limpet.testing.simulation.loop import VirtualLoop
from limpet.testing.simulation.machine import Machine
from limpet_keeper import lean_json, system

# How much of what was put last may be missing after a crash: commits gather for so long.
COMMITS_BEHIND_S = 0.06


class SeenStore(MemoryRunStore):
    """A store in memory that remembers what was done to it, and when: any beginning of that can be had back."""

    def __init__(self, machine: Machine, done: Iterable[tuple[float, str, tuple[Any, ...]]] = ()) -> None:
        super().__init__()
        self._machine = machine
        self.done = list(done)
        self._flushed = 0
        for _, name, arguments in self.done:
            getattr(MemoryRunStore, name)(self, *arguments)

    def _note(self, name: str, *arguments: Any) -> None:
        self.done.append((self._machine.world.now_s, name, arguments))

    def put(self, run: Run, status: str, items: Iterable[Item] = (), place: Place | None = None) -> None:
        items = list(items)
        self._note("put", run, status, items, place)
        super().put(run, status, items, place)

    def forget(self, run_id: str) -> None:
        self._note("forget", run_id)
        super().forget(run_id)

    def tombstone(self, run_id: str, key: str | None, request_digest: str | None, pruned_at: int) -> None:
        self._note("tombstone", run_id, key, request_digest, pruned_at)
        super().tombstone(run_id, key, request_digest, pruned_at)

    def clear(self) -> None:
        self._note("clear")
        super().clear()

    def runs(self) -> list[Run]:
        """All that it knows, in order."""
        return [change.run for _, change in sorted(self._kept.changes.items()) if change.run is not None]

    @contextlib.contextmanager
    def one_moment(self) -> Generator[None]:
        yield

    def flush(self) -> None:
        self._flushed = len(self.done)
        self._machine.flushed.setdefault(self._machine.world.boot, self._flushed)  # a daemon's first is that one

    def crash(self) -> None:
        """The last commits may not have been made."""
        since_s = self._machine.world.now_s - COMMITS_BEHIND_S
        sure = sum(when < since_s for when, _, _ in self.done)
        self.roll_back(self._machine.world.random.randint(max(sure, self._flushed), len(self.done)))

    def roll_back(self, count: int) -> None:
        """Only so many of its changes were ever made."""
        del self.done[count:]
        self._flushed = min(self._flushed, count)


class Rounds(Durable):
    """Rounds of syncs without threads: of records and of names, neither of which waits for the other."""

    def __init__(self, home: Home, loop: VirtualLoop) -> None:  # pyright: ignore[reportMissingSuperCall]
        self._runs = home.runs
        self._virtual = loop
        self._unwritten: list[Record] = []
        self._unnamed: list[Record] = []
        self._is_writing = self._is_naming = False

    def begin(self, journal: DaemonJournal) -> asyncio.Future[None]:
        record = Record(journal, self._virtual.create_future())
        self._unwritten.append(record)
        self._unnamed.append(record)
        if not self._is_writing:
            self._is_writing = True
            self._virtual.after(None, self._write)
        if not self._is_naming:
            self._is_naming = True
            self._virtual.after(None, self._name)
        return record.future

    def _write(self) -> None:
        batch, self._unwritten = self._unwritten, []
        done = settled(sync_records(batch))
        self._virtual.after(None, lambda: resolve(done))
        self._virtual.after(None, self._go_on_writing)

    def _go_on_writing(self) -> None:
        self._is_writing = bool(self._unwritten)
        if self._is_writing:
            self._write()

    def _name(self) -> None:
        batch, self._unnamed = self._unnamed, []
        done = settled(sync_names(batch, self._runs))
        self._virtual.after(None, lambda: resolve(done))
        self._virtual.after(None, self._go_on_naming)

    def _go_on_naming(self) -> None:
        self._is_naming = bool(self._unnamed)
        if self._is_naming:
            self._name()

    def close(self) -> None:
        """What was begun is still done, as by the threads."""
        unwritten, self._unwritten = self._unwritten, []
        unnamed, self._unnamed = self._unnamed, []
        resolve(settled(sync_records(unwritten)) if unwritten else [])
        resolve(settled(sync_names(unnamed, self._runs)) if unnamed else [])


class NurseryProcess:
    """The nursery: takes lines, makes keepers, answers, in the world's time."""

    def __init__(self, machine: Machine, loop: VirtualLoop) -> None:
        self._machine = machine
        self._loop = loop
        asked, ours = os.pipe()
        theirs, told = os.pipe()
        self.stdin = os.fdopen(ours, "wb", buffering=0)
        self.stdout = os.fdopen(theirs, "rb", buffering=0)
        self._asked, self._told = asked, told
        os.set_blocking(asked, False)
        os.set_blocking(theirs, False)
        self._unread = b""
        self.is_alive = True
        self._look()

    def _look(self) -> None:
        if not self.is_alive:
            return
        with contextlib.suppress(BlockingIOError):
            self._unread += os.read(self._asked, 65536)
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            path = lean_json.decode(line)["prepare"]
            self._machine.world.soon(lambda path=path: self._prepare(path))

    def look_soon(self) -> None:
        self._machine.world.soon(self._look)

    def _prepare(self, path: str) -> None:
        if not self.is_alive:
            return
        try:
            keeper = self._machine.prepare(path)
            answer: dict[str, Any] = {"ready": path, "pid": keeper.own_pid}
        except OSError as error:
            answer = {"failed": path, "errno": system.error_name(error), "message": str(error)}
        os.write(self._told, lean_json.encode(answer).encode() + b"\n")
        if self._loop.is_alive:
            self._loop.readable(self.stdout.fileno())

    def wait(self) -> int:
        self.end()
        return 0

    def end(self) -> None:
        """Its process ends: its keepers go on."""
        if self.is_alive:
            self.is_alive = False
            os.close(self._asked)
            os.close(self._told)

    def close(self) -> None:
        """All of it, on both sides."""
        self.end()
        self.stdin.close()
        self.stdout.close()


class SeenNursery(Nursery):
    """The engine's own nursery, over such a process."""

    def __init__(self, home: Home, machine: Machine, loop: VirtualLoop) -> None:
        super().__init__(home.nursery, home.log, None)
        self._machine = machine
        self._virtual = loop
        self.processes: list[NurseryProcess] = []

    def _running_process(self) -> Any:
        if self._process is None:
            process = NurseryProcess(self._machine, self._virtual)
            self.processes.append(process)
            self._process: Any = process
            self._virtual.add_reader(process.stdout.fileno(), self._on_answer, process)
        self._process.look_soon()
        return self._process

    def die(self) -> None:
        """The nursery's process is killed."""
        for process in self.processes:
            if process.is_alive:
                process.end()
                self._virtual.readable(process.stdout.fileno())


class SimulatedGround(Ground):
    """For one engine; the store outlives it."""

    def __init__(self, machine: Machine, loop: VirtualLoop, store: SeenStore) -> None:
        self.machine = machine
        self.loop = loop
        self.store = store
        self.nursery: SeenNursery | None = None

    def open_store(self, home: Home, on_news: Callable[[], None]) -> RunStore:  # noqa: ARG002
        return self.store

    def open_durable(self, home: Home) -> Durable:
        return Rounds(home, self.loop)

    def open_nursery(self, home: Home, config: Config) -> Nursery:  # noqa: ARG002
        self.nursery = SeenNursery(home, self.machine, self.loop)
        return self.nursery

    def serial(self) -> int:
        return self.machine.world.random.getrandbits(16)
