"""Every link between the pages leads somewhere: to a file that is there, and to a heading that is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .session import ROOT

PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def slug(heading: str) -> str:
    """The anchor of a heading, as code forges make it."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def broken(page: Path) -> list[str]:
    found: list[str] = []
    for match in _LINK.finditer(_CODE.sub("", page.read_text("utf-8"))):
        link = match[1] or match[2]
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            found.append(link)
        elif anchor and target.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", target.read_text("utf-8"), re.MULTILINE)
            if anchor not in {slug(heading) for heading in headings}:
                found.append(link)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# The `one` heading\n[a](#the-one-heading) [b](#no) [c](page.md) [d](no.md) `[e](no.md)`\n")
    assert broken(page) == ["#no", "no.md"]
