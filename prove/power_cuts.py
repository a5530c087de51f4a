"""The power cut under a home again and again (F09, M3): what was answered is there, the rest can be read.

The home lies on an ext4 of its own. Clients start runs under keys, follow them, and hear how far their output is
durable; then the file system is shut down without its log, every process goes, and it is mounted again, as after a
boot. Runs whose end was not on disk are started again or failed, as they asked.

Where power goes nobody is told anything any more. Here processes outlive their disk by milliseconds, and a sync that is
under way while a file system is shut down can come back as if it were done: what is told from then on is counted apart.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.contract.home import LIMPET, Answer, Home, read_line, running, until
from tests.contract.surface import Http
from tests.faults.disks import MIB, PowerDisk, power_disk
from tests.faults.kept import prefix_difference, sequence

DISK_BYTES = 192 * MIB
CONFIG = "[store]\nmin_free_bytes = 1\n[run]\nsync_ms = 50\nkill_grace_ms = 200\n"
WRITERS = 20
LINES = 200_000
# How long clients are at it before a cut, in seconds, once the first starts were answered.
BETWEEN_S = (0.0, 2.5)
KEEP_BYTES = 4 * MIB

# Bash alone: a portion, then a moment; the fifo is never written to.
WRITER = "exec 8<>'{quiet}'; i=0; while (( i < {lines} )); do echo $((++i)); (( i % 40 )) || read -t 0.01 -u 8 x; done"
SHORT = "seq 1 300; exit {code}"


class BootedHome(Home):
    """A home on a disk whose power can be cut."""

    def __init__(self, disk: PowerDisk) -> None:
        super().__init__()
        self.disk = disk
        self.path = disk.at / "h"
        self.socket = self.path / "daemon.sock"
        self.env["LIMPET_HOME"] = str(self.path)
        self.configure(CONFIG)
        os.sync()
        os.mkfifo(self.base / "quiet")

    def start(self, env: Mapping[str, str] | None = None) -> Answer:
        """Serves in a namespace of its own, where the boot has an id of its own."""
        boot_id = self.base / "boot_id"
        if not boot_id.exists():
            boot_id.write_text(f"{uuid.uuid4()}\n")
        script = f"mount --bind '{boot_id}' /proc/sys/kernel/random/boot_id && exec '{LIMPET}' serve --ready-json"
        with (self.base / "serve.err").open("ab") as told:
            process = subprocess.Popen(
                ["unshare", "-m", "sh", "-c", script],
                env={**self.env, **(env or {})},
                cwd=self.base,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=told,
            )
        self._started.append(process)
        line = read_line(process, 60)
        assert line.strip(), f"serve said nothing: {(self.base / 'serve.err').read_text()[-2000:]}"
        return json.loads(line)

    def cut(self) -> None:
        """Injector: the power goes, and with it every process; then the machine boots."""
        self.disk.cut()

        def emptied() -> bool:
            left = {*self.processes(), *self.disk.users()}
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for process in self._started:
                process.poll()
            return not any(map(running, left))

        until(emptied, "every process to be gone")
        until(lambda: not self.disk.users(), "nothing to be open any more")
        self.disk.restore()
        (self.base / "boot_id").unlink()


@dataclass(slots=True)
class Told:
    """What clients were told of one run before the power went."""

    run_id: str
    key: str
    request: Answer
    durable_bytes: int = 0
    exit_code: int | None = None


@dataclass(slots=True)
class Clients:
    """Those who start runs and look at them until the power goes."""

    home: BootedHome
    name: str
    told: list[Told] = field(default_factory=list[Told])
    told_too_late: list[Told] = field(default_factory=list[Told])
    power_goes: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)
    refused: str = ""

    def start(self, number: int, request: Answer) -> Told:
        key = f"{self.name}-{number}"
        told = Told(Http(self.home).spawn(key=key, **request), key, request)
        (self.told_too_late if self.power_goes.is_set() else self.told).append(told)
        return told

    def write_on(self, number: int) -> None:
        """A run that writes on and on; what is told of it."""
        command = WRITER.format(quiet=self.home.base / "quiet", lines=LINES)
        told = self.start(number, {"command": command, "on_lost": ("requeue", "fail")[number % 2]})
        while not self.over.is_set():
            durable_bytes = Http(self.home).facts(told.run_id)["durable_offset"].get("stdout", 0)
            if not self.power_goes.is_set():
                told.durable_bytes = durable_bytes

    def come_and_go(self, number: int) -> None:
        """Short runs, one after the other."""
        for turn in range(1000):
            told = self.start(1000 * (number + 1) + turn, {"command": SHORT.format(code=turn % 100), "on_lost": "fail"})
            exit_code = Http(self.home).finish(told.run_id)["exit_code"]
            if not self.power_goes.is_set():
                told.exit_code = exit_code
            if self.over.is_set():
                return

    def work(self, for_s: float) -> None:
        """Until the power goes, after so long; everybody is cut short."""

        def until_cut(work: Any, number: int) -> None:
            try:
                work(number)
            except (OSError, http.client.HTTPException, json.JSONDecodeError, AssertionError) as error:
                # A disk that is gone makes refusals, which are the truth; before that there are none.
                self.refused = self.refused or repr(error)

        with ThreadPoolExecutor(WRITERS + 4) as pool:
            busy = [pool.submit(until_cut, self.write_on, n) for n in range(WRITERS)]
            busy += [pool.submit(until_cut, self.come_and_go, n) for n in range(4)]
            until(lambda: len(self.told) >= WRITERS or bool(self.refused), "starts to be answered")
            time.sleep(for_s)
            assert not self.refused, self.refused
            self.power_goes.set()
            self.home.cut()
            self.over.set()
            for each in busy:
                each.result(60)


def check(home: BootedHome, clients: Clients, seen: Counter[str]) -> None:
    """After the boot: what was answered is there, and whatever is there can be read."""
    http_ = Http(home)
    looked = home.path / "boot"
    until(lambda: looked.read_text().strip() == (home.base / "boot_id").read_text().strip(), "all to be looked at")
    found = http_.ok("runs.verify")["findings"]
    assert not found, found[:3]
    for told in clients.told:
        facts = http_.facts(told.run_id)
        assert Http(home).spawn(key=told.key, **told.request) == told.run_id, told
        spool = home.path / "runs" / told.run_id / "1" / "stdout.spool"
        said = spool.read_bytes() if spool.exists() else b""
        assert len(said) >= told.durable_bytes, (
            f"{told.durable_bytes} bytes were durable, {len(said)} are there: {facts}"
        )
        assert not (other := prefix_difference(said, sequence(LINES))), f"{told.run_id}: {other}"
        state = facts["ended_by"] or "goes on"
        assert state != "lost" or facts["exit_code"] is None, facts
        assert facts["attempt"] == 1 or told.request["on_lost"] == "requeue", facts
        if state == "self":
            assert told.exit_code in (None, facts["exit_code"]), (told, facts)
        seen[f"{state}, attempt {facts['attempt']}"] += 1
    seen["told too late"] += len(clients.told_too_late)
    for told in clients.told_too_late:
        seen["told too late and not there"] += not http_.call("runs.get", {"run_id": told.run_id})["ok"]
    listed = http_.ok("runs.list", {"limit": 1000})["runs"]
    odd = [run for run in listed if not run["command"]]
    assert not odd, f"runs that nobody asked for: {odd[:2]}"
    for run in listed:
        if run["status"] in ("running", "queued"):
            http_.ok("runs.kill", {"run_id": run["run_id"]})
    for run in listed:
        http_.finish(run["run_id"])
    pruned = http_.ok("runs.prune", {"keep_bytes": KEEP_BYTES})["runs"]
    seen["pruned"] += len(pruned)


def prove(cuts: int, seed: int = 1) -> str:
    """So many cuts on one disk; an AssertionError says what did not hold."""
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    durable_bytes = 0
    with contextlib.ExitStack() as stack:
        base = stack.enter_context(tempfile.TemporaryDirectory(prefix="limpet-prove-"))
        disk = stack.enter_context(power_disk(Path(base), DISK_BYTES))
        home = stack.enter_context(contextlib.closing(BootedHome(disk)))
        for number in range(cuts):
            home.start()
            clients = Clients(home, f"boot{number}")
            clients.work(chance.uniform(*BETWEEN_S))
            home.start()
            check(home, clients, seen)
            durable_bytes += sum(told.durable_bytes for told in clients.told)
            assert home.limpet("stop").returncode == 0
        until(lambda: not disk.users(), "nothing to be open any more")
    counted = ", ".join(f"{name}: {count}" for name, count in sorted(seen.items()))
    told = [
        f"{cuts} power cuts under one home, {WRITERS} writers and four chains of short runs under each",
        f"every start that was answered is there ({counted})",
        f"{durable_bytes} bytes that were called durable are there; all spools are beginnings of what was said",
        "verify finds nothing after any of them",
    ]
    return "\n".join(told)
