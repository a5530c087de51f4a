"""Ends what is left of a run whose keeper was killed: exactly its processes, and says which would not go."""

import contextlib
import os
import select
import signal
from pathlib import Path

from limpet.engine import clock
from limpet.model.facts import Prepared, Started, Starting, Witness
from limpet.store.journals import JournalReader
from limpet_keeper import system

# How long one waits for processes that were killed to be gone.
GONE_WITHIN_S = 0.5


def kill_exactly(process: Witness) -> None:
    """Kills that process, and no later one of its pid."""
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
    started = next((fact for fact in facts if isinstance(fact, Started | Starting) and fact.pid is not None), None)
    if prepared is None or prepared.keeper.boot_id != system.boot_id():
        return []  # nothing outlives a boot
    if prepared.cgroup is not None:
        left = _end_cgroup(Path(prepared.cgroup))
    else:
        left = end_session(started, prepared.keeper) if started is not None else []
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


def end_session(started: Started | Starting, keeper: Witness) -> list[int]:
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
