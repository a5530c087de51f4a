"""Breaks what each statement of the contract rests on, one place at a time: a test of that statement must turn red."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TABLE = Path(__file__).with_name("breaks.toml")
FAILED = re.compile(r"^FAILED (.+?)(?: - .*)?$", re.MULTILINE)
# The longest that the tests of one break may take.
WITHIN_S = 900.0
# What a scratch copy has of its own; all else of the checkout is seen through links.
COPIED = ("src", "tests")
LEFT_OUT = (*COPIED, ".venv", ".git")


@dataclass(frozen=True)
class Break:
    """One change of the source that breaks one statement, and the tests that are to notice."""

    statement: str
    what: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]

    def applied(self, root: Path = ROOT) -> str:
        """The file with the break in it; ValueError unless what it replaces is there exactly once."""
        text = (root / self.file).read_text("utf-8")
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"{self.statement}, {self.what}: its old text is {found} times in {self.file}")
        return text.replace(self.old, self.new)


def breaks(table: Path = TABLE) -> list[Break]:
    """The table, in its order."""
    rows: list[dict[str, Any]] = tomllib.loads(table.read_text("utf-8"))["break"]
    return [Break(tests=tuple(f"tests/{test}" for test in row.pop("tests")), **row) for row in rows]


class Scratch:
    """A copy of the checkout with a venv whose `python` and `limpet` run the copy, whatever starts them."""

    def __init__(self, base: Path) -> None:
        self.root = base / "checkout"
        self.root.mkdir()
        for name in COPIED:
            shutil.copytree(ROOT / name, self.root / name, ignore=shutil.ignore_patterns("__pycache__"))
        for path in ROOT.iterdir():
            if path.name not in LEFT_OUT:
                (self.root / path.name).symlink_to(path)
        self.python = self._venv(base / "venv")

    def _venv(self, venv: Path) -> Path:
        """Nothing is installed: links to the packages that are there, but for the one that says where the source is."""
        ours = Path(sys.prefix)
        (venv / "bin").mkdir(parents=True)
        shutil.copy(ours / "pyvenv.cfg", venv)
        python = venv / "bin" / "python"
        python.symlink_to(Path(sys.executable).resolve())
        script = (ours / "bin" / "limpet").read_text("utf-8").partition("\n")[2]
        (venv / "bin" / "limpet").write_text(f"#!{python}\n{script}", "utf-8")
        (venv / "bin" / "limpet").chmod(0o755)
        packages = next(ours.glob("lib/python3*/site-packages"))
        there = venv / packages.relative_to(ours)
        there.mkdir(parents=True)
        for path in packages.iterdir():
            if path.suffix == ".pth" and str(ROOT) in path.read_text("utf-8"):
                (there / path.name).write_text(f"{self.root / 'src'}\n", "utf-8")
            else:
                (there / path.name).symlink_to(path)
        return python

    @contextmanager
    def broken(self, planted: Break) -> Generator[None]:
        """Meanwhile the copy has the break in it."""
        path = self.root / planted.file
        before, times = path.read_text("utf-8"), path.stat()
        path.write_text(planted.applied(self.root), "utf-8")
        # Not of this second: what was compiled of the one text is never taken for the other's.
        os.utime(path, (times.st_atime, times.st_mtime + 2 + time.monotonic() % 1000))
        try:
            yield
        finally:
            path.write_text(before, "utf-8")
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def red(self, tests: Sequence[str], *, to_first: bool) -> list[str]:
        """The tests among them that fail. RuntimeError where they could not be run, which shows nothing."""
        options = ["-q", "-rf", "--tb=short", "-p", "no:cacheprovider", *(["-x"] if to_first else [])]
        with tempfile.TemporaryFile("w+") as told:
            done = subprocess.Popen(
                [str(self.python), "-m", "pytest", *options, *tests],
                cwd=self.root,
                env={**os.environ, "PATH": f"{self.python.parent}:{os.environ['PATH']}", "LIMPET_NO_SKIPS": "0"},
                stdin=subprocess.DEVNULL,
                stdout=told,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code = done.wait(WITHIN_S)
            except subprocess.TimeoutExpired:
                os.killpg(done.pid, signal.SIGKILL)
                done.wait()
                raise RuntimeError(f"no end within {WITHIN_S:.0f} s of {', '.join(tests)}") from None
            told.seek(0)
            report = told.read()
        failed = FAILED.findall(report)
        if code not in (0, 1) or (code == 1 and not failed):
            raise RuntimeError(f"the tests could not be run ({code}):\n{report[-3000:]}")
        return failed


@contextmanager
def scratch() -> Generator[Scratch]:
    with tempfile.TemporaryDirectory(prefix="limpet-prove-") as base:
        yield Scratch(Path(base))


def verdict(copy: Scratch, planted: Break) -> tuple[bool, str]:
    """Whether a test noticed the break, and which, or what came of it."""
    try:
        with copy.broken(planted):
            red = copy.red(planted.tests, to_first=True)
    except (RuntimeError, ValueError) as error:
        return False, f"ERROR: {error}"
    return bool(red), f"killed by {red[0]}" if red else "SURVIVED"


def prove(count: int, chosen: Sequence[Break] | None = None) -> str:
    """Plants so many breaks of the table, evenly chosen; an AssertionError names those that no test noticed."""
    chosen = breaks() if chosen is None else chosen
    chosen = [chosen[place * len(chosen) // count] for place in range(count)] if count < len(chosen) else chosen
    survived: list[str] = []
    lines: list[str] = []
    with scratch() as copy:
        tests = list(dict.fromkeys(test for each in chosen for test in each.tests))
        if red := copy.red(tests, to_first=False):
            raise AssertionError(f"red with nothing broken, so they show nothing: {', '.join(red)}")
        for planted in chosen:
            noticed, said = verdict(copy, planted)
            lines.append(f"{planted.statement:5} {planted.what}: {said}")
            print(lines[-1], flush=True)
            if not noticed:
                survived.append(lines[-1])
    if survived:
        raise AssertionError(f"{len(survived)} of {len(chosen)} breaks were not noticed:\n" + "\n".join(survived))
    return "\n".join([f"{len(chosen)} breaks planted, each noticed by a test of its statement", *lines])


if __name__ == "__main__":
    wanted = [each for each in breaks() if not sys.argv[1:] or each.statement in sys.argv[1:]]
    print(prove(len(wanted), wanted))
