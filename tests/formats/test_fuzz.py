"""The fuzzers notice what they are for: a broken law, a slow input, a hang; their figures are true."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fuzz import report
from fuzz.engine import HANG_S, SLOW_S, Watch, bent
from fuzz.feed import Feed, pieces
from fuzz.targets import NAMES

ROOT = Path(__file__).resolve().parents[2]


def watch(directory: Path, check: Callable[[bytes], None]) -> Watch:
    return Watch("planted", check, 1000, directory, guided=False)


def test_a_broken_law_is_kept_once_with_its_shortest_input(tmp_path: Path) -> None:
    def check(data: bytes) -> None:
        assert b"x" not in data, "an x"

    watched = watch(tmp_path, check)
    for data in (b"a", b"aaaxaaa", b"ax", b"axx"):
        watched(data)
    watched.save()
    told = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert told["executions"] == 4
    (found,) = told["findings"]
    assert (found["times"], found["bytes"], found["message"].splitlines()[0]) == (3, 2, "an x")
    assert Path(found["input"]).read_bytes() == b"ax"


def test_each_place_that_breaks_is_a_finding_of_its_own(tmp_path: Path) -> None:
    def check(data: bytes) -> None:
        assert data != b"a"
        raise KeyError(data)

    watched = watch(tmp_path, check)
    watched(b"a")
    watched(b"b")
    assert [sign.split(" at ")[0] for sign in watched.findings] == ["AssertionError", "KeyError"]


def test_a_slow_input_is_a_finding_and_a_hiccup_is_none(tmp_path: Path) -> None:
    calls: list[bytes] = []

    def check(data: bytes) -> None:
        calls.append(data)
        if data == b"slow" or (data == b"once" and calls.count(data) == 1):
            began = time.thread_time()
            while time.thread_time() - began < 2 * SLOW_S:
                pass

    watched = watch(tmp_path, check)
    for data in (b"fast", b"once", b"slow"):
        watched(data)
    assert [(found["sign"].split(" ")[0], found["bytes"]) for found in watched.findings.values()] == [("TooSlow", 4)]
    assert Path(next(iter(watched.findings.values()))["input"]).read_bytes() == b"slow"


def test_a_hang_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def check(_data: bytes) -> None:
        while True:
            pass

    monkeypatch.setattr("fuzz.engine.HANG_S", 0.2)
    assert HANG_S > 1
    watched = watch(tmp_path, check)
    watched(b"")
    assert next(iter(watched.findings)).startswith("TooSlow")


def test_choices_come_from_the_bytes_alone() -> None:
    feed = Feed(bytes([3, 1, 0, 2, 1]) + b"abc")
    assert (feed.number(2), feed.flag(), feed.number(1000), feed.piece(), feed.rest()) == (1, True, 512, b"a", b"bc")
    assert not feed
    assert (feed.number(9), feed.take(3), feed.flag()) == (0, b"", False)
    assert pieces(b"abcdef", [1, 4]) == [b"a", b"bcd", b"ef"]
    seeds = [b"one", b"two"]
    assert [bent(random.Random(7), seeds) for _ in range(9)] == [bent(random.Random(7), seeds) for _ in range(9)]


@pytest.mark.parametrize("plain", ["0", "1"])
def test_the_command_runs_each_target_and_tells_figures(tmp_path: Path, plain: str) -> None:
    """Guided where the fuzzing engine is installed, and without it too."""
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "merge", "folding", "--seconds", "2", "--corpus", str(tmp_path)],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "LIMPET_FUZZ_PLAIN": plain},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    results: list[dict[str, Any]] = json.loads((tmp_path / "results.json").read_text("utf-8"))
    assert [result["target"] for result in results] == ["merge", "folding"]
    assert all(result["executions"] > 10 for result in results)
    assert plain == "0" or not any(result["guided"] for result in results)
    assert [report.line(result) for result in results] == done.stdout.splitlines()[:2]


def test_an_unknown_target_is_refused() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "fuzz", "dreams"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert all(name in done.stderr for name in ("dreams", *NAMES))


def test_the_page_tells_what_was_counted_and_found(tmp_path: Path) -> None:
    (tmp_path / "input").write_bytes(b"abc")
    found = {
        "sign": "KeyError at x.py:1",
        "message": "'a'",
        "input": str(tmp_path / "input"),
        "bytes": 3,
        "times": 1200,
    }
    result: dict[str, Any] = {
        "target": "merge",
        "guided": True,
        "executions": 1_234_567,
        "seconds": 60.2,
        "cpu_seconds": 59.0,
        "slowest_ms": 1.5,
        "findings": [found],
    }
    page = report.page([result, result | {"target": "facts", "findings": []}], "Somewhere.")
    assert "| merge | guided | 1,234,567 | 60 | 59 | 1.5 ms | 1 |" in page
    assert "| facts | guided | 1,234,567 | 60 | 59 | 1.5 ms | 0 |" in page
    assert "2,469,134 executions in all. Somewhere." in page
    assert "- merge: KeyError at x.py:1, 1,200 times: `'a'`; 3 bytes; input (base64): `YWJj`" in page
