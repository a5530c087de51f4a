"""The daemon killed again and again at chosen moments: in short what `python -m prove daemon_kills` does at length."""

import pytest

from prove import daemon_kills, daemon_sweep, probes


@pytest.mark.requirement("F01", "F02", "F03", "0.9", "1.11", "1.4")
def test_whatever_it_is_at_nothing_is_lost() -> None:
    """Injector: SIGKILL to the daemon, 15 times: by the kernel's timer right after it began what is chosen, and at any
    moment. Probes in shared memory say what it was at."""
    report = daemon_kills.prove(kills=15, runs=12, pace_s=0.1)
    assert "15 times SIGKILL" in report
    counted = [line.split() for line in report.splitlines() if line.startswith(probes.PHASES)]
    assert sum(int(words[-3]) for words in counted) == 15
    assert sum(int(words[-3]) > 0 for words in counted) >= 3, report


@pytest.mark.requirement("F04", "F02", "F03", "0.9")
def test_at_whatever_call_it_dies_the_home_is_sound() -> None:
    """Injector: strace, SIGKILL at the first two of the calls that change something on disk.

    At every call: `python -m prove daemon_sweep`.
    """
    changing = ("fdatasync", "fsync", "openat", "pwrite64", "rename", "unlink", "write")
    report = daemon_sweep.prove(11, each=2, only=changing)
    assert int(report.split()[4]) >= 8, report
