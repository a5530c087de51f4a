"""The same command lines through typer: help, completion, and what is wrong with the ones that cannot be read."""

import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any, cast

import typer
import typer.main

from limpet.model.version import VERSION
from limpet.surfaces.cli.lean import Chosen
from limpet.surfaces.cli.table import COMMANDS, Command

_TYPES: dict[str, Any] = {"flag": bool, "text": str | None, "number": float | None, "texts": list[str]}


def parse(arguments: list[str]) -> Chosen | int:
    """What was asked, or the exit code where it was help, or nothing that can be done."""
    chosen: list[Chosen] = []
    app = _application(chosen.append)
    try:
        code = typer.main.get_command(app).main(arguments or ["--help"], prog_name="limpet", standalone_mode=False)
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "limpet"
        print(f"{path}: {error.format_message()}\nTry: {path} --help", file=sys.stderr)
        return 2
    except typer.Abort:
        return 130
    if chosen:
        return chosen[0]
    return code if isinstance(code, int) else 0


def _application(choose: Callable[[Chosen], None]) -> typer.Typer:
    app = typer.Typer(
        help="The shell that holds on: every command is kept by a process of its own, whatever happens around it.",
        epilog="Example: limpet run make",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_common)
    for command in COMMANDS:
        app.command(
            command.name,
            help=command.summary,
            epilog=_examples(command.example),
            context_settings={"allow_interspersed_args": not command.ends_options},
        )(_function(command, choose))
    return app


def _examples(examples: tuple[str, ...]) -> str:
    """Each in a paragraph of its own: the help's lines are wrapped, paragraphs are kept."""
    return "\n\n".join(("Examples:" if len(examples) > 1 else "Example:", *examples))


def _common(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.", is_eager=True)] = False,
) -> None:
    if version:
        print(f"limpet {VERSION}")
        raise typer.Exit


def _function(command: Command, choose: Callable[[Chosen], None]) -> Callable[..., None]:
    """A function whose signature is the command's row: typer reads commands off signatures."""
    parameters: list[inspect.Parameter] = []
    for words in command.words:
        kind: Any = list[str] if words.most is None else str if words.least else str | None
        default = inspect.Parameter.empty if words.least else [] if words.most is None else None
        note = typer.Argument(metavar=words.metavar, help=words.text)
        parameters.append(_parameter(words.dest, Annotated[kind, note], default))
    for option in command.options:
        default: Any = [] if option.kind == "texts" else option.default
        note = typer.Option(*option.flags, help=option.text, metavar=option.metavar, hidden=option.hidden)
        parameters.append(_parameter(option.dest, Annotated[_TYPES[option.kind], note], default))

    def chosen(**values: Any) -> None:
        for name, value in values.items():
            if isinstance(value, list):
                values[name] = tuple(cast("list[str]", value))
        choose(Chosen(command, values))

    chosen.__signature__ = inspect.Signature(parameters)  # pyright: ignore[reportFunctionMemberAccess]
    chosen.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return chosen


def _parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
