"""Runs one target in this process until its time is over, and writes down what it found."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import os
import random
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

Check = Callable[[bytes], None]

SLOW_S = 0.1
HANG_S = 10.0
MOST_INPUT_BYTES = 8192
MOST_FINDINGS = 20
SAVE_EVERY_S = 10.0
RESULTS = "results.json"


class TooSlow(Exception):  # noqa: N818  (a finding, not an error of the fuzzer)
    """An input took more than `SLOW_S` of processor time, three times in a row."""


def run(name: str, seconds: float, corpus: Path) -> NoReturn:
    """Never returns: the process ends when its time is over."""
    atheris = _atheris()
    instrument = (
        atheris.instrument_imports(include=["limpet", "limpet_keeper"]) if atheris else contextlib.nullcontext()
    )
    with instrument:
        target: Any = importlib.import_module(f"fuzz.targets.{name}")
    watch = Watch(name, target.check, seconds, corpus, guided=atheris is not None)
    seeds: list[bytes] = target.seeds()
    for seed in seeds:
        watch(seed)
    if atheris is None:
        plain_random(watch, seeds)
    inputs = corpus / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    for seed in seeds:
        (inputs / hashlib.sha256(seed).hexdigest()[:16]).write_bytes(seed)
    options = [f"-max_len={MOST_INPUT_BYTES}", "-print_final_stats=0", "-verbosity=0", f"-artifact_prefix={corpus}/"]
    atheris.Setup([sys.argv[0], *options, "-timeout=120", str(inputs)], watch)
    atheris.Fuzz()
    raise AssertionError("the fuzzer came back before its time was over")


def _atheris() -> Any:
    if os.environ.get("LIMPET_FUZZ_PLAIN") == "1":
        return None
    try:
        return importlib.import_module("atheris")
    except ImportError:
        return None


class Watch:
    """Calls the target, times it, keeps each kind of finding once with its input, and stops in time."""

    def __init__(self, name: str, check: Check, seconds: float, corpus: Path, *, guided: bool) -> None:
        self.name = name
        self.check = check
        self.corpus = corpus
        self.guided = guided
        self.executions = 0
        self.slowest_s = 0.0
        self.findings: dict[str, dict[str, Any]] = {}
        self.began = time.monotonic()
        self.ends = self.began + seconds
        self.saves_at = self.began + SAVE_EVERY_S
        signal.signal(signal.SIGVTALRM, _on_hang)

    def __call__(self, data: bytes) -> None:
        self.executions += 1
        try:
            self._timed(data)
        except Exception as error:  # noqa: BLE001  (whatever escapes is the finding)
            self._note(data, error)
        now = time.monotonic()
        if now >= self.saves_at:
            self.saves_at = now + SAVE_EVERY_S
            self.save()
        if now >= self.ends:
            self.finish()

    def _timed(self, data: bytes) -> None:
        took_s = self._once(data)
        if took_s > SLOW_S:  # once may be the machine's doing, three times is the input's
            took_s = min(took_s, self._once(data), self._once(data))
            if took_s > SLOW_S:
                raise TooSlow(f"{took_s:.3f} s for {len(data)} bytes")
        self.slowest_s = max(self.slowest_s, took_s)

    def _once(self, data: bytes) -> float:
        signal.setitimer(signal.ITIMER_VIRTUAL, HANG_S)
        start = time.thread_time()
        try:
            self.check(data)
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return time.thread_time() - start

    def _note(self, data: bytes, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        where = frames[-1]
        sign = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
        known = self.findings.get(sign)
        if known is not None:
            known["times"] += 1
            if len(data) >= known["bytes"]:
                return
        elif len(self.findings) >= MOST_FINDINGS:
            return
        digest = hashlib.sha256(sign.encode()).hexdigest()[:12]
        saved = self.corpus / f"finding-{digest}"
        saved.write_bytes(data)
        times = known["times"] if known else 1
        message = f"{error}"[:300]
        self.findings[sign] = {
            "sign": sign,
            "message": message,
            "input": str(saved),
            "bytes": len(data),
            "times": times,
        }
        if known is None:
            print(f"{self.name}: {sign}: {message}", file=sys.stderr, flush=True)

    def save(self) -> None:
        """The figures so far: a process that is killed leaves at least these."""
        told = {
            "target": self.name,
            "guided": self.guided,
            "executions": self.executions,
            "seconds": round(time.monotonic() - self.began, 1),
            "cpu_seconds": round(time.process_time(), 1),
            "slowest_ms": round(self.slowest_s * 1000, 1),
            "findings": list(self.findings.values()),
        }
        written = self.corpus / "results.json.new"
        written.write_text(json.dumps(told), "utf-8")
        written.replace(self.corpus / RESULTS)

    def finish(self) -> NoReturn:
        self.save()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _on_hang(_number: int, _frame: FrameType | None) -> None:
    raise TooSlow(f"still at it after {HANG_S:.0f} s")


def plain_random(watch: Watch, seeds: list[bytes], seed: int | None = None) -> NoReturn:
    """Without coverage: seeds bent a little, two of them joined, or noise."""
    source = random.Random(seed if seed is not None else time.time_ns())
    while True:
        watch(bent(source, seeds))


def bent(source: random.Random, seeds: list[bytes]) -> bytes:
    """An input near a seed."""
    data = bytearray(
        source.choice(seeds) if seeds and source.random() < 0.9 else source.randbytes(source.randrange(200))
    )
    for _ in range(source.randrange(1, 6)):
        place = source.randrange(len(data) + 1)
        match source.randrange(5):
            case 0:
                data[place : place + 1] = source.randbytes(1)
            case 1:
                del data[place : place + source.randrange(1, 20)]
            case 2:
                data[place:place] = source.randbytes(source.randrange(1, 20))
            case 3:
                end = place + source.randrange(1, 60)
                data[place:place] = data[place:end]
            case _:
                data[place:] = source.choice(seeds)[place:] if seeds else b""
    return bytes(data[:MOST_INPUT_BYTES])
