"""Both stores of blobs keep what every store of blobs must; files also against links, pipes and folders."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from limpet.model.errors import Refusal
from limpet.store.blobs import BlobStore
from limpet.store.file_blobs import FileBlobs
from limpet.store.memory_blobs import MemoryBlobs
from limpet.testing.blob_store import NAME, BlobStoreSuite, Write


class TestMemory(BlobStoreSuite):
    def open_blobs(self, directory: Path) -> tuple[BlobStore, Write]:
        del directory
        blobs = MemoryBlobs()
        return blobs, blobs.write


class TestFiles(BlobStoreSuite):
    def open_blobs(self, directory: Path) -> tuple[BlobStore, Write]:
        def write(name: str, offset: int, data: bytes) -> None:
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            with (directory / name).open("r+b" if (directory / name).exists() else "wb") as file:
                file.seek(offset)
                file.write(data)

        return FileBlobs(directory), write


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    """A file beside the store, which no name is to reach."""
    (tmp_path / "outside").mkdir()
    path = tmp_path / "outside" / "stdout.spool"
    path.write_bytes(b"secret")
    return path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "home" / NAME).parent.mkdir(parents=True)
    return tmp_path / "home"


def assert_tampered(blobs: FileBlobs, name: str) -> None:
    for look in (lambda: blobs.read(name, 0, 10), lambda: blobs.size(name)):
        with pytest.raises(Refusal) as refused:
            look()
        assert (refused.value.code, refused.value.reason) == ("internal", "spool_tampered")
        assert name in refused.value.message


@pytest.mark.requirement("F67")
@pytest.mark.parametrize("depth", range(4))
def test_no_link_is_followed_wherever_it_stands(root: Path, secret: Path, depth: int) -> None:
    """Injector: a symbolic link in the place of each component of a name in turn."""
    parts = NAME.split("/")
    target = secret.parent.parent / "mirror"
    (target / NAME).parent.mkdir(parents=True)
    (target / NAME).write_bytes(b"secret")
    link = root.joinpath(*parts[: depth + 1])
    if depth < 3:
        (root / "gone").mkdir()
        link.rename(root / "gone" / "there")
    link.symlink_to(target.joinpath(*parts[: depth + 1]))
    assert (root / NAME).read_bytes() == b"secret"  # what follows links gets there
    blobs = FileBlobs(root)
    assert_tampered(blobs, NAME)
    assert blobs.names("") == []


@pytest.mark.requirement("F67")
def test_a_link_is_removed_and_what_it_leads_to_stays(root: Path, secret: Path) -> None:
    """Injector: symbolic links to a file and to a folder, in a run's folder and in its place."""
    (root / NAME).symlink_to(secret)
    (root / "runs/r1/2").symlink_to(secret.parent)
    (root / "runs/r2").symlink_to(secret.parent)
    blobs = FileBlobs(root)
    blobs.remove("runs/r1")
    blobs.remove("runs/r2")
    assert list((root / "runs").iterdir()) == []
    assert secret.read_bytes() == b"secret"


@pytest.mark.requirement("F67")
def test_nobody_waits_for_a_pipe_in_the_place_of_a_file(root: Path) -> None:
    """Injector: a pipe without a writer, a socket and a folder under a blob's name."""
    blobs = FileBlobs(root)
    os.mkfifo(root / NAME)
    assert_tampered(blobs, NAME)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "s"))
        assert_tampered(blobs, "s")
    assert_tampered(blobs, "runs/r1")
    assert blobs.names("") == []


def test_the_store_stays_with_its_directory_when_that_is_moved(root: Path) -> None:
    (root / NAME).write_bytes(b"kept")
    blobs = FileBlobs(root)
    root.rename(root.with_name("moved"))
    assert blobs.read(NAME, 0, 10) == b"kept"
    blobs.close()
    blobs.close()


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_nothing_stays_open(root: Path) -> None:
    (root / NAME).write_bytes(b"kept")
    blobs = FileBlobs(root)
    before = open_descriptors()
    blobs.read(NAME, 0, 10)
    blobs.size(NAME)
    blobs.names("")
    blobs.read("runs/r1/nothing/there", 0, 10)
    blobs.remove("runs/r1")
    assert open_descriptors() == before
