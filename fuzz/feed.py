"""Turns an input's bytes into choices, from its front: the same bytes always make the same choices."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

T = TypeVar("T")


class Feed:
    """What is left of an input. An empty one gives zeros."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.place = 0

    def __bool__(self) -> bool:
        return self.place < len(self.data)

    def byte(self) -> int:
        taken = self.take(1)
        return taken[0] if taken else 0

    def number(self, below: int) -> int:
        """A number from 0, less than `below`."""
        if below <= 1:
            return 0
        width = ((below - 1).bit_length() + 7) // 8
        return int.from_bytes(self.take(width), "little") % below

    def flag(self) -> bool:
        return bool(self.byte() & 1)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.number(len(choices))]

    def take(self, count: int) -> bytes:
        taken = self.data[self.place : self.place + count]
        self.place += len(taken)
        return taken

    def piece(self, most: int = 255) -> bytes:
        """A few bytes: how many comes first."""
        return self.take(self.number(most + 1))

    def rest(self) -> bytes:
        return self.take(len(self.data) - self.place)

    def cuts(self, size: int, most: int = 8) -> list[int]:
        """Ascending places at which something of that size is cut."""
        return sorted({self.number(size + 1) for _ in range(self.number(most + 1))} - {0, size})


def is_a(value: Any, kind: type[object]) -> bool:
    """Whether it is of exactly that type; the value goes on being of any."""
    return type(value) is kind


def pieces(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    """`data` in pieces, cut at those places."""
    edges = [0, *cuts, len(data)]
    return [data[start:end] for start, end in pairwise(edges)]
