"""Hundreds of keepers killed under a living daemon: each run is lost within a second, and nothing else is (F05, M2).

Each of them keeps a run that writes numbered lines as fast as it can beside a tree of processes: some ignore SIGTERM,
some have left its session. Other runs go on beside them from the first kill to the last.
"""

from __future__ import annotations

import contextlib
import random
import statistics
import tempfile
import time
from pathlib import Path

from tests.contract.fifos import Gate, Lifeline
from tests.contract.home import Home, until
from tests.contract.remains import attempt_directory, kill_keeper, records
from tests.contract.surface import Http
from tests.faults.kept import dense_end, prefix_difference, sequence

WITHIN_S = 1.0
BYSTANDERS = 10
LINES = 3_000_000
# Some hold the line in a session of their own, some ignore what can be ignored; the shell itself writes.
TREE = "setsid sleep 1000 & (trap '' TERM HUP INT; sleep 1000; sleep 1000) & (sleep 1000 &) ; "
BYSTANDER = "i=0; until read -r -t 0.2 -u 8 go; do echo $((i++)); done 8<>'{go}'; echo end $i; exit {code}"


def lose_one(home: Home, line: Lifeline, after_bytes: int, *, pty: bool) -> tuple[float, int]:
    """Injector: SIGKILL to the keeper of a run that writes. How long until the run was lost, and what it had said."""
    http = Http(home)
    stream = "pty" if pty else "stdout"
    run_id = http.spawn(line.hold + TREE + f"seq 1 {LINES}; exec sleep 1000", pty=pty, on_lost="requeue")
    line.word()
    said = 0
    while said < after_bytes:
        said = http.read(run_id, stream, offset=said, wait_ms=60_000, max_bytes=1)["total_bytes"]
    began = kill_keeper(home, run_id)
    facts = http.finish(run_id)
    took_s = time.monotonic() - began
    assert (facts["status"], facts["ended_by"], facts["attempt"]) == ("failed", "lost", 1), facts
    assert (facts["exit_code"], facts["signal"], facts["survivors"]) == (None, None, []), facts
    assert line.gone(10), f"a process of {run_id} outlives its keeper"
    kept = attempt_directory(home, run_id)
    spool = (kept / f"{stream}.spool").read_bytes()
    assert facts["streams"][stream] == {"bytes": len(spool), "base": 0, "open": False}, facts
    assert len(spool) >= after_bytes
    assert not (other := prefix_difference(spool, sequence(LINES))), other
    assert dense_end(records(kept / "keeper.journal"), stream) <= len(spool)
    assert http.bytes_of(run_id, stream) == spool
    return took_s, len(spool)


def prove(kills: int, within_s: float = WITHIN_S, seed: int = 1) -> str:
    """So many keepers killed, one after the other; an AssertionError says what did not hold."""
    chance = random.Random(seed)
    took_s: list[float] = []
    said_bytes = 0
    with contextlib.ExitStack() as stack:
        home = stack.enter_context(contextlib.closing(Home()))
        place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="limpet-prove-")))
        pid = home.start()["pid"]
        http = Http(home)
        gates = [stack.enter_context(Gate(place, f"go{n}")) for n in range(BYSTANDERS)]
        others = [http.spawn(BYSTANDER.format(go=gate.path, code=n)) for n, gate in enumerate(gates, 1)]
        for number in range(kills):
            with Lifeline(place, f"line{number}") as line:
                one_s, said = lose_one(home, line, int(10 ** chance.uniform(0, 6.5)), pty=number % 4 == 3)
            took_s.append(one_s)
            said_bytes += said
            assert one_s <= within_s, f"number {number} was lost only after {one_s:.2f} s"
        assert home.daemon_pid() == pid, "the daemon did not live through it"
        for code, (run_id, gate) in enumerate(zip(others, gates, strict=True), 1):
            gate.open()
            facts = http.finish(run_id)
            assert (facts["exit_code"], facts["attempt"]) == (code, 1), facts
            said = http.bytes_of(run_id)
            last = int(said.rpartition(b"end ")[2])
            assert said == b"".join(b"%d\n" % n for n in range(last)) + b"end %d\n" % last, run_id
        until(lambda: not list(home.path.glob("runs/*/1/control.sock")), "the last keepers to be gone")
        found = http.ok("runs.verify")["findings"]
        assert not found, found[:3]
    took_ms = sorted(each_s * 1000 for each_s in took_s)
    p99_ms = took_ms[min(len(took_ms) - 1, int(len(took_ms) * 0.99))]
    took = f"{statistics.median(took_ms):.0f} ms (median), {p99_ms:.0f} ms (99 of 100), {took_ms[-1]:.0f} ms"
    told = [
        f"{kills} keepers killed under one daemon: each run failed, `lost`, after {took} (longest)",
        f"{said_bytes} bytes in their spools, each the beginning of what was said; 0 processes left, 0 started again",
        f"{BYSTANDERS} other runs went on from the first kill to the last and lost nothing; verify finds nothing",
    ]
    return "\n".join(told)
