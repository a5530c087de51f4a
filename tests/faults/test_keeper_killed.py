"""SIGKILL of the keeper anywhere: what it leaves behind is whole up to a torn tail, and never runs ahead of itself."""

from __future__ import annotations

import os
import random
import select
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.disks import KIB, small_tmpfs
from tests.faults.injectors import traced
from tests.faults.kept import JOURNAL, SPOOL, Kept, dense_end, prefix_difference, sequence

PTY = {"rows": 24, "cols": 80}
WRITES = "write,writev,pwrite64,pwritev,pwritev2"
LINES = 20_000  # in 40 portions, so that there are many appends to die in
PORTIONS = "i=0; while [ $i -lt 40 ]; do seq $((i*500+1)) $((i*500+500)); sleep 0.002; i=$((i+1)); done"
TERMINAL = f"stty -onlcr; {PORTIONS}; printf 'a\\r\\nb\\r\\r\\nc\\r'; stty onlcr; seq 1 {LINES}"
GONE_WITHIN_S = 20.0
SHORT_SWEEP = (1, 2, 3, 4, 6, 9, 14, 22, 33, 40)


@dataclass(frozen=True)
class Point:
    """Where to die: at the nth of these calls, on these files of the run (none: in the main thread, on anything)."""

    name: str
    calls: str
    files: tuple[str, ...] = ()
    pty: bool = False
    least: int = 6  # the run makes at least so many of these calls


POINTS = (
    Point("journal", WRITES, (JOURNAL,)),
    Point("spool", WRITES, (SPOOL,)),
    Point("terminal's spool", WRITES, ("pty.spool",), pty=True),
    Point("bare line feeds", WRITES, ("pty.bare_lf",), pty=True),
    Point("sync", "fdatasync,fsync", (SPOOL,), least=2),
    Point("any write", f"{WRITES},sendto,sendmsg"),
    Point("any read", "read,readv,recvfrom,recvmsg"),
    Point("any read of a terminal's keeper", "read,readv,recvfrom,recvmsg", pty=True),
    Point("files", "openat,close,fallocate,ftruncate,unlink,unlinkat,fcntl,ioctl"),
    Point("processes", "vfork,fork,clone,clone3,wait4,waitid,pidfd_open,prlimit64"),
)


def terminal_raw() -> bytes:
    """What TERMINAL really says, before any folding."""
    return sequence(LINES) + b"a\r\nb\r\r\nc\r" + sequence(LINES).replace(b"\n", b"\r\n")


def unfolded(spool: bytes, bare: bytes) -> bytes:
    """The raw bytes, from the spool and the offsets of its bare line feeds."""
    offsets = [int.from_bytes(bare[at : at + 8], "little") for at in range(0, len(bare) // 8 * 8, 8)]
    assert offsets == sorted(set(offsets))
    alone = {offset for offset in offsets if offset < len(spool)}
    raw = bytearray()
    start = 0
    while (feed := spool.find(b"\n", start)) >= 0:
        raw += spool[start:feed]
        raw += b"\n" if feed in alone else b"\r\n"
        start = feed + 1
    return bytes(raw + spool[start:])


def check_remains(kept: Kept, witness: Path, *, pty: bool) -> None:
    """What a dead keeper must have left."""
    assert not kept.is_locked()
    facts = kept.facts()
    names = [fact["fact"] for fact in facts]
    assert names[0] == "prepared"
    if witness.exists():
        assert names[1] == "starting", "the command ran before the journal could say so"
    streams = {"pty": None} if pty else {"stdout": sequence(LINES), "stderr": b""}
    for stream, expected in streams.items():
        path = kept.directory / f"{stream}.spool"
        spool = path.read_bytes() if path.exists() else b""
        assert dense_end(facts, stream) <= len(spool), "the spool is behind the journal"
        if expected is None:
            bare = kept.directory / "pty.bare_lf"
            spool = unfolded(spool, bare.read_bytes() if bare.exists() else b"")
        assert not prefix_difference(spool, terminal_raw() if expected is None else expected)


def sweep(base: Path, point: Point, numbers: Iterable[int]) -> int:
    """Dies at each of these calls, while there are so many; the last one that was reached."""
    reached = 0
    for nth in numbers:
        place = base / f"{nth}"
        place.mkdir()
        if not dies(place, point, nth):
            break
        reached = nth
    return reached


def dies(base: Path, point: Point, nth: int) -> bool:
    """Runs one keeper to that point of death, and looks at its remains; False when it never came there."""
    witness = base / "ran"
    script = f": >{witness}; {TERMINAL if point.pty else PORTIONS}"
    with Kept(base / "run") as kept:
        with traced(
            kept.pid,
            base / "log",
            calls=point.calls,
            inject=[f"{point.calls}:signal=KILL:when={nth}"],
            paths=[kept.directory / file for file in point.files],
            follow=bool(point.files),
        ) as trace:
            with suppress(EOFError, ConnectionError):
                kept.connection.post(
                    "start", **kept.request("/bin/sh", "-c", script, pty=PTY if point.pty else None, sync_ms=5)
                )
                while True:
                    kept.connection.receive()
            code = kept.wait_gone()
            trace.detach()
            happened = trace.killed()
        assert (code != 0) == happened, f"exit {code}, killed by the injector: {happened}"
        check_remains(kept, witness, pty=point.pty)
        if not happened:
            assert kept.facts()[-1]["fact"] == "sealed"
    return happened


@pytest.mark.requirement("F04", "F05", "F18")
@pytest.mark.parametrize("point", POINTS, ids=[point.name for point in POINTS])
def test_death_at_a_call(tmp_path: Path, point: Point) -> None:
    """Injector: strace, SIGKILL at the nth call of a kind, n over a sweep."""
    reached = sweep(tmp_path, point, SHORT_SWEEP)
    assert reached >= point.least, f"only {reached} such calls were ever made"


@pytest.mark.requirement("F05", "1.11")
def test_death_before_the_start_is_recorded_starts_nothing(tmp_path: Path) -> None:
    """Injector: strace, SIGKILL at the write of `starting`: by then the command-to-be was told what to become."""
    witness = tmp_path / "ran"
    with Kept(tmp_path / "run") as kept:
        children = Path(f"/proc/{kept.pid}/task/{kept.pid}/children").read_text().split()
        waiting = [os.pidfd_open(int(child)) for child in children]
        with traced(
            kept.pid,
            tmp_path / "log",
            calls="pwrite64",
            inject=["pwrite64:signal=KILL:when=1"],
            paths=[kept.directory / JOURNAL],
        ) as trace:
            kept.connection.post("start", **kept.request("/bin/sh", "-c", f": >{witness}"))
            kept.wait_gone()
            trace.detach()
            assert trace.killed()
        assert len(waiting) == 1
        assert select.select(waiting, [], [], GONE_WITHIN_S)[0] == waiting, "the command-to-be waits on"
        os.close(waiting[0])
        assert [fact["fact"] for fact in kept.facts()] == ["prepared"]
        assert not witness.exists()


def dies_at_random(base: Path, seed: int) -> None:
    """One keeper, killed after a time that only the seed knows, while its command writes as fast as it can."""
    pty = seed % 3 == 2
    witness = base / "ran"
    with Kept(base / "run") as kept:
        script = f": >{witness}; {TERMINAL if pty else f'seq 1 {LINES}'}"
        assert kept.start("/bin/sh", "-c", script, pty=PTY if pty else None)["ok"]
        time.sleep(random.Random(seed).uniform(0.0, 0.2 if pty else 0.012))
        kept.process.kill()
        kept.wait_gone()
        check_remains(kept, witness, pty=pty)


@pytest.mark.requirement("F05")
@pytest.mark.parametrize("seed", range(12))
def test_death_at_any_time(tmp_path: Path, seed: int) -> None:
    """Injector: SIGKILL after a random time."""
    dies_at_random(tmp_path, seed)


@pytest.mark.requirement("F05", "F15")
def test_death_on_a_full_disk(tmp_path: Path) -> None:
    """Injector: tmpfs of 256 KiB, full; SIGKILL in the stall."""
    with small_tmpfs(tmp_path, 256 * KIB) as disk, Kept(disk.at / "run") as kept:
        kept.begin("/bin/sh", "-c", f"seq 1 {LINES * 40}")
        kept.wait_stalled()
        assert disk.free_bytes() < 4096
        kept.process.kill()
        kept.wait_gone()
        assert not kept.is_locked()
        assert not prefix_difference(kept.spool(), sequence(LINES * 40))
        assert 0 < dense_end(kept.facts(), "stdout") <= len(kept.spool())


@pytest.mark.requirement("F05", "1.5")
def test_death_at_a_punch_finds_the_hole_in_the_journal(tmp_path: Path) -> None:
    """Injector: strace, SIGKILL at the nth hole punched into the spool."""
    expected = sequence(4_000_000)
    for nth in (2, 3, 5, 9):
        with Kept(tmp_path / f"run-{nth}") as kept:
            with traced(
                kept.pid,
                tmp_path / f"log-{nth}",
                calls="fallocate",
                inject=[f"fallocate:signal=KILL:when={nth}"],
                paths=[kept.directory / SPOOL],
            ) as trace:
                with suppress(EOFError, ConnectionError):
                    kept.connection.post(
                        "start",
                        **kept.request("seq", "1", "4000000", spool_max_bytes=256 * 1024, head_bytes=16 * 1024),
                    )
                    while True:
                        kept.connection.receive()
                kept.wait_gone()
                trace.detach()
                assert trace.killed()
            facts = kept.facts()
            holes = [(fact["start"], fact["end"]) for fact in facts if fact["fact"] == "hole"]
            assert len(holes) >= nth
            start, end = holes[-1]
            spool = kept.spool()
            assert b"\0" in spool
            assert start <= spool.find(b"\0") <= spool.rfind(b"\0") < holes[-2][1]
            assert spool[:start] == expected[:start]
            assert not prefix_difference(spool[end:], expected[end:])
            assert dense_end(facts, "stdout") <= len(spool)
