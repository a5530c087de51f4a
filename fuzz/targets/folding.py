"""CR LF folded: however a stream is cut the result is the same, and it gives the raw bytes back."""

from __future__ import annotations

from fuzz.feed import Feed, pieces
from limpet_keeper.folding import Folder

ALPHABET = (b"\r", b"\n", b"\r\n", b"a", b"\r\r\n", b"\n\r", b"\0", b"\xff")


def seeds() -> list[bytes]:
    texts = [
        b"",
        b"\r",
        b"\n",
        b"\r\n",
        b"\r\r\n\n\r",
        b"one\r\ntwo\nthree\r",
        bytes(range(256)),
        b"\r\n" * 100 + b"\n" * 100,
    ]
    return [b"\0\3\1\2\5" + text for text in texts] + [b"\1\3\1\2\5" + bytes(range(8)) * 4]


def check(data: bytes) -> None:
    feed = Feed(data)
    few = feed.flag()
    choice = Feed(feed.take(17))
    raw = b"".join(ALPHABET[byte % len(ALPHABET)] for byte in feed.rest()) if few else feed.rest()
    folded, bare = fold(pieces(raw, choice.cuts(len(raw), 8)))
    assert (folded, bare) == plainly(raw), "folded otherwise than one byte after the other"
    assert unfolded(folded, bare) == raw, "the raw bytes do not come back"


def fold(parts: list[bytes]) -> tuple[bytes, list[int]]:
    """As the keeper does it: the places count from the start of the stream."""
    folder = Folder()
    folded = b""
    bare: list[int] = []
    for part in parts:
        more, places = folder.fold(part)
        assert all(more[place : place + 1] == b"\n" for place in places), "a bare LF that is none"
        bare += [len(folded) + place for place in places]
        folded += more
    folded += folder.rest()
    assert folder.rest() == b""
    return folded, bare


def plainly(raw: bytes) -> tuple[bytes, list[int]]:
    """The same, one byte at a time."""
    folded = bytearray()
    bare: list[int] = []
    for place, byte in enumerate(raw):
        if byte == 0x0A and raw[place - 1 : place] == b"\r" and place:
            folded[-1] = byte
            continue
        if byte == 0x0A:
            bare.append(len(folded))
        folded.append(byte)
    return bytes(folded), bare


def unfolded(folded: bytes, bare: list[int]) -> bytes:
    """A CR before every LF that did not come bare."""
    stays = set(bare)
    return b"".join(
        b"\r\n" if byte == 0x0A and place not in stays else bytes([byte]) for place, byte in enumerate(folded)
    )
