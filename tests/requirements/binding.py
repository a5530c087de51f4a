"""Which statements exist, which are open, which tests prove them, and where the three disagree."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.requirements.collector import MARKS_FILE

ROOT = Path(__file__).resolve().parents[2]
STATEMENT = re.compile(r"^### (\d\S*) \S", re.MULTILINE)
FAULT = re.compile(r"^\| (F\d+) \|", re.MULTILINE)


@dataclass(frozen=True)
class Proof:
    """One requirement mark on one test; an id that was no text is None."""

    test: str
    ids: tuple[str | None, ...]
    idle: bool = False


def statements(contract: str, faults: str) -> list[str]:
    """The ids of the contract's headings and of the catalogue's rows, as they stand in the pages."""
    return STATEMENT.findall(contract) + FAULT.findall(faults)


def read_open(text: str) -> dict[str, str]:
    """Open ids and what each still lacks."""
    tables = tomllib.loads(text)
    return {number: str(lacks) for table in tables.values() for number, lacks in table.items()}


def collect(arguments: Sequence[str], directory: Path, scratch: Path) -> list[Proof]:
    """The marks of a whole suite, by pytest's own collection in a process of its own."""
    found = scratch / "marks.json"
    options = ["--collect-only", "-q", "-p", "tests.requirements.collector", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *arguments],
        cwd=directory,
        env={**os.environ, MARKS_FILE: str(found), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0 or not found.exists():
        raise RuntimeError(f"the suite can't be collected:\n{done.stdout[-8000:]}{done.stderr[-2000:]}")
    return [Proof(proof["test"], tuple(proof["ids"]), proof["idle"]) for proof in json.loads(found.read_text("utf-8"))]


def disagreements(known: Sequence[str], lacking: Mapping[str, str], proofs: Sequence[Proof]) -> list[str]:
    """Every way in which pages, open.toml and tests contradict each other, one line each."""
    said: list[str] = [
        f"{number} stands twice in the pages" for number in sorted({n for n in known if known.count(n) > 1})
    ]
    for number, lacks in lacking.items():
        if number not in known:
            said.append(f"open.toml names {number}, which no page has")
        elif not lacks.strip():
            said.append(f"open.toml does not say what {number} lacks")
    proven: set[str | None] = set()
    for proof in proofs:
        if not proof.ids:
            said.append(f"{proof.test} has a requirement mark without a number")
        said += [f"{proof.test} marks a number that is no text: write it in quotes" for i in proof.ids if i is None]
        said += [f"{proof.test} marks {i}, which no page has" for i in proof.ids if i is not None and i not in known]
        if not proof.idle:
            proven.update(proof.ids)
    kept = [number for number in known if number not in lacking]
    return said + [f"{number} is not open, and no test proves it" for number in kept if number not in proven]
