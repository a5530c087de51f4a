"""S3a and S3b: much output, through pipes and through a pty, until every byte of it can be read again."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.build import file_sha256, limit_program, produced_sha256
from bench.daemons import Caller, Daemon, answer
from bench.keepers import Nursery
from bench.measure import Facts, Row, Series, Setting, interleave
from bench.process_cost import cpu_s, peak_rss_kib, switches

MIB = 1 << 20
TERMINAL = {"rows": 24, "cols": 80}


@dataclass
class Copying:
    """One size of output, on pipes or on a pty: the C loop and the keeper, one run each."""

    setting: Setting
    nursery: Nursery | None
    size_bytes: int
    pty: bool

    def __post_init__(self) -> None:
        self.limit_cpu_s: Series = []
        self.keeper_cpu_s: Series = []
        self.keeper_facts: list[Facts] = []
        self.expected = produced_sha256(self.size_bytes)

    def warm(self) -> None:
        """Writes and removes a file of that size just before each side.

        A virtual machine gives memory that is long free back to its host: having it again costs a write up to 10x.
        """
        piece = bytes(MIB)
        with tempfile.TemporaryFile(dir=self.setting.scratch) as file:
            for _ in range(self.size_bytes // MIB + 64):
                file.write(piece)

    def limit(self) -> float:
        """MB/s of the C loop."""
        self.warm()
        target = self.setting.scratch / "copied"
        program = limit_program("copy_pty" if self.pty else "copy_pipe")
        command = [program, str(target), limit_program("produce"), str(self.size_bytes)]
        told: Facts = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        if told["status"] or (not self.pty and told["bytes"] != self.size_bytes):
            raise RuntimeError(f"the limit lost bytes: {told}")
        target.unlink()
        self.limit_cpu_s.append(told["cpu_s"])
        return self.size_bytes / told["seconds"] / 1e6

    def keeper(self) -> float:
        """MB/s of one keeper, from the start frame to the wakeup that tells `ended`; the hash is taken after it."""
        assert self.nursery is not None
        keeper = self.nursery.prepare()
        self.warm()
        stream = "pty" if self.pty else "stdout"
        peak_before_kib = peak_rss_kib(keeper.pid)
        cpu_before_s, switches_before = cpu_s(keeper.pid), switches(keeper.pid)
        began = time.perf_counter()
        fields = {"pty": TERMINAL} if self.pty else {}
        keeper.start(limit_program("produce"), str(self.size_bytes), **fields)
        ended = keeper.follow("ended")
        took_s = time.perf_counter() - began
        used_s = cpu_s(keeper.pid) - cpu_before_s  # before it seals: the CRC is no part of either side
        facts: Facts = {
            "cpu_s": used_s,
            "waits": switches(keeper.pid) - switches_before,
            "peak_rss_before_kib": peak_before_kib,
            "peak_rss_kib": peak_rss_kib(keeper.pid),
            "journal_records": len(keeper.facts),
        }
        told = time.perf_counter()
        sealed = keeper.follow("sealed")
        facts["ended_to_sealed_ms"] = round((time.perf_counter() - told) * 1000, 3)
        spool = keeper.spool(stream)
        if ended["streams"][stream]["end"] != self.size_bytes or sealed["streams"][stream]["hole"]:
            raise RuntimeError(f"the keeper lost bytes: {ended}, {sealed}")
        if file_sha256(spool) != self.expected:
            raise RuntimeError(f"{spool} differs from what was written")
        keeper.end()
        spool.unlink()
        self.keeper_cpu_s.append(used_s)
        self.keeper_facts.append(facts)
        return self.size_bytes / took_s / 1e6


def _rows(name: str, copying: Copying, rounds: int, at_least: float, cpu_at_most: float | None) -> list[Row]:
    limit, keeper = interleave(rounds, copying.limit, copying.keeper)
    size = f"{copying.size_bytes // MIB} MiB through {'a pty' if copying.pty else 'pipes'}"
    grown = [float(facts["peak_rss_kib"] - facts["peak_rss_before_kib"]) for facts in copying.keeper_facts]
    best = {"best_ratio": round(max(keeper) / max(limit), 3)}
    return [
        Row(name, f"{size}, one keeper", "MB/s", keeper, limit, at_least=at_least, facts=best),
        Row(name, f"{size}, CPU of the keeper", "s", copying.keeper_cpu_s, copying.limit_cpu_s, at_most=cpu_at_most),
        Row(name, f"{size}, growth of the keeper's peak RSS", "KiB", grown, facts={"rounds": copying.keeper_facts}),
    ]


def through_pipes(setting: Setting) -> list[Row]:
    size_bytes = 256 * MIB if setting.quick else 1024 * MIB
    with Nursery(setting.directory("pipes")) as nursery:
        return _rows("S3a", Copying(setting, nursery, size_bytes, pty=False), setting.rounds(7, 3), 0.75, None)


def through_a_pty(setting: Setting) -> list[Row]:
    size_bytes = 32 * MIB if setting.quick else 128 * MIB
    with Nursery(setting.directory("pty")) as nursery:
        return _rows("S3b", Copying(setting, nursery, size_bytes, pty=True), setting.rounds(5, 3), 0.85, 1.5)


async def _spawned(setting: Setting, daemon: Daemon, size_bytes: int) -> list[Row]:
    command = f"{limit_program('produce')} {size_bytes}"
    copying = Copying(setting, None, size_bytes, pty=False)
    limit: Series = []
    took: Series = []
    daemon_cpu_s: Series = []
    async with daemon.client() as client:
        for _ in range(setting.rounds(5, 3)):
            limit.append(copying.limit())
            copying.warm()
            cpu_before_s = cpu_s(daemon.pid)
            began = time.perf_counter()
            run_id = (await answer(client, "shell", action="spawn", command=command))["run_id"]
            await answer(client, "runs.wait", run_ids=[run_id], **{"for": [{"exit": True}]}, timeout_ms=120_000)
            took.append(size_bytes / (time.perf_counter() - began) / 1e6)
            daemon_cpu_s.append(cpu_s(daemon.pid) - cpu_before_s)
            spool = spool_of_run(daemon.home, run_id, "stdout")
            if file_sha256(spool) != copying.expected:
                raise RuntimeError(f"{spool} differs from what was written")
            await _last_bytes_by_client(client, run_id, spool, size_bytes)
            spool.unlink()
    size = f"{size_bytes // MIB} MiB through pipes, `shell` spawn to the answer of `runs.wait`"
    best = {"best_ratio": round(max(took) / max(limit), 3)}
    return [
        Row("S3d", size, "MB/s", took, limit, at_least=0.75, facts=best),
        Row("S3d", f"{size_bytes // MIB} MiB through pipes, CPU of the daemon", "s", daemon_cpu_s),
    ]


async def _last_bytes_by_client(client: Caller, run_id: str, spool: Path, size_bytes: int) -> None:
    """The last byte can be read by a client, and is the one of the file."""
    offset = size_bytes - 4096
    asked = {"run_id": run_id, "stream": "stdout", "offset": offset, "max_bytes": 4096, "encoding": "base64"}
    read = await answer(client, "runs.read", **asked)
    with spool.open("rb") as file:
        file.seek(offset)
        if base64.b64decode(read["data"]) != file.read():
            raise RuntimeError(f"runs.read of {run_id} at {offset} differs from the spool")


def through_the_daemon(setting: Setting) -> list[Row]:
    size_bytes = 256 * MIB if setting.quick else 1024 * MIB
    with Daemon(setting.directory("home")) as daemon:
        return asyncio.run(_spawned(setting, daemon, size_bytes))


def spool_of_run(home: Path, run_id: str, stream: str) -> Path:
    """Where a home keeps that stream of that run, whatever the layout above the run's directory is."""
    found = [path for path in home.rglob(f"{stream}.spool") if run_id in str(path)]
    if len(found) != 1:
        raise RuntimeError(f"{len(found)} spools of {run_id} under {home}")
    return found[0]
