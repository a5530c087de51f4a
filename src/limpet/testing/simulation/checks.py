"""What must hold of files, store and answers once a simulated machine has come to rest."""

import os
import signal
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from limpet.engine.live_run import LiveRun
from limpet.model.characters import whole_characters
from limpet.model.facts import AnyFact, Ended, NotStarted, Sealed, Started
from limpet.model.ids import is_made_id
from limpet.model.run import Run
from limpet.store.journals import JournalReader
from limpet.store.run_directory import RunDirectory
from limpet.store.verify import RunCheck
from limpet.testing.simulation.ground import SeenStore
from limpet.testing.simulation.machine import Attempt, Machine
from limpet.testing.simulation.watching import Asked


def check_rest(machine: Machine, store: SeenStore, asked: Iterable[Asked]) -> None:
    """Compares all that is kept with all that happened. No daemon and no keeper is there any more."""
    by_id = {each.run_id: each for each in asked if each.run_id is not None}
    by_id |= {attempt.run_id: each for each in asked for attempt in each.attempts}
    there = sorted(path for path in (machine.home / "runs").iterdir() if is_made_id(path.name))
    for path in there:
        _check_run(machine, store, path, by_id.get(path.name))
    names = {path.name for path in there}
    for each in asked:
        if each.run_id is not None and each.run_id not in names and store.find_tombstone(each.run_id) is None:
            raise machine.world.violation(f"{each.run_id} was promised, and is not there")


def _check_run(machine: Machine, store: SeenStore, path: Path, asked: Asked | None) -> None:
    violation = machine.world.violation
    run = store.get(path.name)
    if run is None and store.find_tombstone(path.name) is not None:
        return  # it goes at the next start
    if run is None:
        raise violation(f"{path.name} has files and no row")
    if not run.is_over:
        raise violation(f"{path.name} never ended: it is {run.phase}")
    again = LiveRun(Run(run_id=path.name), RunDirectory(path), lambda _live, _items: None)
    items = again.recall()
    again.detach()
    if again.run != run:
        names = [name for name in Run.__struct_fields__ if getattr(run, name) != getattr(again.run, name)]
        raise violation(f"{path.name}: the files say another {', '.join(names)} than the row")
    if items != store.items(path.name, 0, 1 << 30):
        raise violation(f"{path.name}: the files say other items than the rows")
    check = RunCheck(path, store)
    check.check()
    # What a disk that failed to sync lost with the power is gone, and verification says so.
    may_be_short = machine.files.has_failed and machine.world.boot > 1
    found = [each for each in check.findings if not (may_be_short and each.problem == "spool_short")]
    if found:
        raise violation(f"{path.name} does not verify: {found}")
    directory = RunDirectory(path)
    for number in directory.attempts():
        _check_facts(machine, path.name, RunDirectory(path, number))
    if asked is not None:
        _check_end(machine, run, asked)
        for attempt in asked.attempts:
            _check_bytes(machine, RunDirectory(path, attempt.number), attempt)
        _check_text(machine, directory, run, asked)


def _check_facts(machine: Machine, run_id: str, directory: RunDirectory) -> None:
    reader = JournalReader(directory.keeper_journal)
    facts: list[AnyFact] = reader.read_new()
    reader.close()
    counts = Counter(type(fact) for fact in facts)
    if counts[Started] + counts[NotStarted] > 1 or counts[Ended] > 1 or counts[Sealed] > 1:
        raise machine.world.violation(f"{run_id}: a fact that can be there once is there more often: {counts}")


def _check_end(machine: Machine, run: Run, asked: Asked) -> None:
    """What is said of the end is what happened."""
    last = asked.last()
    if last is None or last.number != run.attempt:
        if run.exit_code is not None or run.signal is not None:
            raise machine.world.violation(f"{run.run_id} never ran, and has an exit")
        return
    status = last.status
    if run.exit_code is not None or run.signal is not None:
        told = run.exit_code << 8 if run.exit_code is not None else int(signal.Signals[run.signal or ""])
        if status != told:
            raise machine.world.violation(f"{run.run_id} is said to have ended with {told}, and did with {status}")
    elif run.ended_by == "self":
        raise machine.world.violation(f"{run.run_id} ended by itself, and nobody says how")
    if last.process.is_alive:
        raise machine.world.violation(f"{run.run_id} is over, and its command lives")


def _check_bytes(machine: Machine, directory: RunDirectory, attempt: Attempt) -> None:
    """A spool is what the command wrote; all of it, where the keeper lived to the end."""
    for stream, written in attempt.process.written.items():
        spool = directory.spool_path(stream)
        kept = spool.read_bytes() if spool.exists() else b""
        if kept != written if attempt.is_kept_to_the_end else not written.startswith(kept):
            message = f"{stream} of {attempt.run_id} has {len(kept)} bytes that are not the {len(written)} written"
            raise machine.world.violation(message)


def _check_text(machine: Machine, directory: RunDirectory, run: Run, asked: Asked) -> None:
    """The texts of a stream's items are the text of its bytes, as far as they became items."""
    for name, stream in run.streams.items():
        text = ""
        is_cut = stream.shown == stream.head_end < (stream.bytes if stream.ended_at is None else stream.ended_at)
        for attempt, low, high in stream.spans(0, stream.shown):
            fd = os.open(RunDirectory(directory.path, attempt).spool_path(name), os.O_RDONLY)
            data = os.pread(fd, high - low, low)
            os.close(fd)
            text += (whole_characters(data) if is_cut else data).decode("utf-8", "replace")
        shown = "".join(
            str(item.text) for _, item in sorted(asked.items.items()) if item.kind == "output" and item.stream == name
        )
        if asked.end is not None and shown != text:
            raise machine.world.violation(f"{name} of {run.run_id}: its items do not say what its bytes say")
