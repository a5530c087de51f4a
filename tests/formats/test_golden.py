"""Recorded runs stay readable: their lines, their facts, the state they fold to, their bytes; version 1 only."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from fuzz.feed import is_a
from limpet.engine.reading import read_range
from limpet.model.errors import Refusal
from limpet.model.facts import AnyFact, KeeperFact, Sealed, SyncFailed, decode_fact
from limpet.store.journals import JournalReader
from limpet.store.run_directory import RunDirectory
from limpet_keeper import lean_json
from limpet_keeper.journal import decode_lines, encode_line
from tests.faults.disks import need
from tests.formats.golden_run import GOLDEN, MANIFEST, public_state, recall, spools
from tests.formats.record_golden import CASES, Recording, record_one, stalled
from tests.keeper.samples import read_bare_lf, unfold

V1 = GOLDEN / "v1"
RUNS = sorted(path for path in V1.iterdir() if path.is_dir())
NAMES = ("1/keeper.journal", "daemon.journal")
JOURNALS = [run / name for run in RUNS for name in NAMES]

a_run = pytest.mark.parametrize("run", RUNS, ids=lambda path: path.name)
a_journal = pytest.mark.parametrize("journal", JOURNALS, ids=lambda path: "-".join(path.relative_to(V1).parts))


def facts_of(journal: Path) -> list[AnyFact]:
    facts = [decode_fact(line.body) for line in decode_lines(journal.read_bytes()) if line.sound]
    return [fact for fact in facts if fact is not None]


def assert_holds(seen: Any, expected: Any, where: str = "state") -> None:
    """All that was recorded is there and the same; what a later limpet adds may stand beside it."""
    if is_a(expected, dict):
        for name in expected:
            assert name in seen, f"{where}.{name} is gone"
            assert_holds(seen[name], expected[name], f"{where}.{name}")
    else:
        assert seen == expected, where


def test_the_recorded_files_are_as_they_were_recorded() -> None:
    lines = (V1 / MANIFEST).read_text("utf-8").splitlines()
    known = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    files = {str(path.relative_to(V1)): path for path in V1.rglob("*") if path.is_file() and path.name != MANIFEST}
    assert {name: hashlib.sha256(path.read_bytes()).hexdigest() for name, path in files.items()} == known


def test_every_kind_of_fact_was_recorded() -> None:
    """All but the one that only a failing disk makes."""
    seen = {type(fact) for journal in JOURNALS for fact in facts_of(journal)}
    assert set(get_args(KeeperFact)) - seen == {SyncFailed}


@a_journal
def test_a_recorded_journal_decodes(journal: Path) -> None:
    data = journal.read_bytes()
    lines = list(decode_lines(data))
    assert lines
    assert all(line.sound for line in lines)
    assert [json.loads(line.body)["n"] for line in lines] == list(range(1, len(lines) + 1))
    assert len(facts_of(journal)) == len(lines)
    is_torn = journal == V1 / "torn" / "1" / "keeper.journal"
    assert (lines[-1].end < len(data)) == is_torn


@a_journal
def test_a_recorded_journal_encodes_to_the_same_bytes(journal: Path) -> None:
    data = journal.read_bytes()
    is_keepers = journal.name == "keeper.journal"
    chain = 0
    encoded: list[bytes] = []
    for line in decode_lines(data):
        body = json.loads(line.body)
        again = lean_json.encode(body).encode() if is_keepers else msgspec.json.encode(body)
        text, chain = encode_line(again, chain)
        encoded.append(text)
    whole = b"".join(encoded)
    assert whole == data[: len(whole)]
    assert b"\n" not in data[len(whole) :]


@pytest.mark.requirement("F02")
@a_run
def test_a_recorded_run_folds_to_its_recorded_state(run: Path) -> None:
    assert_holds(public_state(run), json.loads((V1 / f"{run.name}.json").read_text("utf-8")))


@pytest.mark.requirement("0.5")
@a_run
def test_a_sealed_run_holds_the_bytes_that_its_seal_names(run: Path) -> None:
    seals = [fact for fact in facts_of(RunDirectory(run).keeper_journal) if isinstance(fact, Sealed)]
    assert len(seals) == (0 if run.name == "torn" else 1)
    for name, seal in (item for sealed in seals for item in sealed.streams.items()):
        spool = RunDirectory(run).spool_path(name).read_bytes()
        start, end = seal.hole or (0, 0)
        assert len(spool) == seal.bytes
        assert seal.crc32 == f"{zlib.crc32(spool[:start] + spool[end:]):08x}"
        assert spool[start:end].count(0) == end - start, "bytes that were given up are still there"


@pytest.mark.requirement("0.5")
def test_recorded_text_reads_as_it_was_said() -> None:
    for name, stream, text in (
        ("plain", "stdout", "hello\ngrüße, 世界\n"),
        ("plain", "stderr", "oops\n"),
        ("torn", "stdout", "said\n"),
        ("stalled", "stdout", "x" * 30000),
        ("terminal", "pty", "typed\ngot typed\nhide\n10%\r20%\rbare\nwith\nbare\n"),
    ):
        page = read_range(recall(V1 / name), spools(V1 / name), stream, 0, 1 << 20, "utf-8")
        assert (page.data, page.eof) == (text, True), name


@pytest.mark.requirement("F48", "0.5")
def test_a_recorded_terminal_gives_its_raw_bytes_back() -> None:
    kept = RunDirectory(V1 / "terminal").kept
    bare = read_bare_lf(kept)
    raw = unfold((kept / "pty.spool").read_bytes(), bare)
    assert raw == b"typed\r\ngot typed\r\nhide\r\n10%\r20%\rbare\nwith\r\nbare\n"


@pytest.mark.requirement("0.7", "1.5")
def test_a_recorded_hole_is_refused_and_what_stands_around_it_is_read() -> None:
    run, blobs = recall(V1 / "hole"), spools(V1 / "hole")
    before = read_range(run, blobs, "stdout", 0, 1 << 20, "utf-8")
    assert (before.data, before.next_offset, before.base, before.eof) == ("1" * 4096, 4096, 20480, False)
    with pytest.raises(Refusal, match="given up") as gone:
        read_range(run, blobs, "stdout", before.next_offset, 1 << 20, "utf-8")
    assert (gone.value.code, gone.value.fields["base"]) == ("gone", 20480)
    after = read_range(run, blobs, "stdout", 20480, 1 << 20, "utf-8")
    assert (after.data, after.eof) == ("6" * 4096, True)


@pytest.mark.requirement("F12")
@a_journal
def test_another_version_is_not_read(journal: Path, tmp_path: Path) -> None:
    """One line of another version, whichever byte says so, is unsound; a journal that begins so has no facts."""
    data = journal.read_bytes()
    for victim in decode_lines(data):
        for version in set(range(256)) - {ord("1")}:
            changed = data[: victim.start] + bytes([version]) + data[victim.start + 1 :]
            again = list(decode_lines(changed))
            assert all(line.sound for line in again if line.end <= victim.start)
            assert not any(line.sound for line in again if victim.start < line.end <= victim.end)
    path = tmp_path / "other.journal"
    path.write_bytes(b"2" + data[1:])
    reader = JournalReader(path)
    assert reader.read_new() == []
    reader.close()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_run_recorded_anew_says_the_same_kinds_of_facts(case: Callable[[Recording], None], tmp_path: Path) -> None:
    """The recorder still works, and today's keeper writes what version 1 was recorded with."""
    if case is stalled:
        need("mount", "umount")
    anew = record_one(case, tmp_path)
    for name in NAMES:
        kinds = {type(fact) for fact in facts_of(anew / name)}
        recorded = {type(fact) for fact in facts_of(V1 / anew.name / name)}
        assert kinds == recorded, name
    with pytest.raises(FileExistsError):
        record_one(case, tmp_path)
