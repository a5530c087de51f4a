"""Keeps together in memory what is made together: a keeper then copies few of the pages that it shares."""

from __future__ import annotations

# CPython's small objects lie in pools of this size, behind a header, each pool with objects of one size.
_POOL_BYTES = 16 << 10
_HEADER_BYTES = 48
_STEP_BYTES = 16
_LARGEST_BYTES = 512
_EMPTY_BYTES = 33  # what a `bytes` takes that holds nothing

_fillers: list[object] = []


def fill_gaps() -> None:
    """Takes for good the room that is free between small objects: those to come begin pools of their own.

    An interpreter that lays out its memory otherwise loses some memory by it, and gains nothing.
    """
    for size in range(_STEP_BYTES, _LARGEST_BYTES + 1, _STEP_BYTES):
        for number in range(_POOL_BYTES // _STEP_BYTES):
            filler = _of_size(size, number)
            if id(filler) % _POOL_BYTES == _HEADER_BYTES:
                break  # the first of a new pool, which is given back with it
            _fillers.append(filler)


def _of_size(size: int, number: int) -> object:
    if size > _EMPTY_BYTES:
        return bytes(size - _EMPTY_BYTES)
    return number + 0.5 if size > _STEP_BYTES else object()
