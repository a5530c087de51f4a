"""CR LF becomes LF wherever reads are cut, everything else stays, and the raw bytes can be had back."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.keeper.driver import Keeper, Nursery
from tests.keeper.samples import (
    a_file,
    assert_same,
    assert_whole,
    bare_lf_offsets,
    fold,
    random_bytes,
    read_bare_lf,
    unfold,
    wait_extent,
)

PTY = {"rows": 24, "cols": 80}

# Says R when its terminal is raw; then one chunk, given in hex, for each byte that it reads; then ends as asked.
STEPPER = """
import os, sys, tty
tty.setraw(0)
os.write(1, b"R")
for chunk in sys.argv[2:]:
    os.read(0, 1)
    data = bytes.fromhex(chunk)
    while data:
        data = data[os.write(1, data):]
os.read(0, 1)
if sys.argv[1] == "kill":
    os.kill(os.getpid(), 9)
if sys.argv[1] == "stay":
    while True:
        os.read(0, 1)
"""


def visible(raw: bytes) -> int:
    """How much of the raw bytes so far must be in the spool: a CR at the end waits."""
    return len(fold(raw)) - raw.endswith(b"\r")


def say(keeper: Keeper, chunks: Sequence[bytes], then: str = "exit") -> None:
    """Lets a raw terminal's program write the chunks, each only when the keeper has read the one before."""
    hexes = [chunk.hex() for chunk in chunks]
    assert keeper.start(sys.executable, "-I", "-S", "-c", STEPPER, then, *hexes, pty=PTY)["ok"]
    raw = b"R"
    for chunk in chunks:
        wait_extent(keeper, "pty", visible(raw))
        assert keeper.write(b".")["ok"]
        raw += chunk
    wait_extent(keeper, "pty", visible(raw))
    assert keeper.write(b".")["ok"]


def assert_folded(keeper: Keeper, raw: bytes) -> None:
    assert_whole(keeper, "pty", fold(raw))
    bare = read_bare_lf(keeper.directory)
    assert bare == bare_lf_offsets(raw)
    assert_same(unfold(keeper.spool("pty"), bare), raw)


@pytest.mark.requirement("F48", "0.5")
@pytest.mark.parametrize(
    "chunks",
    [
        [b"a\r", b"\nb"],
        [b"a\r", b"b"],
        [b"a\r\r", b"\nb"],
        [b"a\r", b"\r\nb"],
        [b"a\r", b"\r", b"\n", b"b"],
        [b"a\r\n", b"\nb"],
        [b"a\n", b"\rb"],
        [b"a\n\r", b"\n"],
        [b"\r", b"\n", b"\r", b"\n", b"\r"],
        [b"a\r"],
        [b"a", b"\r", b"\r", b"\r"],
        [b"10%\r", b"20%\r", b"done\r\n"],
    ],
    ids=repr,
)
def test_a_cr_at_the_end_of_a_read(tmp_path: Path, nursery: Nursery, chunks: list[bytes]) -> None:
    """Injector: the program writes a chunk only when the one before is seen to be read, so each ends a read."""
    with nursery.keeper(tmp_path / "run") as keeper:
        say(keeper, chunks)
        keeper.wait_gone()
        assert_folded(keeper, b"R" + b"".join(chunks))


@pytest.mark.requirement("F48")
def test_a_waiting_cr_is_not_in_the_spool_yet(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        say(keeper, [b"a\r"], then="stay")
        keeper.wait_until(lambda facts: sum(fact["fact"] == "stdin" for fact in facts) == 2)
        assert keeper.spool("pty") == b"Ra"


@pytest.mark.requirement("F48", "F42")
def test_cr_then_sigkill(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        say(keeper, [b"abc\r"], then="kill")
        keeper.wait_gone()
        assert_folded(keeper, b"Rabc\r")
        assert keeper.named("exited")[0]["signal"] == "SIGKILL"


@pytest.mark.requirement("F48")
def test_cr_then_kill_of_the_run(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        say(keeper, [b"abc\r"], then="stay")
        assert keeper.call("kill")["ok"]
        keeper.wait_gone()
        assert_folded(keeper, b"Rabc\r")


@pytest.mark.requirement("F48", "F57")
def test_bare_lfs_of_a_raw_terminal(tmp_path: Path) -> None:
    raw = b"\n\n\r\n\n" + random_bytes(300_000).replace(b"\x00", b"\r\n").replace(b"\x01", b"\n") + b"\n"
    payload = a_file(tmp_path, raw)
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("/bin/sh", "-c", 'stty raw -opost; exec cat "$0"', payload, pty=PTY)["ok"]
        keeper.wait_gone()
        assert len(bare_lf_offsets(raw)) > 1000
        assert_folded(keeper, raw)


@pytest.mark.requirement("F48")
def test_the_terminal_changes_its_mode_on_the_way(tmp_path: Path) -> None:
    """`tcsetattr` waits for nothing here: each part is read before the mode changes, as with a program in a shell."""
    script = "echo one; read x; stty raw -opost -echo; printf 'two\\nthree\\r\\n'; head -c 1; stty sane; echo four"
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh(f"stty -echo; {script}", pty=PTY)["ok"]
        wait_extent(keeper, "pty", len(b"one\n"))
        assert keeper.write(b"\n")["ok"]
        wait_extent(keeper, "pty", len(b"one\ntwo\nthree\n"))
        assert keeper.write(b".")["ok"]
        keeper.wait_gone()
        assert_folded(keeper, b"one\r\ntwo\nthree\r\n.four\r\n")


ENDS_AND_MORE = st.lists(st.sampled_from([b"\r", b"\n", b"\r\n", b"x", b"\x00", b"\xff\x04"]), min_size=1, max_size=6)
CHUNKS = st.lists(ENDS_AND_MORE.map(b"".join) | st.binary(min_size=1, max_size=40), max_size=6)


@pytest.mark.requirement("F48", "0.5")
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chunks=CHUNKS)
def test_any_bytes_in_any_chunks(nursery: Nursery, chunks: list[bytes]) -> None:
    with tempfile.TemporaryDirectory() as directory, nursery.keeper(Path(directory) / "run") as keeper:
        say(keeper, chunks)
        keeper.wait_gone()
        assert_folded(keeper, b"R" + b"".join(chunks))
