"""Proves the hook of conftest.py: a skipped test fails a run that allows none, and only such a run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = {
    "marked": "import pytest\n@pytest.mark.skip(reason='no such thing')\ndef test_it(): pass\n",
    "called": "import pytest\ndef test_it(): pytest.skip('no such thing')\n",
    "module": "import pytest\npytest.skip('no such thing', allow_module_level=True)\n",
    "expected": "import pytest\n@pytest.mark.xfail\ndef test_it(): assert False\n",
    "passing": "def test_it(): pass\n",
}


def run(directory: Path, text: str, no_skips: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(Path(__file__).with_name("conftest.py"), directory)
    (directory / "test_planted.py").write_text(text)
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(directory)],
        cwd=directory,
        env={**os.environ, "LIMPET_NO_SKIPS": no_skips},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("kind", ["marked", "called", "module"])
def test_a_skip_fails_where_none_is_allowed(tmp_path: Path, kind: str) -> None:
    done = run(tmp_path, SUITE[kind], no_skips="1")
    assert done.returncode in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED), done.stdout
    assert "LIMPET_NO_SKIPS" in done.stdout
    assert "no such thing" in done.stdout


@pytest.mark.parametrize("kind", ["marked", "called"])
def test_a_skip_is_a_skip_elsewhere(tmp_path: Path, kind: str) -> None:
    done = run(tmp_path, SUITE[kind], no_skips="0")
    assert done.returncode == pytest.ExitCode.OK, done.stdout
    assert "1 skipped" in done.stdout


@pytest.mark.parametrize("kind", ["expected", "passing"])
def test_what_is_no_skip_passes(tmp_path: Path, kind: str) -> None:
    done = run(tmp_path, SUITE[kind], no_skips="1")
    assert done.returncode == pytest.ExitCode.OK, done.stdout
