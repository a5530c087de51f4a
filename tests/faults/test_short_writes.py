"""Short, interrupted and refused writes: no record is torn or doubled, every byte is kept once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.disks import KIB
from tests.faults.injectors import file_size_limit, half_writes, traced
from tests.faults.kept import JOURNAL, SPOOL, Kept, is_alive, now_ms, prefix_difference, sequence, stalls
from tests.keeper.driver import read_journal

READS_AND_WRITES = "read,readv,write,writev,pread64,preadv,pwrite64,pwritev"
LONG = 600_000  # lines: 4 MB, more than a pipe and one read hold
WRITES = "write,writev,pwrite64,pwritev,pwritev2"


def gated(gate: Path, script: str) -> tuple[str, str, str]:
    """A shell that runs `script` once `gate` exists: time to attach an injector first."""
    return ("/bin/sh", "-c", f"until [ -e {gate} ]; do sleep 0.02; done; {script}")


@pytest.mark.requirement("F18", "0.7")
@pytest.mark.parametrize("file", [SPOOL, JOURNAL])
def test_one_byte_at_a_time(tmp_path: Path, file: str) -> None:
    """Injector: preloaded write that lets one byte of each write in."""
    with half_writes(tmp_path / "shim", file, "one") as shim:
        shim.arm()
        with Kept(tmp_path / "run", env=shim.env) as kept:
            kept.begin("/bin/sh", "-c", "for i in 1 2 3 4; do seq 1 300; sleep 0.02; done")
            facts = kept.finish(stdout=sequence(300) * 4)
            assert not stalls(facts)
        assert {mode for mode, _, _ in shim.happened()} == {"one"}
        assert len(shim.happened()) > 300


@pytest.mark.requirement("F18", "F15", "0.7")
@pytest.mark.parametrize("file", [SPOOL, JOURNAL])
def test_half_a_write_and_then_no_room(tmp_path: Path, file: str) -> None:
    """Injector: preloaded write that lets half of one write in, then says ENOSPC for a while; twice."""
    gates = [tmp_path / "gate-1", tmp_path / "gate-2"]
    with half_writes(tmp_path / "shim", file, "half") as shim, Kept(tmp_path / "run", env=shim.env) as kept:
        first, second = (gated(gate, f"seq 1 {LONG}")[2] for gate in gates)
        pid = kept.begin("/bin/sh", "-c", f"{first}; {second}")
        for turn, gate in enumerate(gates, 1):
            shim.arm()
            refused = sum(result == -1 for _, _, result in shim.happened())
            gate.touch()
            while sum(result == -1 for _, _, result in shim.happened()) < refused + 2:  # it tries again, in vain
                kept.stays_without("exited", for_s=0.02)
            assert is_alive(pid)
            assert not prefix_difference(kept.spool(), sequence(LONG) * 2)
            read_journal(kept.directory / JOURNAL)
            shim.disarm()
            kept.wait_grown(now_ms(), turn * len(sequence(LONG)) - 1)
        kept.finish(stdout=sequence(LONG) * 2)
        halves = [(asked, result) for _, asked, result in shim.happened() if result >= 0]
        assert len(halves) >= 2
        assert all(0 < result < asked for asked, result in halves)


@pytest.mark.requirement("F18", "F05")
def test_half_a_record_and_then_the_keepers_death_is_a_torn_tail(tmp_path: Path) -> None:
    """Injector: preloaded write, half of a record and then ENOSPC; SIGKILL in that state."""
    gate = tmp_path / "gate"
    with half_writes(tmp_path / "shim", JOURNAL, "half") as shim, Kept(tmp_path / "run", env=shim.env) as kept:
        kept.begin(*gated(gate, "seq 1 100000"))
        shim.arm()
        gate.touch()
        while not any(result == -1 for _, _, result in shim.happened()):
            kept.stays_without("exited", for_s=0.02)
        kept.process.kill()
        kept.wait_gone()
        facts = kept.facts()
        assert [fact["fact"] for fact in facts[:3]] == ["prepared", "starting", "started"]
        assert not prefix_difference(kept.spool(), sequence(100_000))
        assert max((fact["end"] for fact in facts if fact["fact"] == "wrote"), default=0) <= len(kept.spool())


@pytest.mark.requirement("F21")
@pytest.mark.parametrize("error", ["EINTR", "EAGAIN"])
@pytest.mark.parametrize("pty", [None, {"rows": 24, "cols": 80}], ids=["pipes", "pty"])
def test_interrupted_and_refused_for_now_are_not_seen(tmp_path: Path, error: str, pty: dict[str, int] | None) -> None:
    """Injector: strace, every third read and write of the keeper; EAGAIN only on its files and the streams."""
    gate = tmp_path / "gate"
    stream = "pty" if pty else "stdout"
    with Kept(tmp_path / "run") as kept:
        pid = kept.begin(*gated(gate, "seq 1 60000"), pty=pty)
        storage = [kept.directory / name for name in (JOURNAL, f"{stream}.spool")]
        output = Path("/dev/ptmx") if pty else Path(f"/proc/{pid}/fd/1").readlink()
        with traced(
            kept.pid,
            tmp_path / "log",
            calls=READS_AND_WRITES,
            inject=[f"{READS_AND_WRITES}:error={error}:when=2+3"],
            paths=[*storage, output] if error == "EAGAIN" else [],  # what blocks never says EAGAIN
        ) as trace:
            gate.touch()
            facts = kept.finish(**{stream: sequence(60_000)})
            trace.wait_end(20)
            assert any("write" in line and "(INJECTED)" in line for line in trace.lines())
            assert any("read" in line and "(INJECTED)" in line for line in trace.lines())
        assert not stalls(facts)
        assert [fact["code"] for fact in facts if fact["fact"] == "exited"] == [0]


@pytest.mark.requirement("F21", "F15")
@pytest.mark.parametrize("error", ["EROFS", "EIO", "EDQUOT"])
def test_a_spool_that_refuses_writes_makes_the_command_wait(tmp_path: Path, error: str) -> None:
    """Injector: strace, every write to the spool refused until it is detached."""
    gate = tmp_path / "gate"
    with Kept(tmp_path / "run") as kept:
        pid = kept.begin(*gated(gate, f"seq 1 {LONG}"))
        with traced(
            kept.pid,
            tmp_path / "log",
            calls=WRITES,
            inject=[f"{WRITES}:error={error}"],
            paths=[kept.directory / SPOOL],
        ) as trace:
            gate.touch()
            stall = kept.wait_stalled()
            assert (stall["errno"], stall["file"]) == (error, SPOOL)
            assert is_alive(pid)
            assert kept.spool() == b""
            trace.detach()
            freed_ms = now_ms()
            assert 1 <= trace.injected() <= 1000  # it tries again, but not in a tight loop
        kept.wait_resumed(freed_ms)
        kept.finish(stdout=sequence(LONG))


@pytest.mark.requirement("F23", "F15", "F18")
def test_a_file_size_limit_is_a_full_disk(tmp_path: Path) -> None:
    """Injector: prlimit --fsize on the keeper, at an odd size, raised again later."""
    limit_bytes = 300 * KIB + 7
    with Kept(tmp_path / "run") as kept:
        gate = tmp_path / "gate"
        pid = kept.begin(*gated(gate, f"seq 1 {LONG}"))
        with file_size_limit(kept.pid, limit_bytes):
            gate.touch()
            stall = kept.wait_stalled()
            assert (stall["errno"], stall["file"]) == ("EFBIG", SPOOL)
            assert len(kept.spool()) == limit_bytes  # what fits went in: the limit really cut
            assert is_alive(pid)
            assert kept.stalled_now()
        kept.wait_resumed(now_ms())
        kept.finish(stdout=sequence(LONG))


@pytest.mark.requirement("F23", "F16", "F18")
def test_a_file_size_limit_inside_a_record(tmp_path: Path) -> None:
    """Injector: prlimit --fsize on the keeper, just past the journal's end: the next record is cut by the kernel."""
    gate = tmp_path / "gate"
    with Kept(tmp_path / "run") as kept:
        kept.begin(*gated(gate, "seq 1 20"))
        before = (kept.directory / JOURNAL).read_bytes()
        with file_size_limit(kept.pid, len(before) + 11):
            gate.touch()
            while not kept.stalled_now():
                kept.stays_without("exited", for_s=0.02)
            assert kept.stalled_now() == {"errno": "EFBIG", "file": JOURNAL}
            assert len((kept.directory / JOURNAL).read_bytes()) <= len(before) + 11
        kept.finish(stdout=sequence(20))
