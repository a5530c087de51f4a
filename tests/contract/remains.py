"""What a run leaves on disk and among processes: its keepers, its journals record by record, a reboot of all of it."""

import contextlib
import json
import os
import signal
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

from .home import Answer, Home, running, until


def attempt_directory(home: Home, run_id: str, attempt: int = 1) -> Path:
    """Where a run's keeper has its files; each attempt has a keeper of its own."""
    return home.path / "runs" / run_id / str(attempt)


def records(journal: Path) -> list[Answer]:
    """The whole records of a journal up to the first whose CRC does not hold, by docs/formats/keeper.md."""
    found: list[Answer] = []
    chain = 0
    for line in journal.read_bytes().split(b"\n")[:-1]:
        version, _, rest = line.partition(b" ")
        crc, _, body = rest.partition(b" ")
        chain = zlib.crc32(body, chain)
        if version != b"1" or crc != b"%08x" % chain:
            break
        found.append(json.loads(body))
    return found


def rewrite(journal: Path, change: Callable[[list[Answer]], None]) -> None:
    """Injector: other facts in a journal, under checksums that hold."""
    facts = records(journal)
    change(facts)
    chain = 0
    lines: list[bytes] = []
    for fact in facts:
        body = json.dumps(fact, separators=(",", ":")).encode()
        chain = zlib.crc32(body, chain)
        lines.append(b"1 %08x %s\n" % (chain, body))
    journal.write_bytes(b"".join(lines))


def fact_offset(journal: Path, name: str) -> tuple[int, int]:
    """Where the first record of that fact begins, and its number."""
    offset = 0
    for number, line in enumerate(journal.read_bytes().splitlines(keepends=True), 1):
        if f'"fact":"{name}"'.encode() in line:
            return offset, number
        offset += len(line)
    raise AssertionError(f"{journal} has no record {name}")


def keeper_pid(home: Home, run_id: str, attempt: int = 1) -> int:
    prepared = records(attempt_directory(home, run_id, attempt) / "keeper.journal")[0]
    assert prepared["fact"] == "prepared", prepared
    pid = prepared["keeper"]["pid"]
    assert isinstance(pid, int)
    return pid


def is_keeper(pid: int, directory: Path) -> bool:
    """Does this process hold the journal of that directory open? (A number alone may be anybody's by now.)"""
    with contextlib.suppress(OSError):
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                if link.readlink() == directory / "keeper.journal":
                    return running(pid)
    return False


def kill_keeper(home: Home, run_id: str, attempt: int = 1) -> float:
    """Injector: SIGKILL to the keeper of a run; the answer is when, on the monotonic clock."""
    pid = keeper_pid(home, run_id, attempt)
    assert is_keeper(pid, attempt_directory(home, run_id, attempt)), f"no keeper of {run_id} lives"
    at = time.monotonic()
    os.kill(pid, signal.SIGKILL)
    until(lambda: not running(pid), f"the keeper {pid} to be gone")
    return at


def live_keepers(home: Home) -> list[int]:
    """The keepers of a home's runs that live, of whatever attempt."""
    found: list[int] = []
    for journal in (home.path / "runs").glob("*/*/keeper.journal"):
        facts = records(journal)
        if facts and is_keeper(pid := facts[0]["keeper"]["pid"], journal.parent):
            found.append(pid)
    return found


def end_all(home: Home) -> None:
    """Injector: SIGKILL to the keepers first, who so witness nothing, then to all that they kept."""
    keepers = live_keepers(home)
    for pid in keepers:
        os.kill(pid, signal.SIGKILL)
    until(lambda: not any(map(running, keepers)), "the keepers to be gone")

    def emptied() -> bool:
        left = home.processes()
        for pid in left:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not left

    until(emptied, "every process of the home to be gone")


def reboot(home: Home) -> None:
    """Injector: SIGKILL to the daemon, then to the keepers, then to every process of the runs; no daemon is started."""
    home.kill_daemon()
    end_all(home)


def seal(home: Home, run_ids: Sequence[str], attempt: int = 1) -> None:
    """Wait until the keepers of ended runs have recorded all that they ever will, and are gone."""

    def sealed() -> bool:
        directories = [attempt_directory(home, run_id, attempt) for run_id in run_ids]
        return all(records(directory / "keeper.journal")[-1]["fact"] == "sealed" for directory in directories)

    until(sealed, "the runs to be sealed")


def flip(file: Path, offset: int) -> None:
    """Injector: one bit of a file turned over."""
    with file.open("r+b") as stream:
        stream.seek(offset)
        byte = stream.read(1)
        assert byte, f"{file} has no byte at {offset}"
        stream.seek(offset)
        stream.write(bytes([byte[0] ^ 0x04]))


def drop_database(home: Home) -> None:
    """Injector: the database and its companions deleted, while no daemon runs."""
    files = list((home.path / "memory").glob("sessions.db*"))
    assert files, "there was no database"
    for file in files:
        file.unlink()


def contents(home: Home) -> dict[str, bytes]:
    """Every file of the runs and of the database, but for its shared-memory index, which readers share."""
    files = [file for name in ("runs", "memory") for file in (home.path / name).rglob("*") if file.is_file()]
    return {str(file.relative_to(home.path)): file.read_bytes() for file in files if not file.name.endswith("-shm")}


def holding(folder: Path, needle: str) -> list[Path]:
    """The files under a folder that have the text in them."""
    found: list[Path] = []
    for path in folder.rglob("*"):
        try:
            if path.is_file() and needle.encode() in path.read_bytes():
                found.append(path)
        except FileNotFoundError:
            continue  # ended meanwhile
    return found
