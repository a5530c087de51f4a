"""Command lines: the quick reader agrees with typer, and every row with its function."""

import inspect
from importlib import import_module
from typing import Any

import pytest

from limpet.surfaces.cli import full, lean
from limpet.surfaces.cli.table import COMMANDS, Command

LINES = [
    "run true",
    "run -d true",
    "run --detach --json true",
    "run ls -d --json",
    "run -- ls -la",
    "run --session s --timeout 1.5 --cwd /tmp --label a --label b -- --odd",
    "run --timeout=2 --label=x sleep 1",
    "run --timeout -5 true",
    "run --pty bash",
    "run - x",
    "run a -- b",
    "ps",
    "ps -a",
    "ps --all --json",
    "logs r",
    "logs -f r",
    "logs r -f --stream stderr --raw",
    "logs -- r",
    "wait a b c",
    "wait a --timeout 3 b --json",
    "kill a",
    "kill -s KILL a b",
    "kill a --signal 9",
    "send r",
    "send r Enter",
    "send r 'a b' C-c Up --secret --text x --json",
    "send r -- -x",
    "search x",
    "search -e x --session s --run r --stream pty -n 5 --json",
    "attach c",
    "attach --detach-keys C-a c --json",
    "pty run c echo hi --timeout 3",
    "pty exec -i c vim --cwd /tmp",
    "pty send c --secret x Enter",
    "pty wait c --for x --from 3",
    "pty snapshot c --format html --json",
    "blocks list c",
    "blocks search c x --regex --limit 3",
    "backlog take s",
    "backlog take s --max 3 --wait 1.5 --json",
    "backlog ack l",
    "call runs.list",
    "call runs.list {}",
    "call shell -",
    "serve",
    "serve --home /x --ready-json --detach",
    "status",
    "status --json",
    "stop --kill-runs",
    "restart",
]
MISTAKES = [
    "",
    "run",
    "run -d",
    "run --nosuch true",
    "run --timeout soon true",
    "run --timeout",
    "run --detach=yes true",
    "wait",
    "kill --json",
    "logs",
    "logs a b",
    "send",
    "search",
    "search a b",
    "backlog",
    "backlog take",
    "backlog take a b",
    "call",
    "call a b c",
    "ps extra",
    "ps -x",
    "nosuch",
    "--nosuch",
    "--help",
    "run --help",
]


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("line", LINES)
def test_both_readers_agree(line: str) -> None:
    quick = lean.parse(line.split())
    assert quick is not None
    assert full.parse(line.split()) == quick


@pytest.mark.parametrize("words", [["run", "", "a b", "new\nline", "é"], ["call", "shell", '{"command": "ls -l"}']])
def test_words_stay_as_they_are(words: list[str]) -> None:
    quick = lean.parse(words)
    assert quick is not None
    assert full.parse(words) == quick


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("line", MISTAKES)
def test_mistakes_are_for_the_one_who_can_explain_them(line: str, capfd: pytest.CaptureFixture[str]) -> None:
    words = line.split()
    assert lean.parse(words) is None
    code = full.parse(words)
    out, err = capfd.readouterr()
    if line.endswith("--help") or not line:
        assert (code, err) == (0, "")
        assert "limpet" in out
    else:
        assert (code, out) == (2, "")
        assert 1 <= len(err.splitlines()) <= 2
        assert "--help" in err


def parameters(command: Command) -> dict[str, Any]:
    module, _, name = command.function.partition(":")
    return dict(inspect.signature(getattr(import_module(module), name)).parameters)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_row_fits_its_function(command: Command) -> None:
    expected = [option.dest for option in command.options] + [words.dest for words in command.words]
    assert sorted(parameters(command)) == sorted(expected)
    assert command.example
    assert all(f"limpet {command.name}" in example for example in command.example)
