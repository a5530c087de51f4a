"""Compiles the limit programs into a cache directory, once for each version of their source."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from functools import cache
from pathlib import Path

SOURCES = Path(__file__).parent / "limits"
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror")


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "limpet-bench"


@cache
def limit_program(name: str) -> str:
    """The path of the compiled `limits/{name}.c`."""
    sources = [SOURCES / "clock.h", SOURCES / f"{name}.c"]
    version = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    program = cache_directory() / f"{name}-{version}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=program.parent) as scratch:
            built = Path(scratch) / name
            subprocess.run(["gcc", *FLAGS, "-o", str(built), str(sources[1])], check=True)
            built.rename(program)  # whole or not at all: two benches may build at once
    return str(program)


@cache
def produced_sha256(size_bytes: int) -> str:
    """The hash of what `produce SIZE` writes, taken from a run of its own with nothing between."""
    digest = hashlib.sha256()
    with subprocess.Popen([limit_program("produce"), str(size_bytes)], stdout=subprocess.PIPE) as producer:
        assert producer.stdout is not None
        while data := producer.stdout.read(1 << 20):
            digest.update(data)
    if producer.returncode:
        raise RuntimeError(f"produce ended with {producer.returncode}")
    return digest.hexdigest()


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
