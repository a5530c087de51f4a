"""The spool's bound: the head stays, the oldest behind it go, said before it is done, and offsets stay true."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from prove.full_speed import prove
from tests.faults.disks import KIB, MIB
from tests.faults.kept import Kept, dense_end, difference, sequence
from tests.keeper.driver import Fact

BOUND = MIB
HEAD = 64 * KIB
LOOSE_BYTES = 2 * MIB  # what may be over the bound for a moment: one read, and what the file system lays by
BOUNDS = {"spool_max_bytes": BOUND, "head_bytes": HEAD}


def hole_of(facts: list[Fact], stream: str) -> tuple[int, int]:
    """The stream's hole at last, (0, 0) when there is none: one range that grows over what was written."""
    start = end = 0
    for fact in facts:
        if fact["fact"] == "hole" and fact["stream"] == stream:
            assert end == 0 or fact["start"] == start, fact
            assert fact["start"] < fact["end"] <= dense_end_before(facts, fact), fact
            assert fact["end"] > end, fact
            start, end = fact["start"], fact["end"]
    return start, end


def dense_end_before(facts: list[Fact], fact: Fact) -> int:
    ends = (
        other["end"]
        for other in reversed(facts[: fact["n"]])
        if other["fact"] == "wrote" and other["stream"] == fact["stream"]
    )
    return next(ends, 0)


def check_kept(kept: Kept, facts: list[Fact], expected: dict[str, bytes]) -> None:
    """What is kept is what was written, at its offset, and the seal says so."""
    in_all = 0
    for stream, data in expected.items():
        assert dense_end(facts, stream) == len(data)
        start, end = hole_of(facts, stream)
        spool = kept.spool(stream)
        assert len(spool) == len(data)
        assert not difference(spool[:start], data[:start])
        assert not difference(spool[end:], data[end:])
        seal = facts[-1]["streams"][stream]
        assert seal["bytes"] == len(data)
        assert seal["hole"] == ([start, end] if end else None)
        assert seal["crc32"] == f"{zlib.crc32(data[end:], zlib.crc32(data[:start])):08x}"
        in_all += len(data) - (end - start)
    assert BOUND // 2 <= in_all <= BOUND
    blocks = sum((kept.directory / f"{stream}.spool").stat().st_blocks for stream in expected)
    assert blocks * 512 <= BOUND + 128 * KIB


@pytest.mark.requirement("1.5", "0.7", "F26")
def test_the_oldest_bytes_behind_the_head_go(tmp_path: Path) -> None:
    """Injector: none but volume: 20 MB into a spool of 1 MiB, looked at while it happens."""
    expected = sequence(2_700_000)
    looks = 0
    with Kept(tmp_path / "run") as kept:
        kept.begin(
            "/bin/sh",
            "-c",
            "for i in 0 1 2 3 4 5 6 7 8; do seq $((i*300000+1)) $(((i+1)*300000)); sleep 0.03; done",
            **BOUNDS,
        )
        assert kept.call("wake", on="never")["ok"]
        spool = kept.directory / "stdout.spool"
        while kept.process.poll() is None:
            assert spool.stat().st_blocks * 512 <= BOUND + LOOSE_BYTES
            data = spool.read_bytes()
            if (gone := data.find(b"\0")) >= 0:  # the sequence has no such byte
                start, end = hole_of(kept.facts(), "stdout")
                assert start <= gone <= data.rfind(b"\0") < end, "bytes went before the journal said so"
                looks += 1
        facts = kept.facts()
        assert facts[-1]["fact"] == "sealed"
        check_kept(kept, facts, {"stdout": expected})
    assert hole_of(facts, "stdout")[0] == HEAD
    assert looks >= 3


@pytest.mark.requirement("1.5", "0.7")
def test_two_streams_share_one_head_and_one_bound(tmp_path: Path) -> None:
    """Injector: none but volume."""
    lines = 700_000
    with Kept(tmp_path / "run") as kept:
        kept.begin("/bin/sh", "-c", f"seq 1 {lines} & seq 1 {lines} >&2; wait", **BOUNDS)
        assert kept.call("wake", on="never")["ok"]
        assert kept.wait_gone() == 0
        facts = kept.facts()
        check_kept(kept, facts, {"stdout": sequence(lines), "stderr": sequence(lines)})
    holes = [hole_of(facts, stream) for stream in ("stdout", "stderr")]
    assert sum(start for start, end in holes if end) == HEAD


@pytest.mark.requirement("1.5", "0.7")
def test_the_old_stream_gives_its_bytes_to_the_new_one(tmp_path: Path) -> None:
    """Injector: none but volume: first only stderr, then only stdout."""
    with Kept(tmp_path / "run") as kept:
        kept.begin("/bin/sh", "-c", "seq 1 100000 >&2; sleep 0.3; seq 1 700000", **BOUNDS)
        assert kept.call("wake", on="never")["ok"]
        assert kept.wait_gone() == 0
        facts = kept.facts()
        check_kept(kept, facts, {"stdout": sequence(700_000), "stderr": sequence(100_000)})
    assert hole_of(facts, "stderr") == (HEAD, len(sequence(100_000)))
    assert hole_of(facts, "stdout")[0] == 0


@pytest.mark.requirement("1.5", "0.7")
def test_a_terminals_spool_is_bound_too(tmp_path: Path) -> None:
    """Injector: none but volume."""
    with Kept(tmp_path / "run") as kept:
        kept.begin("seq", "1", "600000", pty={"rows": 24, "cols": 80}, **BOUNDS)
        assert kept.call("wake", on="never")["ok"]
        assert kept.wait_gone() == 0
        facts = kept.facts()
        check_kept(kept, facts, {"pty": sequence(600_000)})
    assert hole_of(facts, "pty")[0] == HEAD


@pytest.mark.requirement("F26", "1.5", "0.7")
def test_yes_for_three_seconds(tmp_path: Path) -> None:
    """Injector: `yes`, as fast as it can."""
    with Kept(tmp_path / "run") as kept:
        kept.begin("timeout", "3", "yes", **BOUNDS)
        assert kept.call("wake", on="never")["ok"]
        assert kept.wait_gone(90) == 0
        facts = kept.facts()
        assert next(fact for fact in facts if fact["fact"] == "exited")["code"] == 124
        start, end = hole_of(facts, "stdout")
        written = dense_end(facts, "stdout")
        seal = facts[-1]["streams"]["stdout"]
        spool = kept.directory / "stdout.spool"
        assert spool.stat().st_size == seal["bytes"] == written
        assert (start, seal["hole"]) == (HEAD, [start, end])
        assert BOUND // 2 <= written - (end - start) <= BOUND
        assert spool.stat().st_blocks * 512 <= BOUND + 128 * KIB
        with spool.open("rb") as file:
            head = file.read(start)
            file.seek(end)
            tail = file.read()
        assert head == b"y\n" * (len(head) // 2)
        assert tail == b"\ny\n"[1 - end % 2 :][:1] * (end % 2) + (b"y\n" * len(tail))[: len(tail) - end % 2]
        assert seal["crc32"] == f"{zlib.crc32(tail, zlib.crc32(head)):08x}"


@pytest.mark.requirement("F54")
def test_full_speed_without_a_reader_or_a_connection_takes_no_memory() -> None:
    """Injector: 256 MiB at full speed after the last connection closed; the short form of `prove.full_speed`."""
    assert "bytes whole" in prove(256)
