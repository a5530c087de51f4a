"""Events of commands: which commands have them, one start and one end for each, and what they carry (2.1 to 2.3)."""

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import limpet

from .gateway import Gateway
from .home import Home
from .surface import Http, pointed_at

BASE = {"execId", "seq", "ts", "commandName", "command", "cwd"}
CONTEXT = {"runId", "toolCallId", "sessionKey"}
NAMES = ("codex", "claude", "opencode", "pi", "gog", "himalaya", "playwright", "puppeteer")


@pytest.fixture(scope="module")
def gateway(house: Home) -> Iterator[Gateway]:
    with Gateway(house) as gateway:
        yield gateway


def unheard(gateway: Gateway, http: Http, run_id: str) -> bool:
    """Did nothing come of a run that is over, before what came of one that ran later?"""
    http.finish(run_id)
    gateway.of(http.ok("shell", {"command": "codex --marker"})["run_id"])
    return not [event for event in gateway.events if event["payload"]["execId"] == run_id]


@pytest.mark.requirement("2.1", "2.2")
@pytest.mark.parametrize("name", NAMES)
def test_the_eight_have_events(gateway: Gateway, http: Http, name: str) -> None:
    run_id = http.ok("shell", {"command": f"{name} --version"})["run_id"]
    events = gateway.of(run_id)
    assert [event["event"] for event in events][:: len(events) - 1] == ["exec.started", "exec.completed"]
    assert {event["payload"]["commandName"] for event in events} == {name}


@pytest.mark.requirement("2.1")
@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("FOO=1 codex run", "codex"),
        ("FOO='a b' BAR=\"$X\" codex", "codex"),
        ("/opt/tools/bin/codex exec", "codex"),
        ("./claude", "claude"),
        ("'codex' run", "codex"),
        ('"/opt/my tools/codex" run', "codex"),
        ("co\\dex run", "codex"),
        ("cd /tmp && claude -p hi", "claude"),
        ("cd /tmp; claude -p hi", "claude"),
        ("true || claude", "claude"),
        ("echo hi | claude -p", "claude"),
        ("(cd /tmp && claude)", "claude"),
        ("{ claude; }", "claude"),
        ("if true; then claude; fi", "claude"),
        ("for x in 1 2; do claude $x; done", "claude"),
        ("x=$(claude -p hi)", "claude"),
        ("claude >/dev/null 2>&1", "claude"),
        (">/dev/null claude", "claude"),
        ("! claude", "claude"),
        ("claude & wait", "claude"),
        ("bash -c 'codex run'", "codex"),
        ("sh -c 'cd /tmp && codex run'", "codex"),
        ('bash -lc "exec codex"', "codex"),
        ("exec codex", "codex"),
        ("command codex", "codex"),
        ("sudo codex", "codex"),
        ("sudo -u nobody codex", "codex"),
        ("env FOO=1 codex", "codex"),
        ("env -i PATH=/bin codex", "codex"),
        ("/usr/bin/env codex", "codex"),
        ("time codex", "codex"),
        ("timeout 5 codex", "codex"),
        ("timeout -k 1 5s codex", "codex"),
        ("nice codex", "codex"),
        ("nice -n 5 codex", "codex"),
        ("nohup codex", "codex"),
        ("echo x | xargs codex", "codex"),
        ("echo x | xargs -n 1 -P 2 codex", "codex"),
        ("npx playwright test", "playwright"),
        ("npx playwright@1.40.0 test", "playwright"),
        ("npx -y playwright@latest test", "playwright"),
        ("npx --yes playwright test", "playwright"),
        ("pnpm playwright test", "playwright"),
        ("pnpmx playwright test", "playwright"),
        ("bunx playwright test", "playwright"),
        ("yarn playwright test", "playwright"),
        ("npm playwright", "playwright"),
        ("sudo env A=1 timeout 9 nice -n 3 bash -c 'cd / && npx playwright test'", "playwright"),
        ("true\n# a comment\ncodex run", "codex"),
        ("cat <<E | codex\nhi\nE\n", "codex"),
    ],
)
def test_a_name_is_seen_through_what_stands_before_it(gateway: Gateway, http: Http, command: str, name: str) -> None:
    # No program is found: what is asked for counts, whatever becomes of it.
    run_id = http.ok("shell", {"command": command, "env": {"PATH": "/nonexistent"}})["run_id"]
    events = gateway.of(run_id)
    assert events[0]["event"] == "exec.started"
    assert [event["event"] for event in events].count("exec.started") == 1
    assert {event["payload"]["commandName"] for event in events} == {name}


@pytest.mark.requirement("2.1", "2.7")
@pytest.mark.parametrize(
    "command",
    [
        "echo hi",
        "echo codex",
        "echo 'claude -p hi; pi'",
        "echo hi # codex",
        "cat /tmp/codex.txt",
        "ls /opt/codex/",
        "grep -c pi /dev/null",
        "codexx",
        "xcodex",
        "true --with=codex",
        "cat <<'E'\ncodex\nE\n",
        "X=codex true",
        "cd /tmp/pi",
        "printf '%s\\n' codex | cat",
    ],
)
def test_a_name_that_is_no_command_has_no_events(gateway: Gateway, http: Http, command: str) -> None:
    assert unheard(gateway, http, http.spawn(command))


@pytest.mark.requirement("2.1", "2.2", "9.events")
def test_what_the_events_carry(gateway: Gateway, http: Http) -> None:
    before_ms = time.time_ns() // 1_000_000
    context = {"runId": "agent-1", "toolCallId": "call-2", "sessionKey": "key-3"}
    command = "codex() { echo out; echo err >&2; exit 3; }; codex"
    run = http.ok("shell", {"command": command, "cwd": "/tmp", "context": context})
    events = gateway.of(run["run_id"])
    after_ms = time.time_ns() // 1_000_000
    started, outputs, completed = events[0], events[1:-1], events[-1]
    assert (started["event"], completed["event"]) == ("exec.started", "exec.completed")
    assert {event["event"] for event in outputs} == {"exec.output"}
    for event in events:
        payload = event["payload"]
        assert set(payload) >= BASE | CONTEXT, payload
        assert {name: payload[name] for name in CONTEXT} == context
        assert (payload["execId"], payload["commandName"], payload["command"]) == (run["run_id"], "codex", command)
        assert payload["cwd"] == "/tmp"
        assert before_ms <= payload["ts"] <= after_ms
    assert started["payload"]["pid"] == http.facts(run["run_id"])["pid"]
    numbers = [event["payload"]["seq"] for event in events]
    assert numbers == sorted(set(numbers))
    told = {event["payload"]["stream"]: event["payload"] for event in outputs}
    assert {stream: payload["output"] for stream, payload in told.items()} == {"stdout": "out\n", "stderr": "err\n"}
    for payload in told.values():
        assert (payload["offset"], payload["truncated"], payload["droppedBytes"]) == (0, False, 0)
    end = completed["payload"]
    assert (end["exitCode"], end["signal"], end["status"]) == (3, None, "failed")
    assert 0 <= end["durationMs"] <= after_ms - before_ms


@pytest.mark.requirement("2.1", "2.2")
def test_ends_of_all_kinds(gateway: Gateway, http: Http) -> None:
    killed = http.spawn("codex() { kill -9 $$; }; codex")
    assert [gateway.of(killed)[-1]["payload"][name] for name in ("exitCode", "signal", "status")] == [
        None,
        "SIGKILL",
        "failed",
    ]
    late = http.spawn("codex; exec sleep 1000", timeout_secs=0.2)
    assert gateway.of(late)[-1]["payload"]["status"] == "timed_out"
    ended = http.spawn("codex; exec sleep 1000")
    http.ok("runs.kill", {"run_id": ended})
    assert gateway.of(ended)[-1]["payload"]["status"] == "killed"
    unstarted = http.ok("shell", {"command": "codex", "cwd": "/no/such/folder"})["run_id"]
    alone = gateway.of(unstarted)
    assert [event["event"] for event in alone] == ["exec.completed"]
    payload = alone[0]["payload"]
    assert (payload["exitCode"], payload["status"]) == (None, "failed")
    assert "/no/such/folder" in str({name: value for name, value in payload.items() if name != "cwd"}), payload


@pytest.mark.requirement("2.1")
def test_one_end_however_often_it_is_asked_for(gateway: Gateway, http: Http) -> None:
    run_id = http.ok("shell", {"command": "codex() { echo out; }; codex"})["run_id"]
    for _ in range(5):
        http.ok("shell", {"action": "poll", "run_id": run_id})
        http.ok("runs.kill", {"run_id": run_id})
        http.ok("runs.wait", {"run_ids": [run_id]})
    gateway.of(http.ok("shell", {"command": "codex --marker"})["run_id"])
    assert [event["event"] for event in gateway.of(run_id)].count("exec.completed") == 1


@pytest.mark.requirement("0.8", "2.1")
def test_nothing_comes_after_the_end(gateway: Gateway, http: Http, tmp_path: Path) -> None:
    """Injector: a child that holds the stream and writes to it when the command is over."""
    fifo = tmp_path / "later"
    os.mkfifo(fifo)
    run_id = http.ok("shell", {"command": f"codex() {{ echo out; (read x <'{fifo}'; echo late) & }}; codex"})["run_id"]
    with fifo.open("w") as go:
        go.write("go\n")
    whole = http.read(run_id, offset=4, wait_ms=60_000)
    assert whole["data"] == "late\n"
    gateway.of(http.ok("shell", {"command": "codex --marker"})["run_id"])
    events = gateway.of(run_id)
    assert events[-1]["event"] == "exec.completed"
    said = [event["payload"]["output"] for event in events if event["event"] == "exec.output"]
    assert said == ["out\n"]


@pytest.mark.requirement("2.3")
def test_a_python_callers_context_stays_with_the_run(gateway: Gateway, house: Home) -> None:
    with pointed_at(house), limpet.connect_sync() as client:
        with limpet.exec_event_context(run_id="a", tool_call_id="b", session_key="c"):
            inside = client.call("shell", action="spawn", command="codex; read x", stdin="open")["run_id"]
        outside = client.call("shell", command="codex")["run_id"]
        client.call("runs.write", run_id=inside, text="x\n")
        client.call("runs.wait", run_ids=[inside])
    for event in gateway.of(inside):
        assert [event["payload"][name] for name in ("runId", "toolCallId", "sessionKey")] == ["a", "b", "c"]
    for event in gateway.of(outside):
        assert not [name for name in CONTEXT if event["payload"].get(name)]


@pytest.mark.requirement("0.10", "2.2")
def test_a_secret_is_not_told(gateway: Gateway, http: Http) -> None:
    secret = "s3cr3t-value-of-a-token"
    run = http.ok("shell", {"command": f"codex --token {secret}", "env": {"API_TOKEN": secret}})
    events = gateway.of(run["run_id"])
    assert secret not in str(events)


@pytest.mark.requirement("0.5", "2.2")
def test_terminals_and_conversations_have_events_too(gateway: Gateway, http: Http) -> None:
    run_id = http.ok("shell", {"action": "spawn", "command": "codex() { echo hi; }; codex", "pty": True})["run_id"]
    events = gateway.of(run_id)
    assert [event["payload"]["stream"] for event in events if event["event"] == "exec.output"] == ["pty"]
    with contextlib.suppress(TimeoutError):
        gateway.hear(0)
