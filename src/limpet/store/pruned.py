"""`pruned.journal` of a home: which runs were removed, so that their ids and keys are never used again."""

import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from limpet.model.tombstone import Tombstone
from limpet.store import disk
from limpet_keeper.journal import decode_lines, encode_line

_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(Tombstone)


class PrunedJournal:
    """Lines like those of a run's journals; one tombstone in each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._position = 0
        self._chain = 0

    def read(self) -> list[Tombstone]:
        """All that can be read; appends go on behind it. What cannot is set aside."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return []
        stones: list[Tombstone] = []
        for line in decode_lines(data):
            try:
                stones.append(_decoder.decode(line.body) if line.sound else _unreadable())
            except msgspec.DecodeError:
                break
            self._position, self._chain = line.end, line.crc
        if b"\n" in data[self._position :]:
            aside = self.path.with_name(f"{self.path.name}.broken-{time.time_ns()}")
            aside.touch(mode=0o600)
            aside.write_bytes(data[self._position :])
        return stones

    def sync(self) -> None:
        """Puts what was read on disk: an append that was cut short may not have."""
        fd = disk.open_to_write(self.path)
        try:
            disk.sync(fd)
        finally:
            os.close(fd)

    def append(self, stones: Iterable[Tombstone]) -> None:
        """Returns once they are on disk; may take a while. OSError leaves the journal as it was."""
        fd = disk.open_to_write(self.path)
        try:
            os.fchmod(fd, 0o600)
            disk.cut(fd, self._position)
            position, chain = self._position, self._chain
            for stone in stones:
                line, chain = encode_line(_encoder.encode(stone), chain)
                disk.write_at(fd, line, position)
                position += len(line)
            disk.sync(fd)
            self._position, self._chain = position, chain
        finally:
            os.close(fd)


def _unreadable() -> Tombstone:
    raise msgspec.DecodeError("its CRC does not hold")
