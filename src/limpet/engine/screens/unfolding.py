"""A terminal's bytes as it had them: a CR is put back before each LF, but where the keeper noted that none was."""

import struct
from typing import Final

from limpet.store.blobs import BlobStore, bare_lf_name

_ENTRY_BYTES: Final = 8
_READ_BYTES: Final = 256 << 10


class BareLines:
    """The LFs of one attempt that came without a CR, looked up in ascending order."""

    def __init__(self, blobs: BlobStore, run_id: str, attempt: int) -> None:
        self._blobs = blobs
        self._name = bare_lf_name(run_id, attempt)
        # The first entry that may be wanted next.
        self._place: int | None = None

    def unfold(self, data: bytes, start: int) -> bytes:
        """These bytes of the spool, which stand at `start` in it, as they were."""
        pieces: list[bytes] = []
        low = 0
        for place in self._within(start, start + len(data)):
            pieces += (data[low : place - start].replace(b"\n", b"\r\n"), b"\n")
            low = place - start + 1
        pieces.append(data[low:].replace(b"\n", b"\r\n"))
        return b"".join(pieces)

    def _within(self, start: int, end: int) -> list[int]:
        if self._place is None:
            self._place = self._find(start)
        places: list[int] = []
        while entries := self._blobs.read(self._name, self._place * _ENTRY_BYTES, _READ_BYTES):
            whole = len(entries) // _ENTRY_BYTES
            for offset in struct.unpack_from(f"<{whole}Q", entries):
                if offset >= end:
                    return places
                if offset >= start:
                    places.append(offset)
                self._place += 1
            if not whole:
                break
        return places

    def _find(self, start: int) -> int:
        """The first entry at or behind that place."""
        low, high = 0, self._blobs.size(self._name) // _ENTRY_BYTES
        while low < high:
            middle = (low + high) // 2
            (offset,) = struct.unpack("<Q", self._blobs.read(self._name, middle * _ENTRY_BYTES, _ENTRY_BYTES))
            low, high = (middle + 1, high) if offset < start else (low, middle)
        return low
