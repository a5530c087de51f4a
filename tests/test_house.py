"""Holds the rules of the house over src: size, names, docstrings, a room in the architecture page, imports."""

from __future__ import annotations

import ast
import configparser
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
FILE_WALL_LINES = 500
# docs/adr/0013: every line here is one that can fail a run; it grows only against an argument.
KEEPER_WALL_LINES = 3800
HOMELESS_NAMES = frozenset({"utils", "util", "helpers", "helper", "manager", "managers", "common"})


def sources(src: Path = SRC) -> list[Path]:
    """Every Python file of src."""
    return sorted(src.rglob("*.py"))


def line_count(path: Path) -> int:
    return len(path.read_text("utf-8").splitlines())


def dotted(path: Path, src: Path) -> str:
    """The import name of a file: limpet/model/run.py is limpet.model.run, a package's __init__.py the package."""
    parts = path.relative_to(src).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def too_long(src: Path, wall_lines: int) -> list[str]:
    lengths = {path.relative_to(src): line_count(path) for path in sources(src)}
    return [f"{path}: {lines} lines" for path, lines in lengths.items() if lines > wall_lines]


def without_docstring(src: Path) -> list[str]:
    return [str(path.relative_to(src)) for path in sources(src) if not ast.get_docstring(ast.parse(path.read_bytes()))]


def homeless(src: Path) -> list[str]:
    names = {name for path in sources(src) for name in dotted(path, src).split(".") if name in HOMELESS_NAMES}
    return sorted(names)


def without_room(src: Path, page: str) -> list[str]:
    """Modules that the page names neither as limpet.model.run nor as limpet/model/run.py (packages: limpet/model/)."""
    missing: list[str] = []
    for path in sources(src):
        name = dotted(path, src)
        place = name.replace(".", "/") + ("/" if path.name == "__init__.py" else ".py")
        named = rf"(?<![\w./]){re.escape(name)}(?![\w]|\.\w)"
        placed = rf"(?<![\w.])(?:src/)?{re.escape(place)}(?!\w)"
        if not re.search(named, page) and not re.search(placed, page):
            missing.append(name)
    return missing


def imported_roots(path: Path) -> set[str]:
    """The first names of all that a file imports, function bodies included; relative imports stay inside."""
    roots: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            roots |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            roots.add(node.module.partition(".")[0])
    return roots


def foreign_imports(package: Path) -> list[str]:
    """Imports of a package beyond the standard library and itself."""
    allowed = sys.stdlib_module_names | {package.name}
    return sorted(f"{path.name}: {root}" for path in sources(package) for root in imported_roots(path) - allowed)


def without_floor(src: Path, contracts: str) -> list[str]:
    """Children of limpet that no floor names, and folders of dialects and surfaces that their contract leaves out."""
    config = configparser.ConfigParser()
    config.read_string(contracts)
    missing: list[str] = []
    for section, package, prefix in (
        ("floors", "limpet", "limpet."),
        ("dialects", "limpet/dialects", ""),
        ("surfaces", "limpet/surfaces", ""),
    ):
        layers = set(re.findall(r"[\w.]+", config[f"importlinter:contract:{section}"]["layers"]))
        for child in sorted((src / package).iterdir()):
            folder = (child / "__init__.py").is_file()
            module = section == "floors" and child.suffix == ".py" and not child.name.startswith("__")
            if (folder or module) and prefix + child.stem not in layers:
                missing.append(f"{package}/{child.name}")
    return missing


def test_no_file_reaches_the_wall() -> None:
    assert too_long(SRC, FILE_WALL_LINES) == []


def test_every_file_says_its_reason() -> None:
    assert without_docstring(SRC) == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert homeless(SRC) == []


def test_no_module_without_a_room() -> None:
    assert without_room(SRC, ARCHITECTURE.read_text("utf-8")) == []


def test_the_keeper_needs_the_standard_library_alone() -> None:
    assert foreign_imports(SRC / "limpet_keeper") == []


def test_the_keeper_stays_small() -> None:
    lines = {path.name: line_count(path) for path in sources(SRC / "limpet_keeper")}
    assert sum(lines.values()) <= KEEPER_WALL_LINES, lines


def test_every_module_has_its_floor() -> None:
    assert without_floor(SRC, (ROOT / ".importlinter").read_text("utf-8")) == []


# Proof that the rules above can fail: each over a small tree that breaks it.


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A src of one package with a module of 3 lines, whose names and imports the tests bend."""
    package = tmp_path / "src" / "limpet"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text('"""A package."""\n')
    (package / "run.py").write_text('"""A module."""\n\nVALUE = 1\n')
    return tmp_path / "src"


def test_a_long_file_is_found(planted: Path) -> None:
    assert too_long(planted, 3) == []
    assert too_long(planted, 2) == ["limpet/run.py: 3 lines"]


def test_a_missing_docstring_is_found(planted: Path) -> None:
    assert without_docstring(planted) == []
    (planted / "limpet" / "run.py").write_text("# a comment is none\nVALUE = 1\n")
    assert without_docstring(planted) == ["limpet/run.py"]


def test_an_empty_name_is_found(planted: Path) -> None:
    assert homeless(planted) == []
    (planted / "limpet" / "helpers").mkdir()
    (planted / "limpet" / "helpers" / "run.py").write_text("")
    assert homeless(planted) == ["helpers"]


@pytest.mark.parametrize(
    ("page", "missing"),
    [
        ("`limpet` holds `limpet.run`.", []),
        ("src/limpet/ holds limpet/run.py", []),
        ("Only `limpet.run` is named.", ["limpet"]),
        ("`limpet` holds limpet.runs, limpet.run.x and other_limpet/run.py", ["limpet.run"]),
        ("", ["limpet", "limpet.run"]),
    ],
)
def test_a_module_without_a_room_is_found(planted: Path, page: str, missing: list[str]) -> None:
    assert without_room(planted, page) == missing


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import os.path", []),
        ("from limpet.run import VALUE", []),
        ("from . import run", []),
        ("def f():\n    import msgspec.json", ["run.py: msgspec"]),
        ("from apsw import Connection", ["run.py: apsw"]),
    ],
)
def test_a_foreign_import_is_found(planted: Path, line: str, found: list[str]) -> None:
    (planted / "limpet" / "run.py").write_text(line)
    assert foreign_imports(planted / "limpet") == found


def test_a_module_without_a_floor_is_found(planted: Path) -> None:
    for package in ("dialects/shell", "dialects/odd", "surfaces/http"):
        (planted / "limpet" / package).mkdir(parents=True)
        (planted / "limpet" / package / "__init__.py").write_text("")
    contracts = (
        "[importlinter:contract:floors]\nlayers = (limpet.run)\n"
        "[importlinter:contract:dialects]\nlayers = (shell)\n"
        "[importlinter:contract:surfaces]\nlayers = (http) | (ws)\n"
    )
    assert without_floor(planted, contracts) == ["limpet/dialects/odd"]
    (planted / "limpet" / "stray.py").write_text("")
    assert without_floor(planted, contracts) == ["limpet/stray.py", "limpet/dialects/odd"]


BREACHES = {
    "limpet_keeper/__init__.py": "import limpet.model",
    "limpet/model/__init__.py": "import time",
    "limpet/store/__init__.py": "import limpet.engine",
    "limpet/engine/__init__.py": "import apsw, httptools, hyperscan, mcp, prometheus_client, pyghostty, rich\n"
    "import uvicorn, websockets",
    "limpet/client/__init__.py": "import limpet.store",
    "limpet/dialects/pty/__init__.py": "import limpet.dialects.shell",
    "limpet/dialects/shell/__init__.py": "",
    "limpet/surfaces/http/__init__.py": "",
    "limpet/surfaces/ws/__init__.py": "import starlette, limpet.surfaces.http",
}


def test_each_import_contract_can_break(tmp_path: Path) -> None:
    """One tree that breaks every contract of .importlinter at least once: the linter names them all."""
    shutil.copy(ROOT / ".importlinter", tmp_path)
    for package in ("", "testing", "surfaces", "dialects", "client", "engine", "store", "model"):
        (tmp_path / "limpet" / package).mkdir(parents=True, exist_ok=True)
        (tmp_path / "limpet" / package / "__init__.py").write_text("")
    for name, text in BREACHES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text + "\n")
    linter = "from importlinter.cli import lint_imports; import sys; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run(
        [sys.executable, "-c", linter],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    config = configparser.ConfigParser()
    config.read(ROOT / ".importlinter")
    names = [config[section]["name"] for section in config.sections() if ":contract:" in section]
    assert [name for name in names if f"{name} BROKEN" not in done.stdout] == [], done.stdout
