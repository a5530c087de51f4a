"""A directory of which nothing came onto the disk is bare; one byte that was written makes it a run's."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.store.run_directory import DAEMON_JOURNAL, RunDirectory


@pytest.mark.requirement("1.11", "F09")
@pytest.mark.parametrize(("data", "is_bare"), [(b"", True), (b"\0" * 894, True), (b"\0" * 894 + b"1", False)])
@pytest.mark.parametrize("name", [DAEMON_JOURNAL, "1/stdout.spool"])
def test_zeros_stand_for_what_was_never_written(tmp_path: Path, name: str, data: bytes, is_bare: bool) -> None:
    """Injector: the zeros, as a file system that lost its power gives them back."""
    directory = RunDirectory(tmp_path)
    directory.lay_out()
    directory.kept.mkdir()
    (tmp_path / name).write_bytes(data)
    assert directory.is_bare() is is_bare
