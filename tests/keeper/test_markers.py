"""Markers are found however the bytes are cut, and nothing else of a terminal's bytes is changed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet_keeper.markers import Markers
from limpet_keeper.spool import Spool

NONCE = b"00ff"
GENUINE = b"\x1elimpet:" + NONCE + b":7\x1f"
SENTINEL = b"__FWS_PROMPT__ ts=1 cwd_b64=Lw== exit=7\n"
PIECES = st.sampled_from(
    [
        GENUINE,
        b"\x1elimpet?\x1f",
        b"\x1elimpet:00fe:7\x1f",
        b"\x1elimpet:00ff:\x1f",
        b"\x1elimpet:00ff:7",
        b"\x1e\x1elimpet",
        b"\x1elimpet" + b"0" * 70 + b"\x1f",
        b"\r\n",
        b"\n",
        b"\r",
        b"text",
        b"\xe2\x82\xac",
        b"__FWS_PROMPT__ ",
    ]
)


class Paper:
    """A spool that only grows, and what was heard while it did."""

    def __init__(self) -> None:
        self.spool = Spool("pty")
        self.bytes = b""
        self.bare: list[int] = []
        self.prompts: list[tuple[int, bool]] = []
        self.suspicious: list[int] = []
        self.markers = Markers(self.spool, self._judge, lambda offset, _why: self.suspicious.append(offset))

    def _judge(self, text: bytes, offset: int, is_line_start: bool) -> bytes | None:
        if text == b"?":
            return b""
        if text != b":" + NONCE + b":7":
            self.suspicious.append(offset)
            return None
        self.prompts.append((offset, is_line_start))
        return SENTINEL if is_line_start else b"\n" + SENTINEL

    def take(self, data: bytes) -> None:
        folded, bare = self.markers.fold(data)
        self.bare += [len(self.bytes) + place for place in bare]
        self.bytes += folded
        self.spool.size = len(self.bytes)

    def end(self) -> None:
        self.bytes += self.markers.rest()

    def told(self) -> tuple[bytes, list[int], list[tuple[int, bool]], list[int]]:
        return self.bytes, self.bare, self.prompts, sorted(self.suspicious)


def written(pieces: list[bytes]) -> Paper:
    paper = Paper()
    for piece in pieces:
        paper.take(piece)
    paper.end()
    return paper


@pytest.mark.requirement("3.4")
@given(st.lists(PIECES, max_size=12), st.lists(st.integers(1, 9), max_size=200))
def test_the_cuts_change_nothing(pieces: list[bytes], sizes: list[int]) -> None:
    data = b"".join(pieces)
    cut: list[bytes] = []
    rest = data
    for size in sizes:
        cut.append(rest[:size])
        rest = rest[size:]
    assert written([*cut, rest]).told() == written([data]).told()


@given(st.lists(PIECES, max_size=12))
def test_without_genuine_markers_every_byte_stays(pieces: list[bytes]) -> None:
    data = b"".join(piece for piece in pieces if piece not in (GENUINE, b"\x1elimpet?\x1f"))
    if GENUINE in data or b"\x1elimpet?\x1f" in data:
        return
    paper = written([data])
    assert paper.bytes == data.replace(b"\r\n", b"\n")
    assert paper.prompts == []


def test_a_genuine_marker_becomes_a_line_of_its_own() -> None:
    paper = written([b"whole\r\n" + GENUINE + b"cut" + GENUINE])
    assert paper.bytes == b"whole\n" + SENTINEL + b"cut\n" + SENTINEL
    assert paper.prompts == [(6, True), (6 + len(SENTINEL) + 3, False)]


def test_a_bare_newline_is_known_behind_a_marker() -> None:
    paper = written([GENUINE + b"a\nb\r\n"])
    assert paper.bytes == SENTINEL + b"a\nb\n"
    assert paper.bare == [len(SENTINEL) + 1]
