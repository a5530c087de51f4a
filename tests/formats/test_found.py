"""What once broke a reader or a keeper: inputs that fuzzing found, replayed, and the same at full size."""

from __future__ import annotations

import importlib
import socket
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from limpet.dialects import ROWS
from limpet.model.errors import Refusal
from limpet.model.facts import AnyFact, Killing, StopAsked
from limpet.model.operation import decode
from limpet.store.journals import DaemonJournal, JournalReader
from limpet_keeper.journal import encode_line
from limpet_keeper.loop import READ, Loop
from limpet_keeper.timers import Timers
from tests.keeper.driver import Keeper

FOUND = sorted((Path(__file__).parent / "found").glob("*/*"))
MIB = 1 << 20
# What any input may take; the machine's own hiccups are ruled out by the best of three.
MOST_S = 0.1


def took_s(call: Any, *arguments: Any) -> float:
    """Processor time of this thread, the best of three."""
    took: list[float] = []
    for _ in range(3):
        began = time.thread_time()
        call(*arguments)
        took.append(time.thread_time() - began)
    return min(took)


@pytest.mark.requirement("F25", "F62")
@pytest.mark.parametrize("found", FOUND, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_fuzzing_found_stays_mended(found: Path) -> None:
    target: Any = importlib.import_module(f"fuzz.targets.{found.parent.name}")
    assert took_s(target.check, found.read_bytes()) < MOST_S


def refused(body: bytes) -> str:
    """How `shell` refuses that body."""
    row = next(row for row in ROWS if row.name == "shell")
    with pytest.raises(Refusal) as refusal:
        decode(row, body)
    return refusal.value.message


@pytest.mark.requirement("F62")
@pytest.mark.parametrize("members", [1000, 4000, 16000])
def test_a_doubled_member_among_many_is_found_in_time(members: int) -> None:
    """A body may have 64 MiB, and whoever decodes it holds up everybody else."""
    env = ",".join([*(f'"{number:x}":""' for number in range(members)), '"z":""', '"z":""'])
    body = f'{{"command":"c","env":{{{env}}}}}'.encode()
    assert "`z` is given twice" in refused(body)
    assert took_s(refused, body) < MOST_S


@pytest.mark.requirement("F62")
def test_a_field_with_a_long_name_is_refused_in_time() -> None:
    body = b'{"%b":1}' % (b"x" * 4 * MIB)
    assert "is not known" in refused(body)
    assert took_s(refused, body) < MOST_S


def read_all(path: Path, calls: int = 1) -> list[AnyFact]:
    """What a reader gives in so many calls, of which one may stop at a record that is no fact."""
    facts: list[AnyFact] = []
    with closing(JournalReader(path)) as reader:
        for _ in range(calls):
            try:
                facts += reader.read_new()
            except msgspec.DecodeError:
                continue
    return facts


@pytest.mark.requirement("1.11", "F01")
@pytest.mark.parametrize("size", [1000, MIB - 40, MIB, 3 * MIB])
def test_a_record_of_any_length_is_read(tmp_path: Path, size: int) -> None:
    """As long as what a caller may send: a command and its environment go into one record."""
    journal = DaemonJournal(tmp_path / "daemon.journal")
    asked = [StopAsked(n=1, at=0, after=0, signal="x" * size), StopAsked(n=2, at=0, after=0, signal="SIGTERM")]
    for fact in asked:
        journal.append(fact)
    journal.close()
    assert read_all(journal.path) == asked


@pytest.mark.requirement("F25")
@pytest.mark.parametrize(
    "body", [b'{"n":2}', b"[]", b'{"n":2,"fact":"wrote"}', b'{"fact":"killing","n":2,"at":0,"\xff":1}']
)
def test_a_sound_record_that_is_no_fact_takes_none_before_it_along(tmp_path: Path, body: bytes) -> None:
    first, chain = encode_line(b'{"n":1,"at":0,"fact":"killing"}', 0)
    second, _ = encode_line(body, chain)
    path = tmp_path / "keeper.journal"
    path.write_bytes(first + second)
    assert Killing(n=1, at=0) in read_all(path, calls=3)


@pytest.mark.parametrize("after_s", [1.0, 2_147_483.648, 31_536_000.0, (1 << 63) / 1000])
@pytest.mark.requirement("1.6")
def test_a_deadline_however_far_away_does_not_end_the_keeper(after_s: float) -> None:
    """Every number of milliseconds that a frame may carry is one for which the loop can sleep."""
    ours, theirs = socket.socketpair()
    loop = Loop()
    with ours, theirs:
        loop.watch(ours.fileno(), READ, lambda _mask: None)
        theirs.send(b".")
        timers = Timers()
        timers.set("deadline", after_s, lambda: None)
        assert loop.turn(timers.next_s())


CGROUPS: list[tuple[str, dict[str, str]]] = [
    ("/sys/fs/cgroup/no\0such", {}),
    ("/no/such/\udc80\ud800", {}),
    ("/tmp", {"no\0such": "1"}),
    ("/tmp", {"no such": "\ud800"}),
]


@pytest.mark.requirement("F41")
@pytest.mark.parametrize(("path", "settings"), CGROUPS, ids=ascii)
def test_a_name_that_no_file_can_have_is_refused(tmp_path: Path, path: str, settings: dict[str, str]) -> None:
    """Refused as an argument, or a start that failed: the keeper does not die of it."""
    with Keeper(tmp_path / "run") as keeper:
        answer = keeper.start("/bin/true", cgroups=[{"path": path, "settings": settings}])
        assert not answer["ok"]
        assert answer["error"] == "invalid_argument" or answer["part"] == "cgroup"


def test_an_unknown_field_of_stdin_is_refused(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        answer = keeper.start("/bin/true", stdin={"data": "aGkK", "close": False})
        assert (answer["ok"], answer.get("error")) == (False, "invalid_argument")
        assert "close" in answer["message"]
