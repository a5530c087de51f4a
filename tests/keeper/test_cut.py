"""Each `wrote` says how much of a UTF-8 character is open at its end, as Python's own decoder sees it."""

from __future__ import annotations

import codecs
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from limpet_keeper.spool import Spool
from tests.keeper.driver import Keeper
from tests.keeper.samples import wait_extent

CHARACTER = "😀".encode()
# What is near to text: whole characters, parts of them, and bytes at which a decoder has to think.
PIECES = st.one_of(
    st.text(max_size=3).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.sampled_from([CHARACTER[:end] for end in range(1, 4)] + [CHARACTER[start:] for start in range(1, 4)]),
    st.lists(st.sampled_from(b"a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xff")).map(bytes),
    st.binary(max_size=5),
)


@given(st.lists(PIECES, max_size=12))
def test_a_spool_knows_what_is_open_however_it_was_cut(pieces: list[bytes]) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    with tempfile.TemporaryDirectory() as where:
        directory_fd = os.open(where, os.O_RDONLY)
        spool = Spool("stdout")
        spool.create(directory_fd)
        for piece in pieces:
            decoder.decode(piece)
            spool.append(memoryview(piece), [])
            assert spool.cut() == len(decoder.getstate()[0])
        spool.close()
        os.close(directory_fd)


@pytest.mark.requirement("1.6")
def test_a_character_that_comes_byte_by_byte_is_open_until_its_last(tmp_path: Path) -> None:
    octal = [f"\\\\{byte:03o}" for byte in b"a" + CHARACTER + CHARACTER[:2] + b"a"]
    script = "; ".join(f"printf {each}; read x" for each in octal)
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("/bin/sh", "-c", script, stdin="open")["ok"]
        for count in range(1, len(octal) + 1):
            wait_extent(keeper, "stdout", count)
            assert keeper.write(b"\n")["ok"]
        keeper.wait_gone()
        assert [fact.get("cut") for fact in keeper.named("wrote")] == [None, 1, 2, 3, None, 1, 2, None]
        assert "cut" not in keeper.named("wrote")[0]
