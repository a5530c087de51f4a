"""Every byte that a command says is in its spool, in order, once, and the journal's ranges cover it without a gap."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tests.keeper.driver import Keeper
from tests.keeper.samples import (
    INVALID_UTF8,
    KNOWN,
    LINE_ENDS,
    UTF8_OF_EVERY_LENGTH,
    a_file,
    assert_whole,
    fold,
    random_bytes,
    read_bare_lf,
    wait_extent,
    wrote,
)

LARGE_BYTES = 64 << 20
CAT = '[ ! -t 0 ] || stty raw -opost; exec cat "$0"'


@pytest.mark.requirement("F47", "0.5")
def test_known_bytes_through_a_pipe(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", a_file(tmp_path, KNOWN))["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", KNOWN)
        assert_whole(keeper, "stderr", b"")
        assert sorted(path.name for path in keeper.directory.iterdir()) == [
            "keeper.journal",
            "stderr.spool",
            "stdout.spool",
        ]


@pytest.mark.requirement("F47", "0.5")
def test_known_bytes_through_a_line_mode_terminal(tmp_path: Path) -> None:
    """The terminal puts a CR before each LF of the program; folding takes exactly that one away again."""
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", a_file(tmp_path, KNOWN), pty={"rows": 24, "cols": 80})["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "pty", KNOWN)
        assert sorted(path.name for path in keeper.directory.iterdir()) == ["keeper.journal", "pty.spool"]


@pytest.mark.requirement("F47", "0.5")
def test_bytes_split_anywhere(tmp_path: Path) -> None:
    """One byte at a time, each seen in the journal before the next is sent: every split that there is."""
    data = UTF8_OF_EVERY_LENGTH + INVALID_UTF8 + LINE_ENDS
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        for at in range(len(data)):
            assert keeper.write(data[at : at + 1])["written"] == 1
            wait_extent(keeper, "stdout", at + 1)
        assert keeper.write(b"", close=True)["ok"]
        keeper.wait_gone()
        facts = assert_whole(keeper, "stdout", data)
        assert wrote(facts, "stdout") == [(at, at + 1) for at in range(len(data))]


@pytest.mark.requirement("F47", "0.12")
def test_random_bytes_in_and_out_again(tmp_path: Path) -> None:
    data = random_bytes(3 << 20)
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        for start in range(0, len(data), 1_000_003):
            part = data[start : start + 1_000_003]
            assert keeper.write(part)["written"] == len(part)
        assert keeper.write(b"", close=True)["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", data)


@pytest.mark.requirement("F47", "0.5")
@pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "pty"])
def test_64_mib_by_hash(tmp_path: Path, terminal: bool) -> None:
    data = random_bytes(LARGE_BYTES)
    payload = a_file(tmp_path, data)
    expected = fold(data) if terminal else data
    stream = "pty" if terminal else "stdout"
    with Keeper(tmp_path / "run") as keeper:
        pty = {"pty": {"rows": 24, "cols": 80}} if terminal else {}
        assert keeper.start("/bin/sh", "-c", CAT, payload, **pty)["ok"]
        keeper.wait_gone(120)
        assert hashlib.sha256(keeper.spool(stream)).digest() == hashlib.sha256(expected).digest()
        assert_whole(keeper, stream, expected)
        if terminal:
            assert len(read_bare_lf(keeper.directory)) == data.count(b"\n") - data.count(b"\r\n")
    for path in (Path(payload), keeper.directory / f"{stream}.spool"):
        path.unlink()


@pytest.mark.requirement("F47")
def test_two_streams_stay_apart(tmp_path: Path) -> None:
    out, err = random_bytes(4 << 20, seed=2), random_bytes(4 << 20, seed=3)
    first, second = a_file(tmp_path, out, "out"), a_file(tmp_path, err, "err")
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("/bin/sh", "-c", 'cat "$0" & cat "$1" >&2; wait', first, second)["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", out)
        assert_whole(keeper, "stderr", err)


@pytest.mark.requirement("F47")
def test_ranges_of_two_streams_stand_in_the_order_of_arrival(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("while read n; do echo $n; read n; echo $n >&2; done", stdin="open")["ok"]
        for step in range(20):
            assert keeper.write(b"%d\n" % (step % 10))["ok"]
            wait_extent(keeper, "stderr" if step % 2 else "stdout", 2 * (step // 2 + 1))
        assert keeper.write(b"", close=True)["ok"]
        keeper.wait_gone()
        order = [fact["stream"] for fact in keeper.named("wrote")]
        assert order == ["stdout", "stderr"] * 10


@pytest.mark.requirement("F55", "0.5")
@pytest.mark.parametrize("stream", ["stdout", "pty"])
def test_the_last_line_without_an_end_is_kept(tmp_path: Path, stream: str) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("printf 'one\\ntwo'", pty={"rows": 24, "cols": 80} if stream == "pty" else None)["ok"]
        keeper.wait_gone()
        assert_whole(keeper, stream, b"one\ntwo")


@pytest.mark.requirement("F47")
def test_a_silent_command_leaves_empty_spools(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("true")["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "stdout", b"")
        assert_whole(keeper, "stderr", b"")
        assert keeper.named("wrote") == []
