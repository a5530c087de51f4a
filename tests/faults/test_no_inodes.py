"""No inodes left: nothing runs without its files, and what was prepared by halves is gone."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.faults.disks import MIB, Disk, small_tmpfs
from tests.faults.kept import Kept, NotPreparedError, now_ms, sequence
from tests.keeper.driver import REPLY_WITHIN_S, Fact, Nursery, WarmKeeper

ENOUGH_INODES = 12


def wait_inodes(disk: Disk, expected: int) -> None:
    """All that was made by halves is gone, once its maker has closed it."""
    until = time.monotonic() + REPLY_WITHIN_S
    while disk.free_inodes() != expected:
        assert time.monotonic() < until, f"{disk.free_inodes()} inodes free, of {expected}"
        time.sleep(0.01)


@pytest.mark.requirement("F22")
def test_a_nursery_refuses_to_prepare_without_inodes_and_leaves_nothing(tmp_path: Path) -> None:
    """Injector: tmpfs with nr_inodes, all but 0, 1, 2, ... taken."""
    with small_tmpfs(tmp_path, MIB, inodes=32) as disk, Nursery() as nursery:
        refused = 0
        for left in range(ENOUGH_INODES):
            taken = disk.take_inodes(leave=left)
            answer = nursery.prepare(disk.at / "run")
            if "ready" in answer:
                WarmKeeper(disk.at / "run", answer["pid"]).__exit__(None, None, None)
                break
            refused += 1
            assert answer["failed"] == str(disk.at / "run")
            assert answer["errno"] == "ENOSPC"
            assert answer["message"]
            assert not (disk.at / "run").exists()
            wait_inodes(disk, left)
            for path in taken:
                path.unlink()
        else:
            raise AssertionError(f"refused with {ENOUGH_INODES} inodes free too")
        assert refused >= 2  # a directory and a journal are the least


@pytest.mark.requirement("F22")
@pytest.mark.parametrize("pty", [None, {"rows": 24, "cols": 80}])
def test_a_command_runs_with_its_spools_or_not_at_all(tmp_path: Path, pty: dict[str, int] | None) -> None:
    """Injector: tmpfs with nr_inodes, all but 0, 1, 2, ... taken before the keeper is made."""
    refused = 0
    stream = "pty" if pty else "stdout"
    with small_tmpfs(tmp_path, MIB, inodes=32) as disk:
        for left in range(ENOUGH_INODES):
            witness = tmp_path / f"ran-{left}"
            taken = disk.take_inodes(leave=left)
            try:
                kept = Kept(disk.at / "run")
            except NotPreparedError:
                refused += 1
                assert not (disk.at / "run").exists()
                wait_inodes(disk, left)
            else:
                with kept:
                    reply = kept.start("/bin/sh", "-c", f": >{witness}; seq 1 2000", pty=pty)
                    if reply["ok"]:
                        kept.finish(**{stream: sequence(2000)})
                        assert witness.exists()
                        break
                    refused += 1
                    assert not witness.exists()
                    assert not kept.named("started")
                for path in (disk.at / "run").iterdir():
                    path.unlink()
                (disk.at / "run").rmdir()
            for path in taken:
                path.unlink()
        else:
            raise AssertionError(f"refused with {ENOUGH_INODES} inodes free too")
    assert refused >= 2


@pytest.mark.requirement("F22", "F15")
def test_a_first_bare_line_feed_without_inodes_waits_or_is_kept(tmp_path: Path) -> None:
    """Injector: tmpfs with nr_inodes, all taken once the terminal's run was started."""
    with small_tmpfs(tmp_path, MIB, inodes=32) as disk, Kept(disk.at / "run") as kept:
        gate = tmp_path / "gate"
        kept.begin(
            "/bin/sh",
            "-c",
            f"until [ -e {gate} ]; do sleep 0.02; done; stty -onlcr; printf 'a\\nb\\r\\nc\\n'",
            pty={"rows": 24, "cols": 80},
        )
        taken = disk.take_inodes(leave=0)
        gate.touch()

        def stalled_or_over(facts: list[Fact]) -> Fact | None:
            return next((fact for fact in facts if fact["fact"] in ("stalled", "exited")), None)

        turn: Fact = kept.wait_until(stalled_or_over)
        freed_ms = now_ms()
        for path in taken:
            path.unlink()
        if turn["fact"] == "stalled":
            assert (turn["errno"], turn["file"]) == ("ENOSPC", "pty.bare_lf")
            kept.wait_resumed(freed_ms)
        kept.finish(pty=b"a\nb\nc\n")
        bare = (kept.directory / "pty.bare_lf").read_bytes()
        assert bare == b"".join(place.to_bytes(8, "little") for place in (1, 5))
