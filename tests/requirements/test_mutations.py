"""Holds the table of planted breaks to the source, the contract and the tests; and that the runner can tell."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prove.mutations import ROOT, Break, Scratch, breaks, scratch, verdict
from tests.requirements.binding import collect

SECTIONS = {"0": 14, "1": 12}
FAULTS = {"F62", "F64", "F70", "F71", "F72"}
QUICK = Break(
    "0.5",
    "CR LF is not folded where a read ended between the two",
    "src/limpet_keeper/folding.py",
    'self.holds_cr = data.endswith(b"\\r")',
    "self.holds_cr = False",
    ("tests/keeper/test_folding.py::test_a_cr_at_the_end_of_a_read",),
)


@pytest.fixture(scope="module")
def copy() -> Iterator[Scratch]:
    with scratch() as made:
        yield made


def test_each_break_applies_to_the_source() -> None:
    """Its old text is there once, what comes of it is other Python, and no two are the same."""
    for planted in breaks():
        assert ast.dump(ast.parse(planted.applied())) != ast.dump(ast.parse((ROOT / planted.file).read_bytes()))
    assert len({(planted.file, planted.old, planted.new) for planted in breaks()}) == len(breaks())


def test_each_statement_has_a_break() -> None:
    wanted = {f"{section}.{number}" for section, last in SECTIONS.items() for number in range(1, last + 1)} | FAULTS
    assert {planted.statement for planted in breaks()} == wanted


def test_who_is_to_notice_carries_the_statements_mark(tmp_path: Path) -> None:
    files = sorted({test.partition("::")[0] for planted in breaks() for test in planted.tests})
    marked: dict[str, set[str | None]] = {}
    for proof in collect(files, ROOT, tmp_path):
        marked.setdefault(re.sub(r"\[.*", "", proof.test), set()).update(() if proof.idle else proof.ids)
    unmarked = [
        f"{planted.statement}, {planted.what}: {test}"
        for planted in breaks()
        for test in planted.tests
        if planted.statement not in marked.get(test, ())
    ]
    assert unmarked == []


def test_a_break_is_noticed_and_then_gone(copy: Scratch) -> None:
    noticed, said = verdict(copy, QUICK)
    assert noticed
    assert said.startswith(f"killed by {QUICK.tests[0]}"), said
    assert (copy.root / QUICK.file).read_bytes() == (ROOT / QUICK.file).read_bytes()


def test_the_command_of_the_copy_runs_the_copy(copy: Scratch) -> None:
    """What tests start as `limpet` beside their interpreter has the break in it."""
    file, start = "src/limpet/model/version.py", 'VERSION = "'
    with copy.broken(replace(QUICK, file=file, old=start, new=f"{start}broken-")):
        said = subprocess.check_output([copy.python.with_name("limpet"), "--version"], text=True)
    assert "broken-" in said


def test_a_change_that_breaks_nothing_survives(copy: Scratch) -> None:
    assert verdict(copy, replace(QUICK, new=f"{QUICK.old}  # as before")) == (False, "SURVIVED")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"old": "no such text"}, "ERROR: .* 0 times"),
        ({"old": "self"}, "ERROR: .* [0-9]+ times"),
        ({"tests": ("tests/keeper/test_folding.py::test_nosuch",)}, "ERROR: the tests could not be run"),
    ],
)
def test_what_shows_nothing_is_an_error(copy: Scratch, change: dict[str, Any], said: str) -> None:
    noticed, told = verdict(copy, replace(QUICK, **change))
    assert not noticed
    assert re.match(said, told), told
