"""Events over the gateway, from outside: what is told, to whom, and that nothing is told twice (2.1-2.6)."""

import os
from collections.abc import Callable

import pytest

from .home import Answer, Home, until
from .listening import Listener
from .surface import Http

NewHome = Callable[..., Home]
FAST = "[hooks.exec]\ncommandWhitelist = ['printer']\noutputThrottleMs = 20\n"


def program(home: Home, text: str) -> str:
    path = home.work / "printer"
    path.write_text(f"#!/bin/sh\n{text}")
    path.chmod(0o755)
    return str(path)


@pytest.mark.requirement("2.6", "0.2")
def test_the_first_frame_says_hello(house: Home) -> None:
    with Listener(house) as listener:
        assert listener.hello["type"] == "hello"
        assert listener.hello["protocol"] == 1
        assert set(listener.hello["events"]) == {"exec.started", "exec.output", "exec.completed"}
        assert {"shell", "runs.get", "pty.run", "daemon.status", "subscribe"} <= set(listener.hello["methods"])


@pytest.mark.requirement("2.6", "2.1", "2.2", "9.events")
def test_before_it_subscribes_a_client_hears_everything(new_home: NewHome) -> None:
    home = new_home(FAST)
    home.start()
    command = program(home, "echo hi; exit 3")
    with Listener(home) as listener:
        asked = {"command": f"cd / && {command}", "action": "spawn", "context": {"runId": "R", "sessionKey": "K"}}
        run_id = listener.call("shell", asked)["run_id"]
        frames = listener.to_the_end(run_id)
    assert [frame["event"] for frame in frames] == ["exec.started", "exec.output", "exec.completed"]
    assert [frame["seq"] for frame in frames] == [1, 2, 3]
    for frame in frames:
        assert frame.keys() == {"type", "event", "payload", "seq"}
        payload = frame["payload"]
        assert (payload["execId"], payload["commandName"], payload["runId"]) == (run_id, "printer", "R")
    assert frames[-1]["payload"]["exitCode"] == 3


@pytest.mark.requirement("2.6", "9.events")
def test_a_subscription_narrows_by_name_and_by_session(new_home: NewHome) -> None:
    home = new_home(FAST)
    home.start()
    command = program(home, "echo hi")
    with Listener(home, ["exec.c*"]) as ends, Listener(home, ["exec.*"], session="mine") as mine:
        assert ends.subscribed["events"] == ["exec.completed"]
        http = Http(home)
        other = http.spawn(command, session_id="other")
        assert [frame["event"] for frame in ends.to_the_end(other)] == ["exec.completed"]
        by_key = http.spawn(command, context={"sessionKey": "mine"})
        assert {frame["payload"]["execId"] for frame in mine.to_the_end(by_key)} == {by_key}
        by_session = http.spawn(command, session_id="mine")
        assert {frame["payload"]["execId"] for frame in mine.to_the_end(by_session)} == {by_session}
        assert [frame["event"] for frame in ends.to_the_end(by_session)] == ["exec.completed"] * 2
        assert ends.call("subscribe", {"events": ["nothing.*"]})["events"] == []
        for wrong in ({"events": "exec.*"}, {"events": [7]}, {"session": ""}, {"event": ["x"]}, {"after": 1 << 40}):
            assert ends.call("subscribe", wrong)["error"] == "invalid_argument", wrong


@pytest.mark.requirement("2.1", "9.events", "2.6", "F01")
def test_a_daemon_that_was_killed_is_followed_by_one_that_repeats_nothing(new_home: NewHome) -> None:
    """Injector: SIGKILL to the daemon while the program goes on, and once more when all was told."""
    home = new_home(FAST)
    home.start()
    gate = home.work / "gate"
    os.mkfifo(gate)
    command = program(home, f"echo one; read x <{gate}; echo two; exit 4")
    with Listener(home) as listener:
        run_id = listener.call("shell", {"command": command, "action": "spawn"})["run_id"]
        before = listener.until(lambda frame: frame["event"] == "exec.output")
    home.kill_daemon()
    gate.write_text("go\n")
    journal = home.path / "runs" / run_id / "1" / "keeper.journal"
    until(lambda: b'"ended"' in journal.read_bytes(), "the run to end without a daemon")
    home.start()
    with Listener(home, after=before[-1]["seq"]) as listener:
        rest = listener.to_the_end(run_id)
        assert [(frame["event"], frame["payload"]["seq"]) for frame in rest] == [
            ("exec.output", 3),
            ("exec.completed", 4),
        ]
        assert [frame["seq"] for frame in rest] == [3, 4]
        assert (rest[0]["payload"]["output"], rest[0]["payload"]["offset"]) == ("two\n", 4)
        assert rest[1]["payload"]["exitCode"] == 4
    home.kill_daemon()
    home.start()
    with Listener(home, after=0) as listener:
        assert (listener.subscribed["seq"], listener.subscribed["missed"]) == (4, 4)
        assert listener.call("exec_events.recent", {"after": 4})["events"] == []
        following = listener.call("shell", {"command": command, "action": "spawn"})
        gate.write_text("go\n")
        assert {frame["payload"]["execId"] for frame in listener.to_the_end(following["run_id"])} == {
            following["run_id"]
        }


@pytest.mark.requirement("2.1", "9.events")
def test_over_many_kills_no_event_comes_twice(new_home: NewHome) -> None:
    """Injector: SIGKILL to the daemon just when an event of the running program has come, five times."""
    home = new_home(FAST)
    home.start()
    gate = home.work / "gate"
    os.mkfifo(gate)
    command = program(home, f"i=0; while [ ! -e {home.work}/enough ]; do echo line $i; i=$((i+1)); sleep 0.01; done")
    run_id = Http(home).spawn(command)
    seen: list[Answer] = []
    for kills_left in range(5, -1, -1):
        with Listener(home, after=seen[-1]["seq"] if seen else 0) as listener:
            if not kills_left:
                (home.work / "enough").touch()
                seen += listener.to_the_end(run_id)
                break
            known = len(seen)
            while len(seen) < known + 3:
                seen.append(listener.next())
            home.kill_daemon()
        home.start()
    numbers = [frame["payload"]["seq"] for frame in seen]
    assert numbers == sorted(set(numbers)), seen
    assert [frame["seq"] for frame in seen] == sorted({frame["seq"] for frame in seen})
    events = [frame["event"] for frame in seen]
    assert (events[0], events[-1]) == ("exec.started", "exec.completed")
    assert (events.count("exec.started"), events.count("exec.completed")) == (1, 1)
    place = 0
    for payload in (frame["payload"] for frame in seen if frame["event"] == "exec.output"):
        assert payload["offset"] >= place
        place = payload["offset"] + payload["bytes"]


@pytest.mark.requirement("2.6", "0.7")
def test_who_comes_back_gets_what_is_kept_and_is_told_what_is_not(new_home: NewHome) -> None:
    home = new_home(FAST)
    home.start()
    command = program(home, "echo hi")
    http = Http(home)
    with Listener(home) as listener:
        run_id = http.spawn(command)
        first = listener.to_the_end(run_id)
    away = http.spawn(command)
    http.finish(away)
    with Listener(home, after=first[-1]["seq"]) as listener:
        assert listener.subscribed["missed"] == 0
        again = listener.to_the_end(away)
    assert [frame["event"] for frame in again] == ["exec.started", "exec.output", "exec.completed"]
    assert [frame["seq"] for frame in again] == [4, 5, 6]
    assert http.ok("exec_events.recent", {"after": 3})["events"] == [
        {name: frame[name] for name in ("event", "payload", "seq")} for frame in again
    ]


@pytest.mark.requirement("2.6")
def test_a_stop_answers_what_is_under_way_and_says_that_it_ends(new_home: NewHome) -> None:
    home = new_home(FAST)
    home.start()
    gate = home.work / "gate"
    os.mkfifo(gate)
    with Listener(home) as waiting, Listener(home) as other:
        run_id = other.call("shell", {"command": f"read x <{gate}", "action": "spawn"})["run_id"]
        waiting.socket.send(
            f'{{"type":"req","id":"w","method":"runs.wait","params":{{"run_ids":["{run_id}"],"for":[{{"exit":true}}]}}}}'
        )
        other.call("runs.get", {"run_id": run_id})
        home.limpet("stop")
        answer = waiting.next()
        assert (answer["id"], answer["ok"], answer["error"]["error"]) == ("w", False, "unavailable")
        with pytest.raises(Exception, match="1012"):
            waiting.next()
