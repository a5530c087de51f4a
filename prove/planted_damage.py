"""Ten thousand bits flipped, ends cut, records and blocks swapped or doubled: `verify` finds each one (F25, M17).

The runs are of every sort, made by a real daemon. Each piece of damage is planted in one file, looked for, and taken
back. Before and after, and a hundred times while a daemon works hard, a sound home is said to be sound (F33).
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from limpet.store.verify_home import Report, verify_home
from prove.sorts import CONFIG, Sorts, is_sealed, make_sorts
from tests.contract.home import Home, json_lines
from tests.contract.remains import records
from tests.contract.surface import Http

SORTS_OF_RUNS = 64
LOOKS = 100
# Those that come and go under load, and how much of them stays.
CHURN = 4
KEEP_BYTES = 2 << 20
JOURNALS = ("daemon.journal", "keeper.journal")


@dataclass(frozen=True, slots=True)
class Place:
    """A file in which damage can be found, and which of its bytes count: those of a hole do not."""

    run_id: str
    path: Path
    hole: tuple[int, int] | None = None

    @property
    def is_journal(self) -> bool:
        return self.path.name in JOURNALS


class Copy:
    """A home's files, in memory; its daemon is gone."""

    def __init__(self, home: Path, sorts: Sorts) -> None:
        self.runs = home / "runs"
        self.database = home / "memory" / "sessions.db"
        self.places = [place for run_id in sorts.made for place in self._places(run_id)]
        self.by_kind = {
            kind: [place for place in self.places if kind_of(place) == kind] for kind in map(kind_of, self.places)
        }

    def _places(self, run_id: str) -> Generator[Place]:
        directory = self.runs / run_id
        yield Place(run_id, directory / "daemon.journal")
        if (directory / "command").exists():
            yield Place(run_id, directory / "command")
        for kept in sorted(path for path in directory.iterdir() if path.name.isdecimal()):
            yield Place(run_id, kept / "keeper.journal")
            if not is_sealed(kept):
                continue
            seals = records(kept / "keeper.journal")[-1]["streams"]
            for stream, seal in seals.items():
                if seal["bytes"]:
                    hole = seal["hole"]
                    yield Place(run_id, kept / f"{stream}.spool", tuple(hole) if hole else None)
            if (kept / "pty.bare_lf").exists():
                yield Place(run_id, kept / "pty.bare_lf")

    def verify(self, run_id: str | None = None) -> Report:
        return verify_home(self.runs, self.database, run_id)


def kind_of(place: Place) -> str:
    if place.is_journal:
        return place.path.name
    return "spool with a hole" if place.hole else place.path.suffix.removeprefix(".") or place.path.name


def kept_offset(place: Place, size: int, chance: random.Random) -> int:
    """One of the bytes that count."""
    while True:
        offset = chance.randrange(size)
        if place.hole is None or not place.hole[0] <= offset < place.hole[1]:
            return offset


def flip(place: Place, data: bytes, chance: random.Random) -> bytes | None:
    offset = kept_offset(place, len(data), chance)
    changed = bytearray(data)
    changed[offset] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut(_: Place, data: bytes, chance: random.Random) -> bytes | None:
    return data[: chance.randrange(len(data))]


def pieces(place: Place, data: bytes, chance: random.Random) -> list[bytes] | None:
    """A journal's records; a spool's blocks, of any size."""
    if place.hole is not None:
        return None
    if place.is_journal:
        return data.splitlines(keepends=True)
    size = chance.randint(1, max(1, len(data) // 2))
    return [data[place : place + size] for place in range(0, len(data), size)]


def swap(place: Place, data: bytes, chance: random.Random) -> bytes | None:
    parts = pieces(place, data, chance)
    if parts is None or len(parts) < 2:
        return None
    one, other = chance.sample(range(len(parts)), 2)
    parts[one], parts[other] = parts[other], parts[one]
    return b"".join(parts)


def double(place: Place, data: bytes, chance: random.Random) -> bytes | None:
    parts = pieces(place, data, chance)
    if parts is None:
        return None
    one = chance.randrange(len(parts))
    return b"".join([*parts[: one + 1], *parts[one:]])


def leave_out(place: Place, data: bytes, chance: random.Random) -> bytes | None:
    parts = pieces(place, data, chance)
    if parts is None:
        return None
    del parts[chance.randrange(len(parts))]
    return b"".join(parts)


DAMAGE: dict[str, Callable[[Place, bytes, random.Random], bytes | None]] = {
    "a bit flipped": flip,
    "the end cut": cut,
    "two records or blocks swapped": swap,
    "one doubled": double,
    "one left out": leave_out,
}
SHARES = (6, 1, 1, 1, 1)


def plant(copy: Copy, number: int, chance: random.Random) -> tuple[str, str]:
    """One piece of damage planted, found and taken back: what it was, and in what."""
    while True:
        place = chance.choice(copy.by_kind[chance.choice(list(copy.by_kind))])
        name = chance.choices(list(DAMAGE), SHARES)[0]
        data = place.path.read_bytes()
        changed = DAMAGE[name](place, data, chance)
        if changed is not None and changed != data:
            break
    whole = copy.runs.parent / "whole"
    place.path.rename(whole)
    try:
        place.path.touch(mode=0o600)
        place.path.write_bytes(changed)
        found = copy.verify(place.run_id).findings
    finally:
        whole.replace(place.path)
    file = str(place.path.relative_to(copy.runs / place.run_id))
    told = f"number {number}: {name} in {place.run_id}/{file}"
    assert any(each.file == file for each in found), f"{told} was not found, but {found[:2]}"
    return name, kind_of(place)


def look_under_load(looks: int) -> int:
    """How often a home was verified, by its daemon and by a process beside it, while runs came, wrote, ended, went."""
    looked = 0
    with contextlib.closing(Home(CONFIG)) as home, ThreadPoolExecutor(CHURN) as pool:
        home.start()
        http = Http(home)
        stop = home.work / "stop"
        writers = [http.spawn(f"until [ -e '{stop}' ]; do seq 1 300; sleep 0.1; done") for _ in range(10)]

        def churn(number: int) -> None:
            while not stop.exists():
                command = f"seq 1 2000; sleep 0.{number}; exit 1"
                told = http.call("shell", {"command": command, "session_id": f"load{number}"})
                assert told["ok"] or (told["error"], told["reason"]) == ("gone", "pruned"), told

        busy = [pool.submit(churn, n) for n in range(CHURN)]
        try:
            while looked < looks:
                by_daemon: list[Any] = http.ok("runs.verify")["findings"]
                (beside,) = json_lines(home.limpet("verify", "--json").stdout)
                assert (by_daemon, beside["findings"]) == ([], []), (by_daemon[:2], beside["findings"][:2])
                looked += 2
                http.ok("runs.prune", {"keep_bytes": KEEP_BYTES})
        finally:
            stop.touch()
        for work in busy:
            work.result(60)
        for run_id in writers:
            http.finish(run_id)
    return looked


def prove(pieces_of_damage: int, looks: int = LOOKS, runs: int = SORTS_OF_RUNS, seed: int = 1) -> str:
    """So many pieces of damage; an AssertionError names the first that was not found, or the first false alarm."""
    chance = random.Random(seed)
    planted: Counter[tuple[str, str]] = Counter()
    looked = look_under_load(looks)
    with contextlib.closing(Home(CONFIG)) as home, tempfile.TemporaryDirectory(dir=_in_memory()) as place:
        home.start()
        sorts = make_sorts(home, runs)
        assert home.limpet("stop").returncode == 0
        shutil.copytree(home.path, Path(place) / "h", ignore=shutil.ignore_patterns("*.sock", "*.lock"))
        copy = Copy(Path(place) / "h", sorts)
        sound = copy.verify()
        assert sound.sound, sound.findings[:3]
        for number in range(pieces_of_damage):
            planted[plant(copy, number, chance)] += 1
        assert copy.verify().sound
    files = len(copy.places)
    told = f"{planted.total()} pieces of damage, one at a time, in {files} files of {len(sorts.made)} runs: found"
    return "\n".join([told, *table(planted), f"verified {looked} times under load: 0 false alarms"])


def table(planted: Counter[tuple[str, str]]) -> list[str]:
    kinds = sorted({kind for _, kind in planted})
    head = f"{'':<30}" + "".join(f"{kind:>20}" for kind in kinds)
    return [head, *(f"{name:<30}" + "".join(f"{planted[name, kind]:>20}" for kind in kinds) for name in DAMAGE)]


def _in_memory() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
