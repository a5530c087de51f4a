"""Everything that the pages have their reader do is done, on a home of its own, and says what they show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.contract.home import Home

from .session import ROOT, Session, Step, agrees, steps

PAGES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md", *sorted((ROOT / "docs" / "how-to").glob("*.md"))]


def try_page(page: Path) -> None:
    """Does it step by step."""
    house = Home()
    session = Session(house)
    try:
        for step in steps(page):
            said, code = session.run(step.command)
            where = f"{step.page.name}:{step.line}: {step.command.strip()}\nsaid (exit code {code}):\n{said}"
            if step.shown is None:
                assert code == 0, where
            else:
                assert agrees(step.shown, said), f"{where}\nbut the page shows:\n{step.shown}"
    finally:
        session.close()
        house.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_page_is_true(page: Path) -> None:
    assert steps(page)
    try_page(page)


# Proof that the reading and the comparing above can fail.


@pytest.mark.parametrize(
    ("shown", "said", "same"),
    [
        ("hi\n", "hi\n", True),
        ("hi\n", "hi", True),
        ("hi\n", "hi you\n", False),
        ("run ... is over\n", "run 1m7rb is over\n", True),
        ("run ... is over\n", "run 1m7rb is\nover\n", False),
        ("one\n...\nfour\n", "one\ntwo\nthree\nfour\n", True),
        ("one\n...\nfour\n", "one\nfour\n", True),
        ("one\n...\nfour\n", "one\ntwo\n", False),
        ("", "", True),
        ("", "unasked for\n", False),
    ],
)
def test_comparing(shown: str, said: str, same: bool) -> None:
    assert agrees(shown, said) is same


def test_reading(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ one \\\n> more\nsaid\n$ two\n```\n\n```bash\nthree\n```\n"
        "<!-- not run: it would take long -->\n```bash\nfour\n```\n```\nfive\n```\n"
        "```python\nsix\n```\n\n```text\nsaid\n```\n"
    )
    assert steps(page) == [
        Step(page, 2, "one \\\nmore\n", "said\n"),
        Step(page, 5, "two\n", ""),
        Step(page, 9, "three\n", None),
        Step(page, 19, "python - <<'END OF PROGRAM'\nsix\nEND OF PROGRAM", "said\n"),
    ]


@pytest.mark.parametrize("block", ["```bash\nfalse\n```\n", "```console\n$ echo one\ntwo\n```\n"])
def test_a_page_that_is_not_true_is_found(tmp_path: Path, block: str) -> None:
    page = tmp_path / "page.md"
    page.write_text(block)
    with pytest.raises(AssertionError):
        try_page(page)
