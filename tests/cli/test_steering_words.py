"""`limpet send`, `search` and `backlog`, from the command line on."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.contract.home import Home, json_lines


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    made = Home()
    made.start()
    yield made
    made.close()


def run_id_of(home: Home, *words: str) -> str:
    return home.limpet("run", "-d", *words).stdout.decode().strip()


@pytest.mark.requirement("6.3", "1.7")
def test_send(home: Home) -> None:
    run_id = run_id_of(home, "--pty", "read a; stty -echo; echo got $a; read b; echo ${#b}")
    assert home.limpet("send", run_id, "Ada L", "Enter").returncode == 0
    answer = home.limpet("call", "runs.wait", json.dumps({"run_ids": [run_id], "timeout_ms": 1}))
    assert answer.returncode == 124
    sent = home.limpet("send", "--json", "--secret", "--text", "-", run_id, "Enter", stdin=b"hunter2")
    (said,) = json_lines(sent.stdout)
    assert (said["ok"], said["run_id"], said["written"]) == (True, run_id, 8)
    assert home.limpet("wait", run_id).returncode == 0
    assert home.limpet("logs", run_id).stdout.split()[-3:] == [b"Ada", b"L", b"7"]
    refused = home.limpet("send", run_id, "Enter")
    assert (refused.returncode, refused.stdout) == (1, b"")
    assert b"not running" in refused.stderr


@pytest.mark.requirement("6.3", "6.7", "0.11")
def test_search(home: Home) -> None:
    run_id = run_id_of(home, "--session", "found", "printf 'a \\033]0;title\\007 thistle\\n'; echo nothing")
    home.limpet("wait", run_id)
    shown = home.limpet("search", "thistle", "--session", "found")
    assert shown.stdout.decode() == f"{run_id} stdout@13: a ^[]0;title^G thistle\n"
    (hit,) = json_lines(home.limpet("search", "--regex", "thi.tle$", "--run", run_id, "--json").stdout)
    assert hit == {
        "run_id": run_id,
        "stream": "stdout",
        "span": {"start": 13, "end": 20},
        "line": "a \x1b]0;title\x07 thistle",
    }
    assert home.limpet("search", "thistle", "--session", "other").stdout == b""
    several = home.limpet("search", "i", "--run", run_id, "-n", "2")
    assert len(several.stdout.splitlines()) == 2
    assert b"raise --limit" in several.stderr
    assert home.limpet("search", "--regex", "(").returncode == 1


@pytest.mark.requirement("6.3", "1.9")
def test_backlog(home: Home) -> None:
    asked = {"action": "spawn", "command": "echo now ready", "session_id": "told"}
    asked |= {"watch": [{"regex": "ready$", "event": "up", "match_type": "line"}]}
    home.limpet("call", "shell", json.dumps(asked))
    taken = home.limpet("backlog", "take", "told", "--wait", "30")
    assert b" up: now ready (run " in taken.stdout
    assert taken.stdout.endswith(b": echo now ready)\n")
    lease = taken.stderr.split()[-1].decode()
    acked = home.limpet("backlog", "ack", lease)
    assert (acked.returncode, acked.stdout) == (0, b"acked 1\n")
    (empty,) = json_lines(home.limpet("backlog", "take", "told", "--json").stdout)
    assert empty == {"ok": True, "messages": [], "lease": None, "dropped": 0, "pruned": 0}
    assert home.limpet("backlog", "ack", "0" * 32).returncode == 1
    assert home.limpet("backlog", "give", "told").returncode == 2
