"""From a command line to a command's function, and from whatever it raises to an exit code."""

import io
import os
import sys
import traceback
from importlib import import_module

from limpet.model.errors import Refusal
from limpet.surfaces.cli.lean import Chosen
from limpet.surfaces.cli.lean import parse as parse_lean


def run(arguments: list[str]) -> int:
    """The exit code of a whole command line."""
    _fill_standard_descriptors()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    chosen: Chosen | int | None = None if "_LIMPET_COMPLETE" in os.environ else parse_lean(arguments)
    if chosen is None:
        from limpet.surfaces.cli.full import parse as parse_full

        chosen = parse_full(arguments)
    if isinstance(chosen, int):
        return chosen
    return execute(chosen)


def execute(chosen: Chosen) -> int:
    """Calls the command's function; no traceback reaches a person."""
    module, _, function = chosen.command.function.partition(":")
    failed = 125 if chosen.command.name in ("run", "wait") else 1
    try:
        code: int = getattr(import_module(module), function)(**chosen.values)
        _flush()
    except Refusal as refusal:
        from limpet.surfaces.cli.say import say_failure

        say_failure(refusal.answer(), as_json=bool(chosen.values.get("as_json")))
        return failed
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # or the interpreter complains on its way out
        return 141
    except OSError as error:
        print(f"limpet: {error.strerror or error}{f': {error.filename}' if error.filename else ''}", file=sys.stderr)
        return failed
    except Exception as error:  # noqa: BLE001  (a fault of ours, in a line that can be reported)
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{os.path.basename(frame.filename)}:{frame.lineno}"  # noqa: PTH119
        print(f"limpet failed at {where}: {type(error).__name__}: {error!s:.300}", file=sys.stderr)
        return failed
    return code


def _fill_standard_descriptors() -> None:
    """So that no socket of ours becomes somebody's closed stdout."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one


def _flush() -> None:
    """Now, so that whoever does not read any more is noticed here."""
    if sys.stdout is not None:  # pyright: ignore[reportUnnecessaryComparison]  (it is, when descriptor 1 is closed)
        sys.stdout.flush()
