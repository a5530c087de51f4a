"""Blobs in memory: for tests and simulation."""

from limpet.store.blobs import parts_of


class MemoryBlobs:
    """Each blob is a bytearray."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytearray] = {}

    def write(self, name: str, offset: int, data: bytes) -> None:
        """Writes there; a gap before it is filled with zeros."""
        parts_of(name)
        blob = self._blobs.setdefault(name, bytearray())
        blob.extend(bytes(max(0, offset - len(blob))))
        blob[offset : offset + len(data)] = data

    def read(self, name: str, offset: int, max_bytes: int) -> bytes:
        parts_of(name)
        return bytes(memoryview(self._blobs.get(name, b""))[offset : offset + max_bytes])

    def size(self, name: str) -> int:
        parts_of(name)
        return len(self._blobs.get(name, b""))

    def names(self, prefix: str) -> list[str]:
        below = parts_of(prefix) if prefix else []
        return sorted(name for name in self._blobs if name.split("/")[: len(below)] == below)

    def remove(self, prefix: str) -> None:
        parts_of(prefix)
        for name in self.names(prefix):
            del self._blobs[name]
