"""What a file system that lost its power left as zeros is cut off a spool; zeros that a command wrote stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from limpet.store.run_directory import RunDirectory


@pytest.mark.requirement("0.9", "F16")
@pytest.mark.parametrize(
    ("data", "durable", "left"),
    [
        (b"abc" + b"\0" * 600 + b"def", 0, 3),
        (b"abc" + b"\0" * 9, 0, 3),
        (b"abc" + b"\0" * 9, 12, 12),
        (b"a\0b\0\0cd" * 100, 0, 700),
        (b"x" * 500 + b"\0" * 12 + b"y" * 88, 0, 500),
        (b"x" * 500 + b"\0" * 11 + b"y" * 89, 0, 600),
        (b"x" * ((1 << 20) - 2) + b"\0" * 300 + b"y", 0, (1 << 20) - 2),
        (b"x" * ((1 << 20) + 98) + b"\0" * 4 + b"y" * 9, 100, (1 << 20) + 111),
        (b"", 0, 0),
    ],
)
def test_zeros_that_may_be_lost_bytes_are_cut(tmp_path: Path, data: bytes, durable: int, left: int) -> None:
    """Injector: the zeros, as a file system that lost its power gives them back."""
    directory = RunDirectory(tmp_path)
    directory.kept.mkdir()
    directory.spool_path("stdout").write_bytes(data)
    assert directory.cut_zeros("stdout", durable) == left
    assert directory.spool_path("stdout").read_bytes() == data[:left]
