"""Names of the programs that a command line runs: by example, and against what bash really runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from limpet.model.naming import might_name, names_in, names_of
from tests.model.naming.examples import NAMED, NOT_WHOLE

WHITELIST = ("codex", "claude", "opencode", "pi", "gog", "himalaya", "playwright", "puppeteer")
STUB = '#!/bin/sh\nPATH={path}\nexport PATH\necho "${{0##*/}}" >>{log}\n{then}'
# These run what they are given, as the true ones do; each is one example's way through bash.
REAL = {"bash", "sh", "env", "timeout", "nice", "nohup", "setsid", "stdbuf", "xargs", "find", "cat", "time"}
# Goes on for ever, or beside its shell; or there is no such program.
UNTRIED = re.compile(r"while|[^&>]&( |$)|select|\$HOME|/usr")
OURS = {
    "codex",
    "pi",
    "gog",
    "x",
    "y",
    "sudo",
    "npx",
    "npm",
    "pnpm",
    "pnpmx",
    "bunx",
    "yarn",
    "playwright",
    "diff",
    "which",
}


@pytest.mark.requirement("2.1")
@pytest.mark.parametrize(("command", "names"), NAMED)
def test_what_it_runs(command: str, names: tuple[str, ...]) -> None:
    assert names_in(command) == (names, True)


@pytest.mark.requirement("2.1")
@pytest.mark.parametrize(("command", "names"), NOT_WHOLE)
def test_what_cannot_be_told_is_said(command: str, names: tuple[str, ...]) -> None:
    assert names_in(command) == (names, False)


@pytest.mark.requirement("2.1")
@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (("/usr/bin/codex", "--help"), ("codex",)),
        (("codex;", "pi"), ("codex;",)),
        (("bash", "-c", "cd x && codex"), ("bash", "cd", "codex")),
        (("env", "A=$(pi)", "codex"), ("env", "codex")),
        (("sudo", "-u", "me", "--", "codex"), ("sudo", "codex")),
        ((), ()),
    ],
)
def test_an_argv_is_no_text(argv: tuple[str, ...], names: tuple[str, ...]) -> None:
    assert names_of(argv) == (names, True)


@pytest.mark.requirement("2.1")
def test_the_first_that_is_wanted() -> None:
    assert names_in("cd x && Pi | codex").first_of({"codex", "pi"}) == "pi"
    assert names_in("cd x && make").first_of({"codex", "pi"}) is None


@pytest.mark.requirement("2.7")
@pytest.mark.parametrize(("command", "names"), NAMED)
def test_no_name_is_missed_at_first_sight(command: str, names: tuple[str, ...]) -> None:
    """The quick look may say yes too often, but never no to what is found."""
    for name in names:
        assert might_name(command, (name,))
    if not set(names) & set(WHITELIST) and "codex" not in command and "pi" not in command:
        assert not might_name(command, WHITELIST)


@pytest.mark.requirement("2.1")
@pytest.mark.parametrize(("command", "names"), [pair for pair in NAMED if not UNTRIED.search(pair[0])])
def test_bash_runs_nothing_else(command: str, names: tuple[str, ...], tmp_path: Path) -> None:
    """Against the true thing: each program that bash starts for the example is among the names."""
    programs, log, work = tmp_path / "bin", tmp_path / "log", tmp_path / "work"
    programs.mkdir()
    work.mkdir()
    (work / "f").touch()
    for name in REAL:
        path = shutil.which(name)
        if path is not None:
            (programs / name).symlink_to(path)
    for name in OURS:
        (programs / name).write_text(STUB.format(path=programs, log=log, then="exit 0"))
        (programs / name).chmod(0o755)
    done = subprocess.run(
        ["/bin/bash", "-c", command],
        env={"PATH": str(programs), "HOME": str(tmp_path)},
        cwd=work,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=30,
        check=False,
    )
    ran = set(log.read_text().split()) if log.exists() else set[str]()
    assert ran <= set(names), done.stderr
