"""A full disk: the command waits, nothing is lost, and it goes on soon after there is room."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from prove.disk_full_cycles import prove
from tests.faults.disks import KIB, MIB, Tmpfs, small_tmpfs
from tests.faults.kept import Kept, dense_end, is_alive, now_ms, prefix_difference, sequence, stalls, wait_stall_frame

RESIZES = 4000  # facts enough to use up what the journal laid by

# Writes its sequence until the pipe has been full for so long (seconds), then says how much the pipe took.
FILL_THE_PIPE = """
import os, sys, time
data = b"".join(b"%09d\\n" % i for i in range(400_000))
os.set_blocking(1, False)
done, quiet = 0, time.monotonic()
while time.monotonic() - quiet < float(sys.argv[2]):
    try:
        done += os.write(1, data[done : done + 4096])
        quiet = time.monotonic()
    except BlockingIOError:
        time.sleep(0.01)
with open(sys.argv[1] + ".part", "w") as file:
    file.write(str(done))
os.rename(sys.argv[1] + ".part", sys.argv[1])
"""
FILLED = b"".join(b"%09d\n" % number for number in range(400_000))


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Tmpfs]:
    with small_tmpfs(tmp_path, 256 * KIB) as disk:
        yield disk


def stall_with_little_room(kept: Kept, disk: Tmpfs, *argv: str, **fields: object) -> tuple[int, Path]:
    """Starts a command on a disk with 16 KiB left, and waits for the stall; the command's pid and the filler."""
    filler = disk.fill(leave_bytes=16 * KIB)
    pid = kept.begin(*argv, **fields)
    kept.wait_stalled()
    assert disk.free_bytes() < 4096
    return pid, filler


@pytest.mark.requirement("F15", "0.7", "0.14")
def test_the_command_waits_on_a_full_disk_and_goes_on_by_steps(disk: Tmpfs) -> None:
    """Injector: tmpfs of 256 KiB, made larger by steps; the run writes 10 MB."""
    filler = disk.at / "filler"
    filler.write_bytes(b"\xee" * 64 * KIB)
    expected = sequence(1_400_000)
    with Kept(disk.at / "run") as kept:
        ear = kept.ear()
        pid = kept.begin("seq", "1", "1400000")
        stall = kept.wait_stalled()
        assert (stall["errno"], stall["file"]) == ("ENOSPC", "stdout.spool")
        assert wait_stall_frame(ear, stalled=True) == {"errno": "ENOSPC", "file": "stdout.spool"}
        for give_room in (filler.unlink, lambda: disk.resize(MIB), lambda: disk.resize(4 * MIB)):
            while disk.free_bytes() >= 4096 or not kept.stalled_now():
                kept.stays_without("exited", for_s=0.02)
            assert kept.stalled_now() == {"errno": "ENOSPC", "file": "stdout.spool"}
            assert is_alive(pid)
            assert not prefix_difference(kept.spool(), expected)
            before = dense_end(kept.facts(), "stdout")
            assert before == len(kept.spool())
            freed_ms = now_ms()
            give_room()
            kept.wait_grown(freed_ms, before)
        while not kept.stalled_now():
            kept.stays_without("exited", for_s=0.02)
        turns = len(stalls(kept.facts()))
        freed_ms = now_ms()
        disk.resize(24 * MIB)
        kept.wait_resumed(freed_ms, (turns + 1) // 2)
        assert wait_stall_frame(ear, stalled=False) is None
        facts = kept.finish(stdout=expected)
    assert len(stalls(facts)) >= 2
    exited, ended = (next(fact for fact in facts if fact["fact"] == name) for name in ("exited", "ended"))
    assert (exited["code"], exited["signal"], ended["by"]) == (0, None, "self")


@pytest.mark.requirement("F15", "0.7")
def test_a_terminal_waits_on_a_full_disk(disk: Tmpfs) -> None:
    """Injector: tmpfs of 256 KiB, then 16 MiB; bare and folded line feeds both wait."""
    script = "stty -onlcr; seq 1 60000; stty onlcr; seq 1 60000"
    with Kept(disk.at / "run") as kept:
        kept.begin("/bin/sh", "-c", script, pty={"rows": 24, "cols": 80})
        kept.wait_stalled()
        assert disk.free_bytes() < 4096
        freed_ms = now_ms()
        disk.resize(16 * MIB)
        kept.wait_resumed(freed_ms)
        facts = kept.finish(pty=sequence(60_000) * 2)
    assert next(fact for fact in facts if fact["fact"] == "ended")["by"] == "self"
    bare = (disk.at / "run" / "pty.bare_lf").read_bytes()
    lf_places = [place for place, byte in enumerate(sequence(60_000)) if byte == 10]
    assert bare == b"".join(place.to_bytes(8, "little") for place in lf_places)


@pytest.mark.requirement("F15", "0.7")
def test_both_streams_wait_on_a_full_disk(disk: Tmpfs) -> None:
    """Injector: tmpfs of 256 KiB, then 16 MiB."""
    with Kept(disk.at / "run") as kept:
        kept.begin("/bin/sh", "-c", "seq 1 150000 & seq 1 120000 >&2; wait")
        kept.wait_stalled()
        assert disk.free_bytes() < 4096
        freed_ms = now_ms()
        disk.resize(16 * MIB)
        kept.wait_resumed(freed_ms)
        kept.finish(stdout=sequence(150_000), stderr=sequence(120_000))


@pytest.mark.requirement("F15", "0.7", "0.8")
def test_a_run_that_ends_in_a_stall_ends_only_when_all_is_kept(disk: Tmpfs, tmp_path: Path) -> None:
    """Injector: tmpfs filled but for 16 KiB. What the pipe took is what must be in the spool."""
    witness = tmp_path / "taken"
    with Kept(disk.at / "run") as kept:
        _, filler = stall_with_little_room(kept, disk, sys.executable, "-c", FILL_THE_PIPE, str(witness), "0.3")
        exited = kept.wait_fact("exited")
        assert exited["code"] == 0
        kept.stays_without("ended", for_s=1.5)  # the drain's clock, 1 s at most, stands still
        assert len(stalls(kept.facts())) == 1
        freed_ms = now_ms()
        filler.unlink()
        disk.resize(16 * MIB)
        kept.wait_resumed(freed_ms)
        taken = int(witness.read_text())
        assert taken > 16 * KIB
        kept.finish(stdout=FILLED[:taken])


@pytest.mark.requirement("F15", "0.8")
def test_the_drain_clock_of_a_held_stream_stands_still_in_a_stall(disk: Tmpfs, tmp_path: Path) -> None:
    """Injector: tmpfs filled but for 16 KiB, while a descendant holds stdout open after the main process's end."""
    witness = tmp_path / "taken"
    script = f'sleep 600 & exec {sys.executable} -c "$PROGRAM" {witness} 0.3'
    with Kept(disk.at / "run") as kept:
        env = kept.request("x")["env"] | {"PROGRAM": FILL_THE_PIPE}
        stall_with_little_room(kept, disk, "/bin/sh", "-c", script, env=env)
        kept.wait_fact("exited")
        kept.stays_without("ended", for_s=1.5)
        disk.resize(16 * MIB)
        ended = kept.wait_fact("ended")
        taken = int(witness.read_text())
        assert ended["streams"]["stdout"] == {"end": taken, "open": True}
        assert kept.call("kill", signal="SIGKILL")["ok"]
        kept.finish(stdout=FILLED[:taken])


@pytest.mark.requirement("F15", "1.6")
def test_kill_works_in_a_stall(disk: Tmpfs, tmp_path: Path) -> None:
    """Injector: tmpfs filled but for 16 KiB."""
    witness = tmp_path / "taken"
    script = f'trap "" TERM; {sys.executable} -c "$PROGRAM" {witness} 0.3; while :; do sleep 600; done'
    with Kept(disk.at / "run") as kept:
        env = kept.request("x")["env"] | {"PROGRAM": FILL_THE_PIPE}
        pid, _ = stall_with_little_room(kept, disk, "/bin/sh", "-c", script, env=env)
        while not witness.exists():  # the pipe is full, and its filler gone
            kept.stays_without("exited", for_s=0.02)
        assert kept.call("kill", signal="SIGTERM", grace_ms=300)["ok"]
        exited = kept.wait_fact("exited")
        assert (exited["code"], exited["signal"]) == (None, "SIGKILL")
        assert not is_alive(pid)
        assert kept.stalled_now()
        disk.resize(16 * MIB)
        facts = kept.finish(stdout=FILLED[: int(witness.read_text())])
    assert next(fact for fact in facts if fact["fact"] == "ended")["by"] == "kill"


@pytest.mark.requirement("F15", "1.6")
def test_the_deadline_holds_in_a_stall(disk: Tmpfs) -> None:
    """Injector: tmpfs filled but for 16 KiB."""
    with Kept(disk.at / "run") as kept:
        pid, _ = stall_with_little_room(kept, disk, "seq", "1", "400000", timeout_ms=1500, kill_grace_ms=300)
        stopping = kept.wait_fact("stopping")
        started = kept.named("started")[0]
        assert stopping["by"] == "timeout"
        assert 1400 <= stopping["at"] - started["at"] <= 8000
        assert kept.wait_fact("exited")["signal"] == "SIGTERM"
        assert not is_alive(pid)
        assert kept.stalled_now()
        assert not kept.named("ended")
        disk.resize(16 * MIB)
        ended = kept.wait_fact("ended")
        kept.finish(stdout=sequence(400_000)[: ended["streams"]["stdout"]["end"]])
    assert ended["by"] == "timeout"
    assert ended["streams"]["stdout"]["end"] > 16 * KIB


@pytest.mark.requirement("F15", "0.14")
def test_room_below_min_free_bytes_counts_as_full(tmp_path: Path) -> None:
    """Injector: tmpfs of 16 MiB of which 8 MiB must stay free; then one of 48 MiB."""
    with small_tmpfs(tmp_path, 16 * MIB) as disk, Kept(disk.at / "run") as kept:
        pid = kept.begin("seq", "1", "2000000", min_free_bytes=8 * MIB)
        stall = kept.wait_stalled()
        assert stall["errno"] == "ENOSPC"
        assert 6 * MIB <= disk.free_bytes() <= 9 * MIB  # not far below: what one look to the next lets in
        assert is_alive(pid)
        freed_ms = now_ms()
        disk.resize(48 * MIB)
        kept.wait_resumed(freed_ms)
        kept.finish(stdout=sequence(2_000_000))


@pytest.mark.requirement("F15")
def test_full_and_free_many_times() -> None:
    """Injector: tmpfs of 256 KiB, full and freed in turns; the short form of `prove.disk_full_cycles`."""
    assert "12 cycles" in prove(12, within_ms=3000)


@pytest.mark.requirement("F15", "F16", "1.6", "0.7")
def test_kill_works_and_no_fact_is_lost_when_the_journals_own_room_is_used_up(disk: Tmpfs) -> None:
    """Injector: tmpfs filled to the last page, then facts until the journal's reserve is gone too."""
    with Kept(disk.at / "run") as kept:
        pid, _ = stall_with_little_room(kept, disk, "seq", "1", "600000", pty={"rows": 24, "cols": 80})
        for number in range(RESIZES):
            assert kept.call("resize", rows=1 + number % 500, cols=80)["ok"]
        assert disk.free_bytes() < 4096
        assert len(kept.named("resized")) < RESIZES, "the journal's room never ended"
        kept.connection.post("kill", signal="SIGKILL")
        while is_alive(pid):
            kept.stays_without("ended", for_s=0.02)
        disk.resize(32 * MIB)
        ended = kept.wait_fact("ended")
        facts = kept.finish(pty=sequence(600_000)[: ended["streams"]["pty"]["end"]])
    assert [fact["rows"] for fact in facts if fact["fact"] == "resized"] == [1 + n % 500 for n in range(RESIZES)]
    assert ended["by"] == "kill"
