"""The format page and the code know the same facts, with the same fields."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, get_args

import pytest

from limpet.model.facts import DaemonFact, KeeperFact
from limpet_keeper import journal

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "formats" / "keeper.md").read_text("utf-8")
KEEPER_SOURCES = [path.read_text("utf-8") for path in sorted((ROOT / "src" / "limpet_keeper").glob("*.py"))]
ALWAYS = {"n", "at"}


def page_facts(page: str) -> dict[str, set[str]]:
    """Name to the names of the fields, from the table of the section on the journal."""
    table = page.split("## Journal", 1)[1].split("**The end.**", 1)[0]
    rows = re.findall(r"^\| `(\w+)` \|(.*)\|[^|]*\|$", table, re.MULTILINE)
    return {name: fields_in(cell) for name, cell in rows}


def fields_in(cell: str) -> set[str]:
    """The fields of a cell: between semicolons either one and its values behind a colon, or several."""
    outer = cell
    while (inner := re.sub(r"\{[^{}]*\}|\([^()]*\)", "", outer)) != outer:
        outer = inner
    return {name for part in outer.split(";") for name in re.findall(r"`(\w+)`", part.split(":")[0])}


def tags(kinds: tuple[Any, ...]) -> dict[str, set[str]]:
    return {str(kind.__struct_config__.tag): set(kind.__struct_fields__) - ALWAYS for kind in kinds}


def written_by_the_keeper() -> set[str]:
    """The names with which the keeper's sources append."""
    names: set[str] = set()
    for source in KEEPER_SOURCES:
        names |= set(re.findall(r"\bjournal\.append\(\s*\"(\w+)\"", source))
        names |= set(re.findall(r'"fact":"(\w+)', source))
    return names


def test_the_page_names_exactly_the_facts_that_are_decoded() -> None:
    assert set(page_facts(PAGE)) == set(tags(get_args(KeeperFact)))


def test_the_page_names_exactly_the_facts_that_the_keeper_writes() -> None:
    assert set(page_facts(PAGE)) == written_by_the_keeper()


@pytest.mark.parametrize("name", sorted(tags(get_args(KeeperFact))))
def test_each_fact_has_the_fields_that_the_page_gives_it(name: str) -> None:
    assert page_facts(PAGE)[name] == tags(get_args(KeeperFact))[name]


def test_no_fact_is_told_by_both() -> None:
    assert not set(tags(get_args(KeeperFact))) & set(tags(get_args(DaemonFact)))


def test_the_quiet_facts_are_those_of_the_page() -> None:
    told = re.search(r"with `\"state\"`\s+after every fact but ([^.]+)\.", PAGE)
    assert told
    assert set(re.findall(r"`(\w+)`", told[1])) == set(journal.QUIET_FACTS)


def test_the_version_of_the_page_is_the_one_that_is_written() -> None:
    assert f"journal version {journal.FORMAT.decode()}" in PAGE


# Proof that the reading of the page can fail.


def test_a_fact_that_the_page_lacks_is_found() -> None:
    without = PAGE.replace("| `killing` |", "| killing |")
    assert set(tags(get_args(KeeperFact))) - set(page_facts(without)) == {"killing"}
    more = PAGE.replace("| `killing` |", "| `dreaming` | | never |\n| `killing` |")
    assert set(page_facts(more)) - set(tags(get_args(KeeperFact))) == {"dreaming"}


def test_a_field_that_the_page_lacks_is_found() -> None:
    assert page_facts(PAGE.replace("`rows`, `cols` |", "`rows` |"))["resized"] == {"rows"}
