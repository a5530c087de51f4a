"""Known bytes to send through a stream, and the plain models that a keeper's files are compared with."""

from __future__ import annotations

import random
import re
import select
import struct
import zlib
from pathlib import Path
from typing import IO, Any

from tests.keeper.driver import Fact, Keeper

UTF8_OF_EVERY_LENGTH = "\x00\x7f\x80é\u07ff\u0800€\ufeff\uffff\U00010000😀\U0010ffff".encode()
INVALID_UTF8 = b" ".join(
    (
        b"\x80\xbf",  # continuations alone
        b"\xc0\xaf\xc1\xbf\xe0\x80\xaf\xf0\x80\x80\xaf",  # overlong
        b"\xed\xa0\x80\xed\xbf\xbf",  # surrogates
        b"\xf4\x90\x80\x80\xf5\xfe\xff",  # past the last character
        b"\xc3.\xe2\x82.\xf0\x9f\x98.",  # cut short
    )
)
LINE_ENDS = b"a\nb\r\nc\rd\r\r\ne\n\rf\n\n\r\n\r\ng\r\r"
KNOWN = UTF8_OF_EVERY_LENGTH + INVALID_UTF8 + LINE_ENDS + bytes(range(256)) + b"no line end \xe2\x82"


def random_bytes(size: int, seed: int = 1) -> bytes:
    return random.Random(seed).randbytes(size)


def a_file(directory: Path, data: bytes, name: str = "payload") -> str:
    """A file for a command to `cat`."""
    path = directory / name
    path.write_bytes(data)
    return str(path)


def fold(raw: bytes) -> bytes:
    return raw.replace(b"\r\n", b"\n")


def bare_lf_offsets(raw: bytes) -> list[int]:
    """Where in the folded bytes stand the LF that had no CR before them."""
    offsets: list[int] = []
    folded_away = 0
    for end in re.finditer(rb"\r?\n", raw):
        if end[0] == b"\r\n":
            folded_away += 1
        else:
            offsets.append(end.start() - folded_away)
    return offsets


def read_bare_lf(directory: Path) -> list[int]:
    path = directory / "pty.bare_lf"
    return [offset for (offset,) in struct.iter_unpack("<Q", path.read_bytes())] if path.exists() else []


def unfold(spool: bytes, bare: list[int]) -> bytes:
    """The raw bytes again: a CR before every LF but the bare ones."""
    stay = set(bare)
    pieces: list[bytes] = []
    start = 0
    for end in re.finditer(rb"\n", spool):
        at = end.start()
        pieces += [spool[start:at], b"\n" if at in stay else b"\r\n"]
        start = at + 1
    return b"".join([*pieces, spool[start:]])


def wrote(facts: list[Fact], stream: str) -> list[tuple[int, int]]:
    return [(fact["start"], fact["end"]) for fact in facts if fact["fact"] == "wrote" and fact["stream"] == stream]


def extent(facts: list[Fact], stream: str) -> int:
    """How many bytes of a stream the journal knows of."""
    return max((end for _, end in wrote(facts, stream)), default=0)


def wait_extent(keeper: Keeper, stream: str, size: int) -> None:
    keeper.wait_until(lambda facts: extent(facts, stream) >= size, what=f"{size} bytes of {stream}")


def assert_same(seen: bytes, expected: bytes) -> None:
    """Equality that says where it breaks, without printing megabytes."""
    if seen != expected:
        at = next(
            (i for i, (a, b) in enumerate(zip(seen, expected, strict=False)) if a != b), min(len(seen), len(expected))
        )
        around = slice(max(0, at - 20), at + 20)
        message = f"differ at {at}: {seen[around]!r}, not {expected[around]!r}; {len(seen)} bytes, not {len(expected)}"
        raise AssertionError(message)


def assert_whole(keeper: Keeper, stream: str, expected: bytes) -> list[Fact]:
    """A sealed run's stream: its spool, its adjacent ranges in order, its end, its size and CRC. Returns the facts."""
    spool = keeper.spool(stream)
    assert_same(spool, expected)
    facts = keeper.facts()
    end = 0
    for start, stop in wrote(facts, stream):
        assert start == end < stop, (start, stop, end)
        end = stop
    assert end == len(spool)
    names: list[Any] = [fact["fact"] for fact in facts if fact.get("stream") == stream]
    assert names.count("stream_closed") == 1
    assert names[-1] == "stream_closed"
    assert facts[-1]["fact"] == "sealed"
    sealed = facts[-1]["streams"][stream]
    assert (sealed["bytes"], int(str(sealed["crc32"]), 16 if isinstance(sealed["crc32"], str) else 10)) == (
        len(spool),
        zlib.crc32(spool),
    )
    return facts


def assert_ends(stdout: IO[bytes]) -> None:
    """There is an end of file at once: no process that lives on holds the other side."""
    assert select.select([stdout], [], [], 5)[0], "somebody still holds this stdout"
    assert stdout.read(1) == b""
