"""What every store of blobs must do, as tests: for pytest, on whatever store you have made."""

from collections.abc import Callable
from pathlib import Path

import pytest

from limpet.store.blobs import BlobStore

Write = Callable[[str, int, bytes], None]
NAME = "runs/r1/1/stdout.spool"


class BlobStoreSuite:
    """Subclass it as `class TestMine(BlobStoreSuite)`, with an `open_blobs`."""

    def open_blobs(self, directory: Path) -> tuple[BlobStore, Write]:
        """An empty store, and what puts bytes into it: name, offset, data; a gap before the offset is zeros."""
        raise NotImplementedError

    @pytest.fixture
    def opened(self, tmp_path: Path) -> tuple[BlobStore, Write]:
        return self.open_blobs(tmp_path)

    def test_reads_exactly(self, opened: tuple[BlobStore, Write]) -> None:
        blobs, write = opened
        data = bytes(range(256)) * 1024
        write(NAME, 0, data)
        assert blobs.size(NAME) == len(data)
        assert blobs.read(NAME, 0, len(data)) == data
        assert blobs.read(NAME, 1000, 3) == data[1000:1003]
        assert blobs.read(NAME, len(data) - 2, 100) == data[-2:]
        assert blobs.read(NAME, len(data), 100) == b""
        assert blobs.read(NAME, len(data) + 5, 100) == b""
        assert blobs.read(NAME, 7, 0) == b""

    def test_sees_what_is_written_behind(self, opened: tuple[BlobStore, Write]) -> None:
        blobs, write = opened
        write(NAME, 0, b"one")
        assert blobs.read(NAME, 0, 100) == b"one"
        write(NAME, 5, b"two")
        assert blobs.size(NAME) == 8
        assert blobs.read(NAME, 2, 100) == b"e\0\0two"

    def test_knows_nothing_of_what_is_not_there(self, opened: tuple[BlobStore, Write]) -> None:
        blobs, write = opened
        write(NAME, 0, b"x")
        for name in ("runs/r1/1/stderr.spool", "runs/r2/1/stdout.spool", "other"):
            assert blobs.size(name) == 0
            assert blobs.read(name, 0, 10) == b""
            blobs.remove(name)
        assert blobs.names("runs/r2") == []

    def test_names_what_is_below(self, opened: tuple[BlobStore, Write]) -> None:
        blobs, write = opened
        names = ["runs/r1/1/stderr.spool", NAME, "runs/r1/2/pty.spool", "runs/r10/1/stdout.spool", "top"]
        for name in reversed(names):
            write(name, 0, b"x")
        assert blobs.names("") == sorted(names)
        assert blobs.names("runs/r1") == sorted(names[:3])
        assert blobs.names("runs/r1/2") == ["runs/r1/2/pty.spool"]
        assert blobs.names("run") == []

    def test_removes_one_or_all_below(self, opened: tuple[BlobStore, Write]) -> None:
        blobs, write = opened
        other = "runs/r10/1/stdout.spool"
        for name in (NAME, "runs/r1/1/stderr.spool", "runs/r1/2/pty.spool", other):
            write(name, 0, b"x")
        blobs.remove(NAME)
        assert blobs.names("runs/r1/1") == ["runs/r1/1/stderr.spool"]
        blobs.remove("runs/r1")
        blobs.remove("runs/r1")
        assert blobs.names("") == [other]
        write(NAME, 0, b"again")
        assert blobs.read(NAME, 0, 10) == b"again"

    @pytest.mark.parametrize("name", ["..", "a/../b", "../a", "/etc/passwd", "a//b", "a/", "./a", "a\0b", "a/\0"])
    def test_refuses_what_is_no_name(self, opened: tuple[BlobStore, Write], name: str) -> None:
        blobs, _ = opened
        with pytest.raises(ValueError, match="no name of a blob"):
            blobs.read(name, 0, 1)
        with pytest.raises(ValueError, match="no name of a blob"):
            blobs.size(name)
        with pytest.raises(ValueError, match="no name of a blob"):
            blobs.names(name)
        with pytest.raises(ValueError, match="no name of a blob"):
            blobs.remove(name)

    def test_does_not_remove_everything(self, opened: tuple[BlobStore, Write]) -> None:
        blobs, write = opened
        write(NAME, 0, b"x")
        with pytest.raises(ValueError, match="no name of a blob"):
            blobs.remove("")
        assert blobs.names("") == [NAME]
