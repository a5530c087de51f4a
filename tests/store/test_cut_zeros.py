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


@pytest.mark.requirement("0.9", "F16")
@pytest.mark.parametrize(
    ("data", "begins", "left"),
    [
        # One NUL, the last of a sector, amid what was written in one go.
        (b"x" * 511 + b"\0" + b"y" * 88, [0, 600], 600),
        # The same where a write began with it, or where nothing is known of writes.
        (b"x" * 511 + b"\0" + b"y" * 88, [0, 511, 600], 511),
        (b"x" * 511 + b"\0" + b"y" * 88, [0, 100], 511),
        # The last byte of all.
        (b"x" * 99 + b"\0", [0, 100], 100),
        (b"x" * 99 + b"\0", [0, 99, 100], 99),
        # All NULs go among which lost ones may begin.
        (b"x" * 90 + b"\0" * 422 + b"y", [0, 100, 513], 90),
        (b"x" * 500 + b"\0" * 524 + b"y", [0, 1025], 500),
        (b"x" * 500 + b"\0" * 523 + b"y", [0, 1024], 1024),
    ],
)
def test_lost_zeros_begin_with_a_write_or_a_sector(tmp_path: Path, data: bytes, begins: list[int], left: int) -> None:
    """Injector: the zeros, as a file system that lost its power gives them back. Cut once, it stays as it is."""
    directory = RunDirectory(tmp_path)
    directory.kept.mkdir()
    directory.spool_path("stdout").write_bytes(data)
    assert [directory.cut_zeros("stdout", 0, begins) for _ in range(2)] == [left, left]
    assert directory.spool_path("stdout").read_bytes() == data[:left]
