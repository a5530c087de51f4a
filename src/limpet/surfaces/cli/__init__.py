"""The command line. This door imports next to nothing: `limpet --version` is as quick as the interpreter lets it be."""

import os
import sys


def main(argv: list[str] | None = None) -> int:
    """Runs one command line and returns its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    if arguments in (["--version"], ["-V"]):
        from limpet.model.version import VERSION

        print(f"limpet {VERSION}")
        return 0
    if arguments[:1] == ["serve"] and "--detach" in arguments and os.fork():
        os._exit(0)  # before anything is imported: the daemon shall be nobody's child, and cost nothing twice
    from limpet.surfaces.cli.door import run

    return run(arguments)
