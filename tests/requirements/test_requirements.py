"""Holds pages, open.toml and tests to each other: no statement without a test, no mark without a statement."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.requirements.binding import ROOT, Proof, collect, disagreements, read_open, statements

CONTRACT = ROOT / "docs" / "reference" / "contract.md"
FAULTS = ROOT / "docs" / "reference" / "faults.md"
OPEN = Path(__file__).with_name("open.toml")
LAST_OF_SECTION = {"0": 14, "1": 12, "2": 7, "3": 10, "4": 5, "5": 9, "6": 7}
SHAPES = ["common", "shell", "runs", "events", "pty", "sessions", "tasks", "tcp", "mcp", "cli"]
LAST_FAULT = 72


def known() -> list[str]:
    return statements(CONTRACT.read_text("utf-8"), FAULTS.read_text("utf-8"))


def test_no_statement_has_left_the_pages() -> None:
    numbered = [f"{section}.{n}" for section, last in LAST_OF_SECTION.items() for n in range(1, last + 1)]
    faults = [f"F{n:02}" for n in range(1, LAST_FAULT + 1)]
    assert known() == [*numbered, "7", "8", "9", *(f"9.{shape}" for shape in SHAPES), *faults]


def test_pages_open_list_and_tests_agree(tmp_path: Path) -> None:
    proofs = collect([str(ROOT / "tests")], ROOT, tmp_path)
    assert disagreements(known(), read_open(OPEN.read_text("utf-8")), proofs) == []


# Proof that the binding can fail: each rule over planted pages, lists and suites.

PAGES = (
    "## 1. One\n\n### 1.1 First\n\ntext\n\n### 1.2 Second\n\ntext, see ### 1.3\n",
    "| id | x |\n|---|---|\n| F01 | x |\n",
)


def test_ids_are_read_from_headings_and_rows() -> None:
    assert statements(*PAGES) == ["1.1", "1.2", "F01"]


@pytest.mark.parametrize(
    ("lacking", "proofs", "said"),
    [
        ({}, [Proof("t", ("1.1", "1.2")), Proof("u", ("F01",))], []),
        ({"1.1": "all"}, [Proof("t", ("1.1", "1.2", "F01"))], []),
        ({"1.1": "all", "1.2": "all"}, [Proof("t", ("F01",))], []),
        ({}, [Proof("t", ("1.1", "F01"))], ["1.2 is not open, and no test proves it"]),
        (
            {},
            [Proof("t", ("1.1", "1.2", "F01"), idle=True), Proof("u", ("1.1", "1.2"))],
            ["F01 is not open, and no test proves it"],
        ),
        ({"9.9": "x"}, [Proof("t", ("1.1", "1.2", "F01"))], ["open.toml names 9.9, which no page has"]),
        ({"1.1": " "}, [Proof("t", ("1.2", "F01"))], ["open.toml does not say what 1.1 lacks"]),
        ({}, [Proof("t", ("1.1", "1.2", "F01", "F02"))], ["t marks F02, which no page has"]),
        ({}, [Proof("t", ("1.1", "1.2", "F01")), Proof("u", ())], ["u has a requirement mark without a number"]),
        (
            {"1.1": "all"},
            [Proof("t", (None, "1.2", "F01"))],
            ["t marks a number that is no text: write it in quotes"],
        ),
    ],
)
def test_each_disagreement_is_said(lacking: dict[str, str], proofs: list[Proof], said: list[str]) -> None:
    assert disagreements(statements(*PAGES), lacking, proofs) == said


def test_a_doubled_statement_is_said() -> None:
    assert disagreements(["1.1", "1.1"], {"1.1": "all"}, []) == ["1.1 stands twice in the pages"]


def test_a_doubled_line_of_the_open_list_is_refused() -> None:
    with pytest.raises(ValueError, match="overwrite"):
        read_open('[contract]\n"1.1" = "a"\n"1.1" = "b"\n')


SUITE = """
    import pytest

    pytestmark = pytest.mark.requirement("module")

    @pytest.mark.requirement("class")
    class TestOne:
        @pytest.mark.requirement("function", "second")
        def test_in_class(self): pass

    @pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.requirement("parameter"))])
    def test_with(x): pass

    @pytest.mark.skip(reason="off")
    @pytest.mark.requirement("skipped")
    def test_off(): pass

    @pytest.mark.xfail
    @pytest.mark.requirement("expected")
    def test_wrong(): assert False

    @pytest.mark.requirement(1.10)
    def test_number(): pass
"""


def test_marks_of_every_level_are_collected(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = requirement: x\n")
    (tmp_path / "test_planted.py").write_text(textwrap.dedent(SUITE))
    marks = [(p.test.partition("::")[2], p.ids, p.idle) for p in collect(["test_planted.py"], tmp_path, tmp_path)]
    own = [mark for mark in marks if mark[1] != ("module",)]
    assert sorted(own, key=str) == [
        ("TestOne::test_in_class", ("class",), False),
        ("TestOne::test_in_class", ("function", "second"), False),
        ("test_number", (None,), False),
        ("test_off", ("skipped",), True),
        ("test_with[2]", ("parameter",), False),
        ("test_wrong", ("expected",), True),
    ]
    tests = {"TestOne::test_in_class", "test_with[1]", "test_with[2]", "test_off", "test_wrong", "test_number"}
    assert {test for test, ids, _ in marks if ids == ("module",)} == tests


def test_a_suite_that_does_not_import_is_no_pass(tmp_path: Path) -> None:
    (tmp_path / "test_planted.py").write_text("import no_such_module\n")
    with pytest.raises(RuntimeError, match="no_such_module"):
        collect(["test_planted.py"], tmp_path, tmp_path)
