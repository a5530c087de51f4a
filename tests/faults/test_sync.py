"""What is called durable is on disk: a failed sync is believed for ever, a slow one holds up nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.faults.disks import MIB, loop_ext4
from tests.faults.injectors import traced
from tests.faults.kept import SPOOL, Kept, dense_end, sequence
from tests.keeper.driver import Fact

SYNCS = "fdatasync,fsync"
LINES = "i=0; while [ $i -lt 30 ]; do i=$((i+1)); echo $i; echo $i >&2; sleep 0.05; done"


def gated(gate: Path, script: str) -> tuple[str, str, str]:
    """A shell that runs `script` once `gate` exists: time to attach an injector first."""
    return ("/bin/sh", "-c", f"until [ -e {gate} ]; do sleep 0.02; done; {script}")


def synced(facts: list[Fact], stream: str) -> list[tuple[int, int]]:
    """Number and offset of each fact that reports so much of a stream as durable."""
    return [
        (fact["n"], fact["streams"][stream]) for fact in facts if fact["fact"] == "synced" and stream in fact["streams"]
    ]


def check_synced(facts: list[Fact], stream: str) -> None:
    """Durable offsets only rise, and never pass what was written."""
    last = 0
    for number, offset in synced(facts, stream):
        assert last <= offset <= dense_end(facts[:number], stream)
        last = offset


def check_failed(facts: list[Fact], failed: Fact) -> None:
    """The failed range was not durable before, was written, and is never durable after."""
    stream = failed["stream"]
    before = [offset for number, offset in synced(facts, stream) if number < failed["n"]]
    assert (before[-1] if before else 0) <= failed["start"] < failed["end"] <= dense_end(facts[: failed["n"]], stream)
    check_synced(facts, stream)
    for number, offset in synced(facts, stream):
        assert number < failed["n"] or offset <= failed["start"], f"durable up to {offset}, past {failed}"


@pytest.mark.requirement("0.13")
def test_output_is_synced_every_sync_ms_and_at_the_end(tmp_path: Path) -> None:
    """Injector: none; strace only counts that each `synced` stands for a sync."""
    gate = tmp_path / "gate"
    with Kept(tmp_path / "run") as kept:
        kept.begin(*gated(gate, LINES), sync_ms=200)
        with traced(kept.pid, tmp_path / "log", calls=SYNCS, paths=[kept.directory / SPOOL]) as trace:
            gate.touch()
            facts = kept.finish(stdout=sequence(30), stderr=sequence(30))
            trace.wait_end(20)
            real = sum(line.endswith("= 0") for line in trace.lines())
    check_synced(facts, "stdout")
    check_synced(facts, "stderr")
    offsets = [offset for _, offset in synced(facts, "stdout")]
    assert len(set(offsets)) >= 3  # 1.5 s of output
    assert offsets[-1] == len(sequence(30))
    assert synced(facts, "stderr")[-1][1] == len(sequence(30))
    assert real >= len(set(offsets))


@pytest.mark.requirement("F19", "0.13", "0.7")
def test_a_range_whose_sync_failed_is_never_durable(tmp_path: Path) -> None:
    """Injector: strace, EIO once on the sync of one of two spools."""
    gate = tmp_path / "gate"
    with Kept(tmp_path / "run") as kept:
        kept.begin(*gated(gate, LINES), sync_ms=150)
        with traced(
            kept.pid,
            tmp_path / "log",
            calls=SYNCS,
            inject=[f"{SYNCS}:error=EIO:when=2"],
            paths=[kept.directory / SPOOL],
        ) as trace:
            gate.touch()
            facts = kept.finish(stdout=sequence(30), stderr=sequence(30))
            trace.wait_end(20)
            assert trace.injected() >= 1
    failures = [fact for fact in facts if fact["fact"] == "sync_failed"]
    assert failures
    for failed in failures:
        assert (failed["stream"], failed["errno"]) == ("stdout", "EIO")
        check_failed(facts, failed)
    assert synced(facts, "stderr")[-1][1] == len(sequence(30))
    check_synced(facts, "stderr")


@pytest.mark.requirement("F20", "F19", "0.13")
def test_a_real_write_back_failure_is_said_and_stays_said(tmp_path: Path) -> None:
    """Injector: ext4 image on a tmpfs without room; only the first sync fails, later ones say yes."""
    gates = [tmp_path / f"gate-{number}" for number in range(3)]
    half = 100_000
    script = f"echo 0; until [ -e {gates[0]} ]; do sleep 0.02; done; seq 1 {half}"
    script += f"; until [ -e {gates[1]} ]; do sleep 0.02; done; seq {half + 1} {2 * half}"
    script += f"; until [ -e {gates[2]} ]; do sleep 0.02; done"
    expected = b"0\n" + sequence(2 * half)
    with loop_ext4(tmp_path, 16 * MIB, backing_bytes=3 * MIB) as disk, Kept(disk.at / "run") as kept:
        kept.begin("/bin/sh", "-c", script, sync_ms=100)
        assert kept.call("wake", on="every")["ok"]
        kept.wait_fact("synced")
        filler = disk.break_write_back()
        gates[0].touch()
        failed = kept.wait_fact("sync_failed")
        filler.unlink()
        gates[1].touch()
        kept.wait_until(lambda facts: dense_end(facts, "stdout") == len(expected))
        gates[2].touch()
        facts = kept.finish(stdout=expected)
    assert failed["errno"] in ("ENOSPC", "EIO")
    assert failed["stream"] == "stdout"
    check_failed(facts, failed)


@pytest.mark.requirement("F27", "0.13")
def test_a_slow_sync_holds_up_nothing(tmp_path: Path) -> None:
    """Injector: strace, the first sync of the spool takes 4 s longer."""
    gate = tmp_path / "gate"
    with Kept(tmp_path / "run") as kept:
        kept.begin(*gated(gate, "echo 0; sleep 0.6; seq 1 1000000"), sync_ms=100)
        with traced(
            kept.pid,
            tmp_path / "log",
            calls=SYNCS,
            inject=[f"{SYNCS}:delay_enter=4000000:when=1"],
            paths=[kept.directory / SPOOL],
        ) as trace:
            gate.touch()
            kept.wait_fact("exited")
            asked = time.monotonic()
            assert kept.stalled_now() is None
            assert time.monotonic() - asked < 2
            facts = kept.finish(stdout=b"0\n" + sequence(1_000_000))
            trace.wait_end(20)
            assert trace.delayed() >= 1
    first_synced = next(fact for fact in facts if fact["fact"] == "synced")
    last_wrote = [fact for fact in facts if fact["fact"] == "wrote"][-1]
    first_wrote = next(fact for fact in facts if fact["fact"] == "wrote")
    assert first_synced["at"] - first_wrote["at"] >= 3900, "the sync was not slow"
    assert last_wrote["n"] < first_synced["n"]
    assert last_wrote["at"] - first_wrote["at"] < 3900
