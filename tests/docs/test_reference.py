"""The generated reference pages are what the code says now."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from docs import generate
from limpet.dialects import ROWS

PAGES = generate.pages()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_committed_page_is_the_generated_one(page: Path) -> None:
    assert page.read_text("utf-8") == PAGES[page], f"{page} is old: run `python -m docs.generate`"


def test_every_row_is_on_its_page() -> None:
    page = generate.operations_page()
    assert [row.name for row in ROWS if f"## `{row.name}`\n" not in page] == []


def _all_structs() -> set[type[msgspec.Struct]]:
    unvisited: list[type[msgspec.Struct]] = [struct for row in ROWS for struct in (row.request, row.response)]
    known: set[type[msgspec.Struct]] = set()
    while unvisited:
        struct = unvisited.pop()
        if struct not in known:
            known.add(struct)
            inner: dict[str, type[msgspec.Struct]] = {}
            generate.collect(struct, inner)
            unvisited += inner.values()
    return known


def test_no_note_is_about_a_field_that_is_not_there() -> None:
    there = {(struct.__name__, field) for struct in _all_structs() for field in struct.__struct_fields__}
    assert set(generate.FIELD_NOTES) - there == set()
