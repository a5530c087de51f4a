"""Reads the plain command lines without typer, which alone takes longer to import than a command takes to run."""

from dataclasses import dataclass
from typing import Any

from limpet.surfaces.cli.table import COMMANDS, Command, Option


@dataclass(frozen=True, slots=True)
class Chosen:
    """A command and the arguments of its function."""

    command: Command
    values: dict[str, Any]


def parse(arguments: list[str]) -> Chosen | None:
    """What was asked, or None for all that needs a longer look: help, mistakes, anything unusual."""
    command = next((each for each in COMMANDS if arguments and each.name == arguments[0]), None)
    if command is None:
        return None
    by_flag = {flag: option for option in command.options for flag in option.flags}
    values: dict[str, Any] = {option.dest: option.default for option in command.options}
    words: list[str] = []
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "--":
            words += rest
        elif argument.startswith("-") and argument != "-":
            name, equals, value = argument.partition("=")
            option = by_flag.get(name)
            if option is None or (equals and (option.kind == "flag" or not name.startswith("--"))):
                return None
            if option.kind != "flag" and not equals and (value := next(rest, None)) is None:
                return None
            if not _take(option, value, values):
                return None
        else:
            words.append(argument)
            if command.ends_options:
                words += rest
    return Chosen(command, values) if _place(command, words, values) else None


def _take(option: Option, value: str, values: dict[str, Any]) -> bool:
    if option.kind == "flag":
        values[option.dest] = True
    elif option.kind == "texts":
        values[option.dest] = (*values[option.dest], value)
    elif option.kind == "number":
        try:
            values[option.dest] = float(value)
        except ValueError:
            return False
    else:
        values[option.dest] = value
    return True


def _place(command: Command, words: list[str], values: dict[str, Any]) -> bool:
    """Gives each of the command's words its share; False when there are too few or too many."""
    for place in command.words:
        if len(words) < place.least:
            return False
        if place.most is None:
            values[place.dest] = tuple(words)
            words = []
        else:
            values[place.dest] = words[0] if words else None
            words = words[1:]
    return not words
