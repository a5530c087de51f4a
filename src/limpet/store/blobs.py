"""What is asked of a store of bytes that only grow; every store answers alike (limpet.testing.blob_store says how)."""

from typing import Protocol


class BlobStore(Protocol):
    """The one door to the bytes of spools. Names are relative, like `runs/<run_id>/1/stdout.spool`.

    A name that no store can have made (see `parts_of`) is a ValueError. What lies under a name but is no blob, a
    symbolic link above all, is never read and never followed: a refusal `internal` with reason `spool_tampered`.
    """

    def read(self, name: str, offset: int, max_bytes: int) -> bytes:
        """So many bytes from there; fewer at the end alone, none where there is no such blob."""
        ...

    def size(self, name: str) -> int:
        """0 when there is no such blob."""
        ...

    def names(self, prefix: str) -> list[str]:
        """All blobs in that folder and below, in order; "" is all there are."""
        ...

    def remove(self, prefix: str) -> None:
        """Removes the blob or folder of that name with all that is in it, if it is there."""
        ...


def spool_name(run_id: str, attempt: int, stream: str) -> str:
    """The blob that an attempt's keeper writes a stream into."""
    return f"runs/{run_id}/{attempt}/{stream}.spool"


def bare_lf_name(run_id: str, attempt: int) -> str:
    """The blob with the offsets of those LFs of an attempt's terminal that came without a CR, if there were any."""
    return f"runs/{run_id}/{attempt}/pty.bare_lf"


def parts_of(name: str) -> list[str]:
    """The components of a name: none is empty, `.` or `..`, and none holds a NUL."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise ValueError(f"{name!r} is no name of a blob: it is to be relative, and without '.', '..' and NUL")
    return parts
