"""Real journals to begin from: those that were recorded as golden files."""

from __future__ import annotations

from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "formats" / "golden"


def journals(name: str = "*.journal") -> list[bytes]:
    """The recorded journals, shortest first."""
    return sorted({path.read_bytes() for path in GOLDEN.glob(f"*/*/**/{name}")}, key=lambda data: (len(data), data))


def bodies(journal: bytes) -> list[bytes]:
    """The JSON of each whole line."""
    return [line.split(b" ", 2)[2] for line in journal.split(b"\n")[:-1]]
