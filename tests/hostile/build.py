"""Compiles the hostile programs, once for each session of tests, into a directory that every user may read."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

SOURCES = Path(__file__).with_name("programs")
# Static: a tree of fifty is up sooner, and a command without an environment or a readable library still starts.
FLAGS = ("-O1", "-Wall", "-Wextra", "-Werror", "-static", "-pthread")
SETUID = "uid_changer"


def compile_all(into: Path) -> None:
    """Every program under its own name; the one that changes its uid becomes setuid, where we are root."""
    running = [
        (source, subprocess.Popen(["gcc", *FLAGS, "-o", str(into / source.stem), str(source)], stderr=subprocess.PIPE))
        for source in sorted(SOURCES.glob("*.c"))
    ]
    said = [(source, compiler.communicate()[1].decode(), compiler.returncode) for source, compiler in running]
    if failed := [f"{source.name} does not compile:\n{words}" for source, words, code in said if code != 0]:
        raise RuntimeError("\n".join(failed))
    if os.geteuid() == 0:
        (into / SETUID).chmod(0o4755)


@contextmanager
def programs() -> Generator[Path]:
    """The directory of the compiled programs, for as long as it is needed."""
    directory = Path(tempfile.mkdtemp(prefix="limpet-programs-"))
    try:
        directory.chmod(0o755)
        compile_all(directory)
        yield directory
    finally:
        shutil.rmtree(directory)
