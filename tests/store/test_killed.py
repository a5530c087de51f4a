"""A process that is killed in the middle of commits: what was flushed is there, and no run is half there."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from limpet.store.sqlite import SqliteRunStore
from limpet.testing.run_store import make_output, make_run

RUNS = 5
KILLS = 8

# Round after round each run gets a few items; commits happen beside, and now and then it says what is flushed.
_WRITER = """
import pathlib, sys
from limpet.model.items import Place
from limpet.store.sqlite import SqliteRunStore
from limpet.testing.run_store import make_output, make_run

runs, written = int(sys.argv[2]), int(sys.argv[3])
store = SqliteRunStore(pathlib.Path(sys.argv[1]))
while True:
    for number in range(runs):
        items = [make_output(seq) for seq in range(written * 3 + 1, written * 3 + 4)]
        place = Place(keeper_records=(written + 1) * 3)
        store.put(make_run(number, output_bytes=(written + 1) * 3), "running", items, place)
    written += 1
    if written % 50 == 0:
        store.flush()
        print(written, flush=True)
"""


def rounds_of(store: SqliteRunStore, number: int) -> int:
    """How many rounds a run has; its row, items and place are to say the same."""
    run_id = make_run(number).run_id
    run, place = store.get(run_id), store.place(run_id)
    if run is None:
        assert place is None
        assert store.items(run_id, 0, 10) == []
        return 0
    assert place is not None
    assert run.output_bytes == place.keeper_records
    assert store.items(run_id, 0, 1) == [make_output(1)]
    assert store.items(run_id, run.output_bytes - 1, 10) == [make_output(run.output_bytes)]
    count = store.database.scan("SELECT count(*) FROM exec_run_items WHERE run_id = ?", run_id)
    assert count == [(run.output_bytes,)]
    return run.output_bytes // 3


@pytest.mark.requirement("1.11", "F01")
def test_what_was_flushed_is_there(tmp_path: Path) -> None:
    """Injector: SIGKILL at a random flush, again and again on the same database."""
    path = tmp_path / "sessions.db"
    chance = random.Random(7)
    rounds = 0
    for _ in range(KILLS):
        command = [sys.executable, "-c", _WRITER, str(path), str(RUNS), str(rounds)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            flushed = 0
            for _ in range(chance.randrange(1, 40)):
                flushed = int(process.stdout.readline())
            process.kill()
            for line in process.stdout:
                if line.endswith("\n"):
                    flushed = int(line)
        assert process.returncode == -signal.SIGKILL
        store = SqliteRunStore(path)
        assert store.set_aside_as is None
        found = [rounds_of(store, number) for number in range(RUNS)]
        assert min(found) >= flushed
        assert min(found) >= rounds
        rounds = min(found)
        store.close()
    assert rounds > KILLS
