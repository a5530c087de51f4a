"""Files that refuse: the journal alone cannot be written, or an open spool becomes immutable."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.faults.disks import MIB, loop_ext4
from tests.faults.injectors import immutable, traced
from tests.faults.kept import JOURNAL, SPOOL, Kept, dense_end, is_alive, now_ms, sequence, stalls, wait_stall_frame

JOURNAL_CALLS = "write,writev,pwrite64,pwritev,pwritev2"


class Tap:
    """A FIFO that lets a command say one line at a time, without a byte passing through its keeper."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self.handle = os.open(path, os.O_RDWR)

    def say(self, line: bytes) -> None:
        assert os.write(self.handle, line) == len(line)

    def __enter__(self) -> Tap:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.handle)


@pytest.mark.requirement("F16", "F17", "0.7")
@pytest.mark.parametrize("file", [JOURNAL, SPOOL])
def test_an_immutable_file_makes_the_command_wait(tmp_path: Path, file: str) -> None:
    """Injector: chattr +i, later -i, on the open journal, or the open spool, of a loop-mounted ext4."""
    with loop_ext4(tmp_path, 16 * MIB) as disk, Tap(tmp_path / "tap") as tap, Kept(disk.at / "run") as kept:
        pid = kept.begin("/bin/cat", str(tap.path))
        tap.say(b"before\n")
        assert kept.call("wake", on="every")["ok"]
        kept.wait_fact("wrote")
        ear = kept.ear()
        with immutable(kept.directory / file):
            tap.say(b"while\n")
            refused = wait_stall_frame(ear, stalled=True)
            assert refused == {"errno": "EPERM", "file": file}
            assert kept.stalled_now() == refused
            tap.say(b"also while\n")
            assert dense_end(kept.facts(), "stdout") == len(b"before\n")
            kept.stays_without("exited", for_s=1)
            assert is_alive(pid)
        freed_ms = now_ms()
        assert wait_stall_frame(ear, stalled=False) is None
        kept.wait_grown(freed_ms, len(b"before\n"))
        kept.wait_grown(freed_ms, len(b"before\nwhile\nalso while\n") - 1)
        assert kept.call("kill")["ok"]
        facts = kept.finish(stdout=b"before\nwhile\nalso while\n")
        if file == SPOOL:
            assert [(turn["fact"], turn.get("errno")) for turn in stalls(facts)] == [
                ("stalled", "EPERM"),
                ("resumed", None),
            ]


@pytest.mark.requirement("F16")
def test_no_command_runs_before_the_journal_can_say_so(tmp_path: Path) -> None:
    """Injector: chattr +i on the journal of a keeper that has not been started."""
    witness = tmp_path / "ran"
    with loop_ext4(tmp_path, 16 * MIB) as disk, Kept(disk.at / "run") as kept:
        with immutable(kept.directory / JOURNAL):
            asked = kept.connection.post("start", **kept.request("/bin/sh", "-c", f": >{witness}; seq 1 1000"))
            kept.stays_without("starting", for_s=1)
            assert not witness.exists()
            assert kept.is_locked()
        reply = kept.connection.reply(asked)
        if reply["ok"]:
            kept.finish(stdout=sequence(1000))
            assert witness.exists()
        else:
            assert reply["message"]
            assert not witness.exists()


@pytest.mark.requirement("F16", "F18", "0.7")
@pytest.mark.parametrize("error", ["ENOSPC", "EIO", "EDQUOT"])
def test_appends_to_the_journal_that_fail_now_and_then(tmp_path: Path, error: str) -> None:
    """Injector: strace, every third append to the journal answered with an error."""
    script = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo $i; sleep 0.002; done"
    with Kept(tmp_path / "run") as kept, Tap(tmp_path / "tap") as tap:
        kept.begin("/bin/sh", "-c", f"read x <{tap.path}; {script}")
        with traced(
            kept.pid,
            tmp_path / "log",
            calls=JOURNAL_CALLS,
            inject=[f"{JOURNAL_CALLS}:error={error}:when=2+3"],
            paths=[kept.directory / JOURNAL],
        ) as trace:
            tap.say(b"go\n")
            kept.finish(stdout=sequence(40))
            trace.detach()
            assert trace.injected() >= 2
