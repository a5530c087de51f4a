"""Finds the runs that an earlier engine left: takes over the living, says what is known of the dead."""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from limpet.engine import remains
from limpet.engine.home import Home
from limpet.engine.link import KeeperLink
from limpet.engine.live_run import LiveRun
from limpet.model.errors import Refusal
from limpet.model.facts import Damaged, Found, Lost, Requeued, Wrote
from limpet.model.items import Item, Place
from limpet.model.run import ASKED_FIELDS, Phase, Run
from limpet.model.secrets import REDACTED
from limpet.model.stream import Stream
from limpet.store import disk
from limpet.store.journals import JournalReader, reaches
from limpet.store.run_directory import CONTROL_SOCKET, DAEMON_JOURNAL, KEEPER_JOURNAL, START_REQUEST, RunDirectory
from limpet.store.runs import RunFilter, RunStore
from limpet_keeper import system

LOST_MESSAGE = "its keeper died without recording an end: how the command ended is not known"
UNREADABLE_MESSAGE = "what its keeper recorded cannot be read to its end: how the command ended is not known"

_log: Final = logging.getLogger("limpet.engine")

_Told = Callable[[int, int, int], Damaged]


async def trusted(home: Home, store: RunStore, found: set[str], *, is_new_boot: bool) -> set[str]:
    """The runs that need no looking after. What the store knows of runs that have no files is forgotten.

    A power cut can take from files what the database had on disk already: then what it knows counts no more. That is
    found out before anybody is answered, since no answer is to be taken back.
    """
    over = await asyncio.to_thread(store.known_over)
    rows = [run for status in ("queued", "running") for run in await store.list(_all_of(status))]
    unsure = {run.run_id for run in rows}
    if is_new_boot:
        unsure |= over
    for run_id in unsure - found:
        store.forget(run_id)
    if not is_new_boot:
        return over
    lasting = {run_id for run_id in over & found if _has_lasted(home.run(run_id), store, run_id)}
    for run_id in sorted(over & found - lasting):
        _log.warning("the last records of run %s went with the power: it is looked at anew", run_id)
    return lasting


def _all_of(status: str) -> RunFilter:
    return RunFilter(status=status, limit=1 << 31)


def _has_lasted(path: Path, store: RunStore, run_id: str) -> bool:
    """Whether the run's files go as far as the store took them in."""
    place, run = store.place(run_id), store.get(run_id)
    if place is None or run is None or not has_all(path, place):
        return False
    directory = RunDirectory(path, place.attempt)
    return not _lacks(run, {name: directory.spool_bytes(name) for name in run.streams})


def _lacks(run: Run, sizes: dict[str, int]) -> bool:
    """Whether bytes that the run had are not there any more."""
    known = ((run.streams[name], size) for name, size in sizes.items() if name in run.streams)
    return any(stream.cut(size) != stream for stream, size in known)


def has_less(live: LiveRun) -> bool:
    """Whether a power cut took of what was there when the run's loss was recorded."""
    run = live.run
    if run.keeper is None or run.keeper.boot_id == system.boot_id():
        return False
    return _lacks(run, {name: live.directory.spool_bytes(name) for name in run.streams})


def call_keeper(live: LiveRun) -> "asyncio.Task[KeeperLink] | None":
    """The link to a living keeper, once it answers: a stopped one does when it goes on. None when there is none."""
    if not live.directory.is_kept():
        return None
    return asyncio.ensure_future(KeeperLink.connect(live.directory.kept, "state", within_s=None))


async def hang_up(calling: "asyncio.Task[KeeperLink]") -> None:
    """Its keeper, which has no run, sees that nobody wants it and goes."""
    calling.cancel()
    with contextlib.suppress(asyncio.CancelledError, OSError, Refusal):
        (await calling).close()


def has_all(path: Path, place: Place) -> bool:
    """Whether both journals of a run go as far as they were taken in."""
    kept = RunDirectory(path, place.attempt)
    return reaches(kept.daemon_journal, place.daemon_bytes, place.daemon_chain) and reaches(
        kept.keeper_journal, place.keeper_bytes, place.keeper_chain
    )


def is_preparation(live: LiveRun) -> bool:
    """Whether nothing came of it: a keeper was claimed, or a start written down, and no record says of a run."""
    reader = live.keeper_journal
    return live.run.created_at is None and reader.records <= 1 and not reader.damaged() and live.directory.is_bare()


def is_unstarted(live: LiveRun) -> bool:
    """Whether the attempt that is due has not begun: there is no keeper for it, or one that was never told to start."""
    reader, directory = live.keeper_journal, live.directory
    # What was asked for is not known where that cannot be read: it is not started by what is left.
    is_due = live.run.created_at is not None and live.run.phase is Phase.QUEUED and not live.run.damaged
    has_said = any(directory.spool_bytes(name) for name in directory.spools())
    # Nothing that a keeper wrote down before the machine went away is sure to be there: it may have begun.
    of_this_boot = live.run.keeper is None or live.run.keeper.boot_id == system.boot_id()
    is_unknown = reader.records == 0 and directory.kept.exists()
    return is_due and of_this_boot and not (has_said or reader.damaged() or is_unknown)


def is_idle(live: LiveRun) -> bool:
    """Whether a living keeper was never told to start the run."""
    return live.run.phase is Phase.QUEUED and live.keeper_journal.records <= 1


def note_damage(live: LiveRun, known: Run | None = None) -> list[Item] | None:
    """Says where a journal of the run cannot be read. What is `known` stands for a `submitted` that was among it.

    If there is damage that was not known, the run's state is another now: all of its items, anew.
    """
    damage: list[_Told] = []
    reader, journal = live.keeper_journal, live.daemon_journal
    if (lost := reader.damaged()) and KEEPER_JOURNAL not in live.run.damaged:
        damage.append(_damaged(KEEPER_JOURNAL, reader.records, reader.position, lost))
    if known is not None and (journal.damaged or live.run.created_at is None):
        damage.append(_damaged(DAEMON_JOURNAL, journal.records, journal.position, journal.damaged))
    if known is not None and live.run.created_at is None:
        asked: dict[str, Any] = {name: getattr(known, name) for name in ASKED_FIELDS}
        # It stands where the lost one stood: before all that the keeper saw.
        live.ask(lambda n, at, _: Found(n=n, at=at, after=0, **asked, submitted_at=known.created_at or 0))
    for told in damage:
        live.ask(told)
    return live.recall() if damage else None


def _damaged(file: str, records: int, offset: int, lost: bytes) -> _Told:
    return lambda n, at, after: Damaged(
        n=n, at=at, after=after, file=file, record=records + 1, offset=offset, bytes=len(lost)
    )


def settle_dead(live: LiveRun, *, may_requeue: bool = False) -> None:
    """The keeper is dead: ends what is left of its run, and records what becomes of it, unless an end is known."""
    left = remains.end_what_is_left(live.directory.keeper_journal)
    disk.remove(live.directory.kept / CONTROL_SOCKET)
    run = live.run
    sizes = spool_sizes(live)
    if may_requeue and not left and _may_start_again(live):
        live.directory.sync_kept(sizes)
        live.ask(lambda n, at, after: Requeued(n=n, at=at, after=after, attempt=run.attempt + 1, streams=sizes))
        return
    message = UNREADABLE_MESSAGE if KEEPER_JOURNAL in run.damaged else LOST_MESSAGE
    if not run.sealed or _lacks(run, sizes):
        live.ask(lambda n, at, after: Lost(n=n, at=at, after=after, streams=sizes, survivors=left, message=message))
    live.directory.remove_start(with_script=REDACTED in run.command)


def spool_sizes(live: LiveRun) -> dict[str, int]:
    """How much of each stream there is. After a boot it is less: what the page cache held may be zeros now."""
    run, directory = live.run, live.directory
    names = run.streams or directory.spools()
    # One that says nothing, not even who wrote it, went with the power too; one that is damaged tells no boot.
    if run.keeper is None:
        is_of_this_boot = bool(live.keeper_journal.damaged().strip(b"\0"))
    else:
        is_of_this_boot = run.keeper.boot_id == system.boot_id()
    if is_of_this_boot:
        return {name: directory.spool_bytes(name) for name in names}
    wrote = _wrote(live)
    sizes: dict[str, int] = {}
    for name in names:
        stream = run.streams.get(name, Stream())
        begin = stream.parts[-1]
        durable_bytes = max(stream.durable, stream.kept_from, begin) - begin
        sizes[name] = directory.cut_zeros(name, durable_bytes, wrote.get(name, ()))
    return sizes


def _wrote(live: LiveRun) -> dict[str, list[int]]:
    """Where each write of the latest attempt began, by stream, and where the last one that is known of ended."""
    reader = JournalReader(live.directory.keeper_journal)
    facts = [fact for fact in reader.read_new() if isinstance(fact, Wrote)]
    reader.close()
    ends = {fact.stream: fact.end for fact in facts}
    return {name: [*(fact.start for fact in facts if fact.stream == name), end] for name, end in ends.items()}


def _may_start_again(live: LiveRun) -> bool:
    """Whether a run that nothing is left of is to be started again: it may, and nobody asked for its end."""
    run = live.run
    is_asked_for = run.on_lost == "requeue" and not run.is_over and not run.stopping
    return is_asked_for and not run.damaged and (live.directory.path / START_REQUEST).is_file()


async def clear_unstarted(live: LiveRun) -> None:
    """Takes away a keeper that was claimed for the attempt that is due and never told to start."""
    kept = live.directory.kept
    if not kept.exists():
        return
    if live.run.keeper is not None and live.run.keeper.boot_id == system.boot_id():
        remains.kill_exactly(live.run.keeper)
    await asyncio.to_thread(live.directory.wait_unkept)
    disk.remove_tree(kept)
    live.recall()
