"""Finds the runs that an earlier engine left: takes over the living, says what is known of the dead."""

import asyncio
import contextlib
import os
import select
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from limpet.engine import clock
from limpet.engine.link import KeeperLink
from limpet.engine.live_run import LiveRun
from limpet.model.errors import Refusal
from limpet.model.facts import Damaged, Found, Lost, Prepared, Requeued, Started, Starting, Witness
from limpet.model.items import Item, Place
from limpet.model.run import ASKED_FIELDS, Phase, Run
from limpet.model.secrets import REDACTED
from limpet.model.stream import Stream
from limpet.store.journals import JournalReader, reaches
from limpet.store.run_directory import CONTROL_SOCKET, DAEMON_JOURNAL, KEEPER_JOURNAL, START_REQUEST, RunDirectory
from limpet_keeper import system

LOST_MESSAGE = "its keeper died without recording an end: how the command ended is not known"
UNREADABLE_MESSAGE = "what its keeper recorded cannot be read to its end: how the command ended is not known"

# How long one waits for processes that were killed to be gone.
GONE_WITHIN_S = 0.5

_Told = Callable[[int, int, int], Damaged]


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
    """Whether both journals of a run go as far as they were taken in; no for one that was pruned meanwhile."""
    kept = RunDirectory(path, place.attempt)
    return not path.exists() or (
        reaches(kept.daemon_journal, place.daemon_bytes, place.daemon_chain)
        and reaches(kept.keeper_journal, place.keeper_bytes, place.keeper_chain)
    )


def is_preparation(live: LiveRun) -> bool:
    """Whether nothing came of it: a keeper was claimed, or a start written down, and no record says of a run."""
    reader = live.keeper_journal
    return live.run.created_at is None and reader.records <= 1 and not reader.damaged() and live.directory.is_bare()


def is_unstarted(live: LiveRun) -> bool:
    """Whether the attempt that is due has not begun: there is no keeper for it, or one that was never told to start."""
    reader, directory = live.keeper_journal, live.directory
    is_due = live.run.created_at is not None and live.run.phase is Phase.QUEUED
    has_said = any(directory.spool_bytes(name) for name in directory.spools())
    return is_due and not has_said and not reader.damaged() and not (reader.records == 0 and directory.kept.exists())


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
    left = end_what_is_left(live.directory.keeper_journal)
    (live.directory.kept / CONTROL_SOCKET).unlink(missing_ok=True)
    run = live.run
    sizes = spool_sizes(live)
    if may_requeue and not left and _may_start_again(live):
        live.directory.sync_kept(sizes)
        live.ask(lambda n, at, after: Requeued(n=n, at=at, after=after, attempt=run.attempt + 1, streams=sizes))
        return
    message = UNREADABLE_MESSAGE if KEEPER_JOURNAL in run.damaged else LOST_MESSAGE
    if not run.sealed:
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
    sizes: dict[str, int] = {}
    for name in names:
        stream = run.streams.get(name, Stream())
        begin = stream.parts[-1]
        sizes[name] = directory.cut_zeros(name, max(stream.durable, stream.kept_from, begin) - begin)
    return sizes


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
        _kill_exactly(live.run.keeper)
    await asyncio.to_thread(live.directory.wait_unkept)
    shutil.rmtree(kept)
    live.recall()


def _kill_exactly(process: Witness) -> None:
    with contextlib.suppress(ProcessLookupError):
        handle = os.pidfd_open(process.pid)
        try:
            if system.start_time(process.pid) == process.start_time:
                signal.pidfd_send_signal(handle, signal.SIGKILL)
        finally:
            os.close(handle)


def end_what_is_left(keeper_journal: Path) -> list[int]:
    """Kills the processes of a run whose keeper was killed; the pids of those that would not go."""
    reader = JournalReader(keeper_journal)
    facts = reader.read_new()
    reader.close()
    prepared = next((fact for fact in facts if isinstance(fact, Prepared)), None)
    started = next((fact for fact in facts if isinstance(fact, Started)), None)
    if prepared is None or prepared.keeper.boot_id != system.boot_id():
        return []  # nothing outlives a boot
    if prepared.cgroup is not None:
        left = _end_cgroup(Path(prepared.cgroup))
    else:
        left = _end_session(started, prepared.keeper) if started is not None else []
    limited = (Path(path) for fact in facts if isinstance(fact, Starting) for path in fact.cgroups)
    return sorted({*left, *(pid for cgroup in limited for pid in _end_limited(cgroup))})


def _end_cgroup(cgroup: Path) -> list[int]:
    try:
        members = [int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()]
        (cgroup / "cgroup.kill").write_text("1")
        # Those that were forked meanwhile were killed too, but are not known yet.
        members += [int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()]
    except OSError:
        return []
    left = _still_alive(members)
    with contextlib.suppress(OSError):
        cgroup.rmdir()
    return left


def _end_limited(cgroup: Path) -> list[int]:
    """A cgroup that held a run to its limits. One that cannot kill is emptied by signals, in rounds."""
    if (cgroup / "cgroup.kill").exists():
        return _end_cgroup(cgroup)
    left: list[int] = []
    until = clock.passed_s() + GONE_WITHIN_S
    while (members := _members(cgroup)) and clock.passed_s() < until:
        for pid in members:
            with contextlib.suppress(OSError):  # it is gone, or not ours to kill: then it is among those that are left
                _kill_member(cgroup, pid)
        left = _still_alive(members)
    with contextlib.suppress(OSError):
        cgroup.rmdir()
    return left


def _members(cgroup: Path) -> list[int]:
    try:
        return [int(pid) for pid in (cgroup / "cgroup.procs").read_text().split()]
    except OSError:
        return []


def _kill_member(cgroup: Path, pid: int) -> None:
    handle = os.pidfd_open(pid)
    try:
        if pid in _members(cgroup):  # looked at behind the handle: the pid is no stranger's
            signal.pidfd_send_signal(handle, signal.SIGKILL)
    finally:
        os.close(handle)


def _end_session(started: Started, keeper: Witness) -> list[int]:
    """Without a cgroup only the session tells whose a process is; one that left it cannot be told from a stranger."""
    left: list[int] = []
    killed: list[int] = []
    for pid in (int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()):
        stat = system.read_small(f"/proc/{pid}/stat")
        fields = stat[stat.rfind(b")") + 2 :].split()
        if len(fields) < 20 or int(fields[3]) != started.pid or fields[0] in b"ZX":
            continue
        if pid == started.pid and int(fields[19]) != started.start_time:
            return []  # the pid, and so the session's number, is a stranger's by now
        if int(fields[19]) < keeper.start_time:
            continue
        try:
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
        except ProcessLookupError:
            continue
        except PermissionError:
            left.append(pid)
    return left + _still_alive(killed)


def _still_alive(killed: list[int]) -> list[int]:
    """Those among them that have not ended after a moment: the kernel holds them."""
    poll = select.poll()
    handles: list[int] = []
    for pid in set(killed):
        with contextlib.suppress(OSError):
            handles.append(os.pidfd_open(pid))
            poll.register(handles[-1], select.POLLIN)
    left = len(handles)
    until = clock.passed_s() + GONE_WITHIN_S
    while left and (wait_s := until - clock.passed_s()) > 0:
        for handle, _ in poll.poll(int(wait_s * 1000) + 1):
            poll.unregister(handle)
            left -= 1
    for handle in handles:
        os.close(handle)
    return sorted(pid for pid in set(killed) if _is_alive(pid)) if left else []


def _is_alive(pid: int) -> bool:
    state = system.process_state(pid)
    return state is not None and state[0]
