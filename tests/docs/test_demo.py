"""`make demo` shows what it claims, leaves nothing behind, and fails where a claim is false."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from .session import ROOT


@pytest.fixture
def place() -> Iterator[Path]:
    """Where the demo may put its things; a short path, because sockets are among them."""
    with tempfile.TemporaryDirectory(prefix="lmp", dir="/tmp") as name:
        yield Path(name)


def run_demo(demo: Path, place: Path) -> subprocess.CompletedProcess[str]:
    """As a user does who has nothing but a PATH."""
    env = {"PATH": os.environ["PATH"], "TMPDIR": str(place)}
    return subprocess.run(
        [demo / "run.sh"], env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=100, check=False
    )


def test_every_claim_holds(place: Path) -> None:
    done = run_demo(ROOT / "demo", place)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "demo: every claim held" in done.stdout
    assert list(place.iterdir()) == []


def test_a_false_claim_fails_it(tmp_path: Path, place: Path) -> None:
    """The same demo with a build that ends with another code than the demo says."""
    demo = tmp_path / "demo"
    demo.mkdir()
    for name in ("src", ".venv"):
        (tmp_path / name).symlink_to(ROOT / name)
    for name in ("run.sh", "build.sh", "server.sh", "stubborn.sh"):
        text = (ROOT / "demo" / name).read_text()
        (demo / name).write_text(text.replace("exit 7", "exit 6") if name == "build.sh" else text)
        (demo / name).chmod(0o755)
    done = run_demo(demo, place)
    assert done.returncode == 1, done.stdout
    assert "this is not true: exit code 6" in done.stderr
    assert list(place.iterdir()) == []
