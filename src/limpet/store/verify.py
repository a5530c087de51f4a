"""Whether a run's files are whole and agree: read only, at any time, beside whoever writes them."""

import os
import stat
import zlib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import msgspec

from limpet.model.facts import (
    AnyFact,
    Ended,
    Lost,
    NotStarted,
    Prepared,
    Requeued,
    Seal,
    Sealed,
    Started,
    Starting,
    Submitted,
    Wrote,
    decode_fact,
)
from limpet.model.items import Item, Place, take_in
from limpet.model.merge import merge_attempts
from limpet.model.run import Run
from limpet.model.secrets import REDACTED
from limpet.store.run_directory import DAEMON_JOURNAL, KEEPER_JOURNAL, SCRIPT, RunDirectory
from limpet.store.runs import is_settled
from limpet.store.stored_runs import Stored
from limpet_keeper import system
from limpet_keeper.journal import decode_lines

_READ_BYTES: Final = 1 << 20
_ITEMS_AT_ONCE: Final = 1000


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it was written: in which file of the run, at which byte, in or before which record."""

    run_id: str
    file: str
    offset: int | None
    record: int | None
    problem: str
    message: str


class _Record(msgspec.Struct, frozen=True):
    fact: AnyFact
    end: int
    number: int


class _Journal:
    """One journal read whole: its sound records, and what is wrong with it."""

    def __init__(self, path: Path) -> None:
        self.records: list[_Record] = []
        self.chain_at: dict[int, int] = {0: 0}
        self.damage: tuple[int, int, str] | None = None
        data = path.read_bytes()
        self.size = len(data)
        place = 0
        for number, line in enumerate(decode_lines(data), start=1):
            place = line.end
            why = "" if line.sound else "its CRC does not hold"
            fact = None
            if not why:
                try:
                    fact = decode_fact(line.body)
                except msgspec.DecodeError as error:
                    why = f"it is no fact: {error}"
            if not why and fact is not None and fact.n != number:
                why = f"it calls itself record {fact.n}"
            if why:
                self.damage = (line.start, number, why)
                return
            self.chain_at[line.end] = line.crc
            if fact is not None:
                self.records.append(_Record(fact, line.end, number))
        self.torn_at = place

    torn_at = 0

    def facts(self, until: int | None = None) -> list[AnyFact]:
        return [record.fact for record in self.records if until is None or record.end <= until]


class RunCheck:
    """All checks of one run; `findings` holds what they found, `bytes` how much they read."""

    def __init__(self, path: Path, stored: Stored | None) -> None:
        self.directory = RunDirectory(path)
        self.run_id = path.name
        self.findings: list[Finding] = []
        self.bytes = 0
        self.row: Run | None = None
        self.place: Place | None = None
        self._stored = stored

    def check(self) -> None:
        """Looks at everything. FileNotFoundError when the run was pruned meanwhile."""
        if self._stored is None:
            self._check_files()
            return
        with self._stored.one_moment():
            # The row first: what it knows is in the files by then, however they grow meanwhile.
            self.row, self.place = self._stored.get(self.run_id), self._stored.place(self.run_id)
            self._check_files()

    def _check_files(self) -> None:
        daemon = self._read(DAEMON_JOURNAL)
        attempts = self.directory.attempts()
        names = [f"{attempt}/{KEEPER_JOURNAL}" for attempt in attempts]
        is_kept = self.directory.is_kept()
        keepers = [self._read(name) for name in names]
        for attempt, name, journal in zip(attempts, names, keepers, strict=True):
            self._check_order(name, journal)
            is_last = attempt == attempts[-1]
            self._check_spools(attempt, name, journal, daemon, is_alive=is_last and is_kept)
        self._check_row(daemon, keepers)
        self._check_script(daemon)
        self._check_modes()

    def say(self, file: str, problem: str, message: str, offset: int | None = None, record: int | None = None) -> None:
        found = Finding(run_id=self.run_id, file=file, offset=offset, record=record, problem=problem, message=message)
        self.findings.append(found)

    def _read(self, name: str) -> _Journal:
        journal = _Journal(self.directory.path / name)
        self.bytes += journal.size
        if journal.damage is not None:
            offset, record, why = journal.damage
            self.say(name, "record_damaged", f"record {record} cannot be read: {why}", offset, record)
        return journal

    def _check_order(self, name: str, journal: _Journal) -> None:
        """One start, one end, nothing behind the seal, and bytes that follow one another."""
        ends: dict[str, int] = {}
        once: dict[type[Any], int] = {}
        for record in journal.records:
            fact = record.fact
            for kinds in ((Started, NotStarted), (NotStarted, Ended), (Sealed,), (Starting,)):
                if isinstance(fact, kinds):
                    once[kinds[0]] = once.get(kinds[0], 0) + 1
                    if once[kinds[0]] > 1:
                        self.say(name, "twice", f"record {record.number} says it a second time", None, record.number)
            if isinstance(fact, Wrote):
                if fact.start != ends.get(fact.stream, 0) or fact.end < fact.start:
                    message = f"record {record.number} begins at {fact.start}, not at {ends.get(fact.stream, 0)}"
                    self.say(name, "bytes_unaccounted", message, None, record.number)
                ends[fact.stream] = fact.end
        last = journal.records[-1] if journal.records else None
        sealed = next((record for record in journal.records if isinstance(record.fact, Sealed)), None)
        if sealed is not None and (last is not sealed or journal.size > sealed.end) and journal.damage is None:
            self.say(name, "record_damaged", "there is more behind the seal", sealed.end, sealed.number + 1)

    def _check_spools(self, attempt: int, name: str, journal: _Journal, daemon: _Journal, *, is_alive: bool) -> None:
        """Each spool is as long as somebody wrote down; a sealed one holds the bytes that were sealed."""
        after = _told_afterwards(daemon, attempt)
        seen = journal.records[-1].number if journal.records else 0
        if isinstance(after, Requeued) and seen < after.after and journal.damage is None:
            # Of the latest attempt the database knows.
            message = f"it has {seen} records; {after.after} were read when the run was started again"
            self.say(name, "journal_short", message, journal.size, seen + 1)
        sealed = next((record.fact for record in journal.records if isinstance(record.fact, Sealed)), None)
        starting = next((record.fact for record in journal.records if isinstance(record.fact, Starting)), None)
        if starting is None:
            return
        prepared = next((record.fact for record in journal.records if isinstance(record.fact, Prepared)), None)
        # What a boot took is not known before the next daemon has looked.
        is_of_this_boot = prepared is None or prepared.keeper.boot_id == system.boot_id()
        known = dict.fromkeys(starting.streams, 0)
        for record in journal.records:
            if isinstance(record.fact, Wrote):
                known[record.fact.stream] = record.fact.end
        told = after.streams if after is not None else None
        for stream, end in known.items():
            file = f"{attempt}/{stream}.spool"
            size = (self.directory.path / file).lstat().st_size
            if isinstance(sealed, Sealed) and stream in sealed.streams:
                self._check_seal(file, size, sealed.streams[stream])
            elif not is_alive and told is not None:
                counted = told.get(stream, end)
                if size != counted:
                    problem = "spool_short" if size < counted else "spool_long"
                    self.say(file, problem, f"it has {size} bytes; {counted} were counted", size, None)
            elif size < end and is_of_this_boot:
                self.say(file, "spool_short", f"it has {size} bytes, its journal says {end}", size, None)
        if not is_alive and sealed is None and told is None and self.row is not None and is_settled(self.row):
            self.say(name, "not_sealed", "nobody keeps the run, and neither an end nor a loss is written down")

    def _check_seal(self, file: str, size: int, seal: Seal) -> None:
        if size != seal.bytes:
            problem = "spool_short" if size < seal.bytes else "spool_long"
            self.say(file, problem, f"it has {size} bytes and was sealed with {seal.bytes}", min(size, seal.bytes))
        elif seal.crc32 is not None and self._crc(file, size, seal.hole) != seal.crc32:
            self.say(file, "spool_damaged", "its bytes are not those that were sealed", 0)
        bare = f"{file.removesuffix('.spool')}.bare_lf"
        if seal.bare_lf_crc32 is not None and self._crc(bare, None, None) != seal.bare_lf_crc32:
            self.say(bare, "spool_damaged", "its offsets are not those that were sealed", 0)

    def _crc(self, file: str, size: int | None, hole: tuple[int, int] | None) -> str | None:
        crc = 0
        try:
            fd = os.open(self.directory.path / file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            end = os.fstat(fd).st_size if size is None else size
            for low, high in ((0, hole[0]), (hole[1], end)) if hole is not None else ((0, end),):
                while low < high and (data := os.pread(fd, min(_READ_BYTES, high - low), low)):
                    crc = zlib.crc32(data, crc)
                    low += len(data)
                    self.bytes += len(data)
        finally:
            os.close(fd)
        return f"{crc:08x}"

    def _check_row(self, daemon: _Journal, keepers: list[_Journal]) -> None:
        """The database says what the files say, as far as it had taken them in."""
        place, row = self.place, self.row
        if place is None or row is None or self._stored is None:
            return
        if any(journal.damage for journal in (daemon, *keepers)):
            return  # what is wrong is said already
        keeper = keepers[place.attempt - 1] if 0 < place.attempt <= len(keepers) else None
        for name, journal, size, chain in (
            (DAEMON_JOURNAL, daemon, place.daemon_bytes, place.daemon_chain),
            (f"{place.attempt}/{KEEPER_JOURNAL}", keeper, place.keeper_bytes, place.keeper_chain),
        ):
            if size and (journal is None or journal.chain_at.get(size) != chain):
                known = journal.size if journal is not None else 0
                message = f"the database took in {size} bytes of it, of which {min(size, known)} are there as they were"
                self.say(name, "journal_short", message, known, None)
                return
        earlier = [journal.facts() for journal in keepers[: place.attempt - 1]]
        latest = keeper.facts(place.keeper_bytes) if keeper is not None else []
        run, items = Run(run_id=self.run_id), list[Item]()
        for fact in merge_attempts([*earlier, latest], daemon.facts(place.daemon_bytes)):
            run, more = take_in(run, fact)
            items += more
        if run != row:
            names = [name for name in Run.__struct_fields__ if getattr(run, name) != getattr(row, name)]
            self.say("sessions.db", "state_differs", f"its row is not what the journals say: {', '.join(names)}")
        if any(theirs != ours for theirs, ours in zip_longest(_items_of(self._stored, run), items)):
            self.say("sessions.db", "items_differ", "its items are not what the journals say")

    def _check_script(self, daemon: _Journal) -> None:
        script = self.directory.path / SCRIPT
        submitted = next((fact for fact in daemon.facts() if isinstance(fact, Submitted)), None)
        if submitted is None or REDACTED in submitted.command or not script.exists():
            return
        if script.read_bytes() != submitted.command.encode():
            self.say(SCRIPT, "script_differs", "it is not the command that was asked for")

    def _check_modes(self) -> None:
        for root, _, names in os.walk(self.directory.path):
            for path in (Path(root), *(Path(root) / name for name in names)):
                try:
                    state = path.lstat()
                except FileNotFoundError:
                    continue
                mode = 0o700 if stat.S_ISDIR(state.st_mode) else 0o600
                if stat.S_IMODE(state.st_mode) != mode or state.st_uid != os.geteuid():
                    name = str(path.relative_to(self.directory.path))
                    message = (
                        f"mode {stat.S_IMODE(state.st_mode):o}, owner {state.st_uid}: it is to be {mode:o} and ours"
                    )
                    self.say(name, "mode", message)


def _told_afterwards(daemon: _Journal, attempt: int) -> Lost | Requeued | None:
    """What the daemon recorded of an attempt whose keeper had died."""
    number = 1
    for fact in daemon.facts():
        if isinstance(fact, Lost | Requeued) and number == attempt:
            return fact
        number += isinstance(fact, Requeued)
    return None


def _items_of(stored: Stored, run: Run) -> Iterator[Item]:
    after = 0
    while after < run.last_seq:
        page = stored.items(run.run_id, after, min(_ITEMS_AT_ONCE, run.last_seq - after))
        yield from page
        if not page:
            return
        after = page[-1].seq
