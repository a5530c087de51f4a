"""Runs of every sort that a home can hold, and all that is answered of them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.contract.home import Answer, Home, until
from tests.contract.items import all_items, poll
from tests.contract.remains import kill_keeper, reboot, records
from tests.contract.surface import Http

# A spool may hold so much, so that some runs have a hole.
CONFIG = "[run]\nspool_max_bytes = 120000\nkill_grace_ms = 200\n"
AT_ONCE = 8

Make = Callable[["Sorts", int], str]


@dataclass(slots=True)
class Sorts:
    """What was made: the runs that are there, those that were pruned, and every request that had a key."""

    home: Home
    made: list[str] = field(default_factory=list[str])
    pruned: list[str] = field(default_factory=list[str])
    keys: dict[str, tuple[Answer, str]] = field(default_factory=dict[str, tuple[Answer, str]])

    @property
    def http(self) -> Http:
        return Http(self.home)

    def spawn(self, command: str, **params: Any) -> str:
        return self.http.spawn(command, **params)

    def keyed(self, command: str, key: str, **params: Any) -> str:
        run_id = self.spawn(command, key=key, **params)
        self.keys[key] = ({"command": command, **params}, run_id)
        return run_id


def _killed(sorts: Sorts, number: int) -> str:
    run_id = sorts.spawn(f"echo to be killed {number}; exec sleep 1000")
    assert sorts.http.read(run_id, wait_ms=60_000)["total_bytes"]
    sorts.http.ok("runs.kill", {"run_id": run_id})
    return run_id


def _lost(sorts: Sorts, number: int) -> str:
    run_id = sorts.spawn(f"seq 1 {100 + number}; exec sleep 1000")
    assert sorts.http.read(run_id, wait_ms=60_000)["total_bytes"]
    kill_keeper(sorts.home, run_id)
    return run_id


def _written_to(sorts: Sorts, number: int) -> str:
    run_id = sorts.spawn("while read -r line; do echo got $line; done", stdin="open")
    for part in range(3):
        write: Answer = {"run_id": run_id, "text": f"{number} {part}\n", "key": f"w{part}"}
        sorts.http.ok("runs.write", write)
    sorts.http.ok("runs.write", {"run_id": run_id, "text": "", "close": True})
    return run_id


def _withdrawn(sorts: Sorts, number: int) -> str:
    before = sorts.spawn("exec sleep 1000", session_id=f"behind{number}")
    run_id = sorts.spawn("true", session_id=f"behind{number}")
    sorts.http.ok("runs.kill", {"run_id": run_id})
    sorts.http.ok("runs.kill", {"run_id": before})
    sorts.http.finish(before)
    sorts.made.append(before)
    return run_id


SORTS: tuple[Make, ...] = (
    lambda sorts, n: sorts.spawn(f"echo out {n}; echo err >&2", session_id=f"s{n % 7}", labels=[f"l{n % 3}", "all"]),
    lambda sorts, n: sorts.spawn(f"seq 1 {n}; exit {n % 250 + 1}", session_id=f"s{n % 7}", context={"runId": str(n)}),
    lambda sorts, n: sorts.keyed(f"echo keyed {n}; exit 3", f"key-{n}", labels=["keyed"]),
    lambda sorts, _: sorts.spawn("echo dying; kill -TERM $$"),
    lambda sorts, n: sorts.spawn(f"seq 1 {2000 + n}", max_output_bytes=500 + n),
    lambda sorts, n: sorts.spawn(f"printf 'a\\r\\nb{n}\\n'; stty -opost; printf 'c\\nd\\r\\n'; exit 2", pty=True),
    lambda sorts, n: sorts.spawn("true", cwd=f"/no/such/place/{n}"),
    lambda sorts, n: sorts.spawn(f"seq 1 {40_000 + n}", max_output_bytes=1000),
    lambda sorts, n: sorts.spawn(f"printf 'é🐚\\377\\0{n}'; printf 'x%.0s' {{1..3000}} >&2"),
    _killed,
    lambda sorts, _: sorts.spawn("echo slow; exec sleep 1000", timeout_secs=0.3),
    _written_to,
    _lost,
    lambda sorts, n: sorts.spawn(f"cat | tr a-z A-Z; exit {n % 5}", stdin=f"given {n}\n", session_id=f"s{n % 7}"),
    _withdrawn,
    lambda sorts, n: sorts.spawn(f"echo {n}\n: {'x' * 101_000}"),
)


def make_sorts(home: Home, count: int) -> Sorts:
    """About so many runs that are over, of every sort, some of them pruned, some started again after a reboot."""
    sorts = Sorts(home)
    prunable = [sorts.keyed(f"seq 1 {100 + n}", f"pruned-{n}") for n in range(max(2, count // 50))]
    settle(home, prunable)
    sorts.pruned = sorted(sorts.http.ok("runs.prune", {"keep_bytes": 0})["runs"])
    assert sorts.pruned == sorted(prunable)
    again = max(2, count // 50)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        turns = [pool.submit(SORTS[n % len(SORTS)], sorts, n) for n in range(count - 2 * again)]
        sorts.made += [turn.result() for turn in turns]
    for run_id in sorts.made:
        sorts.http.finish(run_id)
    sorts.made += _over_a_reboot(sorts, again)
    sorts.made.sort()
    settle(home, sorts.made)
    return sorts


def _over_a_reboot(sorts: Sorts, count: int) -> list[str]:
    """Injector: SIGKILL to daemon, keepers and commands. One half is started again, the other has lost everything."""
    flag = sorts.home.work / "second"
    command = f"echo said; if [ -e '{flag}' ]; then exit 5; fi; exec sleep 1000"
    made = [sorts.spawn(command, on_lost=("requeue", "fail")[n % 2], session_id=f"again{n}") for n in range(count)]
    for run_id in made:
        assert sorts.http.read(run_id, wait_ms=60_000)["total_bytes"]
    reboot(sorts.home)
    flag.touch()
    sorts.home.start()
    ended = [sorts.http.finish(run_id) for run_id in made]
    assert {(facts["ended_by"], facts["attempt"]) for facts in ended} == {("self", 2), ("lost", 1)}, ended
    return made


def settle(home: Home, run_ids: Sequence[str]) -> None:
    """Until all that a run's end brings about is recorded, and every byte is known to be on disk."""
    http = Http(home)

    def durable() -> bool:
        told = (http.facts(run_id) for run_id in run_ids)
        return all(
            each["ended_by"] == "lost"
            or not each["streams"]
            or each["durable_offset"] == {name: stream["bytes"] for name, stream in each["streams"].items()}
            for each in told
        )

    def sealed() -> bool:
        # A keeper that lives has a socket.
        return not any(list((home.path / "runs" / run_id).glob("*/control.sock")) for run_id in run_ids)

    until(sealed, "the keepers to be gone", 120)
    until(durable, "all output to be durable", 120)


def is_sealed(kept: Path) -> bool:
    return records(kept / "keeper.journal")[-1]["fact"] == "sealed"


def answers(sorts: Sorts) -> list[str]:
    """What every operation that reads answers of all that was made, each as text to compare."""
    http, told = sorts.http, list[Any]()

    def ask(op: str, **params: Any) -> Answer:
        answer = http.call(op, params)
        told.append([op, params, answer])
        return answer

    filters: list[Answer] = [{}, {"dialect": "shell"}, {"text": "seq"}, {"label": "keyed"}, {"label": "all"}]
    filters += [{"status": status} for status in ("completed", "failed", "killed", "timed_out", "running", "queued")]
    filters += [{"session_id": f"s{n}"} for n in range(7)]
    for each in filters:
        cursor: str | None = None
        for _ in itertools.count():
            cursor = ask("runs.list", limit=97, cursor=cursor, **each)["next_cursor"]
            if cursor is None:
                break
    for run_id in sorts.made:
        facts = ask("runs.get", run_id=run_id)
        ask("runs.wait", run_ids=[run_id], timeout_ms=0)
        told.append([poll(http, run_id), all_items(http, run_id)])
        for stream in facts["streams"]:
            told.append([all_items(http, run_id, stream=stream)])
            ask("runs.read", run_id=run_id, stream=stream, encoding="base64", max_bytes=1 << 20)
            ask("runs.read", run_id=run_id, stream=stream, view="plain", last_lines=5)
            ask("runs.read", run_id=run_id, stream=stream, offset=facts["streams"][stream]["base"], max_bytes=64)
    for run_id in sorts.pruned:
        ask("runs.get", run_id=run_id)
        ask("shell", action="poll", run_id=run_id)
    for key, (request, run_id) in sorted(sorts.keys.items()):
        again = ask("shell", action="spawn", key=key, **request)
        assert again.get("run_id") == run_id, (key, again)
    return [json.dumps(each, sort_keys=True) for each in told]
