"""The gateway: its hello, requests answered as everywhere, events that can be narrowed (2.6, 0.2)."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed

from .every_operation import operations
from .gateway import Gateway
from .home import Answer, Home
from .surface import Http

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "operations.md"
EXEC = {"exec.started", "exec.output", "exec.completed"}
SEEN = "codex() { echo out; }; codex"


@pytest.mark.requirement("2.6", "0.2")
def test_the_first_frame_is_hello(house: Home) -> None:
    with Gateway(house) as gateway:
        hello = gateway.hello
    assert (hello["type"], hello["protocol"]) == ("hello", 1)
    assert set(hello["events"]) >= EXEC
    assert set(hello["methods"]) >= {*operations(REFERENCE.read_text("utf-8")), "subscribe"}


@pytest.mark.requirement("2.6", "9.events")
def test_answers_find_their_requests_whatever_takes_long(house: Home, http: Http) -> None:
    with Gateway(house) as gateway:
        run_id = http.spawn("read x", stdin="open")
        waiting = gateway.ask("runs.wait", {"run_ids": [run_id], "timeout_ms": 60_000}, "a wait")
        quick = gateway.ask("shell", {"command": "echo quick"}, "a call")
        assert gateway.answer(quick)["payload"]["stdout"] == "quick\n"
        failed = gateway.answer(gateway.ask("runs.get", {"run_id": "nosuchrun"}))
        assert (failed["ok"], failed["error"]["ok"], failed["error"]["error"]) == (False, False, "not_found")
        late = gateway.call("runs.wait", {"run_ids": [run_id], "timeout_ms": 20})
        assert (late["ok"], late["error"]) == (False, "timeout")
        gateway.call("runs.write", {"run_id": run_id, "text": "x\n"})
        assert gateway.answer(waiting)["payload"]["ok"] is True


@pytest.mark.requirement("2.6", "0.3")
@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        "1",
        '"req"',
        "{}",
        '{"type":"req"}',
        '{"type":"req","id":1}',
        '{"type":"req","id":1,"method":5}',
        '{"type":"req","id":1,"method":"shell","params":[]}',
        '{"type":"req","id":1,"method":"shell","params":{"command":"true","nosuch":1}}',
        '{"type":"req","id":1,"method":"no.such_method","params":{}}',
        '{"type":"req","id":1,"method":"subscribe","params":{"events":"exec.*"}}',
        '{"type":"req","id":1,"method":"subscribe","params":{"events":[5]}}',
        '{"type":"req","id":1,"method":"subscribe","params":{"nosuch":[]}}',
        '{"type":"nosuch","id":1}',
        '{"type":"req","id":1,"method":"shell","params":{"command":NaN}}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:70],
)
def test_a_bad_frame_is_told_and_nothing_else_suffers(house: Home, text: str) -> None:
    """It is answered as a failure, or the connection ends with a code; another client does not notice."""
    with Gateway(house) as other:
        with Gateway(house) as gateway:
            gateway.connection.send(text)
            try:
                frame = gateway.frame()
                while frame["type"] == "event":
                    frame = gateway.frame()
                assert frame["type"] == "res", frame
                assert frame["ok"] is False, frame
                assert frame["error"]["error"] in ("invalid_argument", "not_found", "too_large"), frame
                assert frame["error"]["message"], frame
            except ConnectionClosed as closed:
                assert closed.rcvd is not None  # noqa: PT017
                assert closed.rcvd.code in (1002, 1003, 1007, 1008, 1009), closed  # noqa: PT017
        assert other.call("shell", {"command": "echo alive"})["stdout"] == "alive\n"


@pytest.mark.requirement("2.6")
def test_a_binary_frame_is_refused(house: Home) -> None:
    with Gateway(house) as gateway:
        gateway.connection.send(b'{"type":"req","id":1,"method":"shell","params":{"command":"true"}}')
        try:
            assert gateway.frame()["ok"] is False
        except ConnectionClosed as closed:
            assert closed.rcvd is not None  # noqa: PT017
            assert closed.rcvd.code in (1002, 1003, 1008), closed  # noqa: PT017


@pytest.mark.requirement("2.6", "9.events")
def test_a_client_hears_everything_until_it_narrows(house: Home, http: Http) -> None:
    with Gateway(house) as every, Gateway(house) as ends, Gateway(house) as one, Gateway(house) as none:
        assert ends.call("subscribe", {"events": ["exec.comp*"]})["ok"] is True
        assert one.call("subscribe", {"events": ["exec.*"], "session": "gate-one"})["ok"] is True
        assert none.call("subscribe", {"events": []})["ok"] is True
        first = http.ok("shell", {"command": SEEN, "session_id": "gate-one"})["run_id"]
        second = http.ok("shell", {"command": SEEN, "session_id": "gate-two"})["run_id"]
        for run_id in (first, second):
            assert [event["event"] for event in every.of(run_id)] == ["exec.started", "exec.output", "exec.completed"]
            assert [event["event"] for event in ends.of(run_id)] == ["exec.completed"]
        assert [event["event"] for event in one.of(first)] == ["exec.started", "exec.output", "exec.completed"]
        third = http.ok("shell", {"command": SEEN, "session_id": "gate-one"})["run_id"]
        one.of(third)
        assert {event["payload"]["execId"] for event in one.events} == {first, third}
        none.call("daemon.status")
        assert none.events == []
        for gateway in (every, ends, one):
            numbers = [event["seq"] for event in gateway.events]
            assert numbers == sorted(set(numbers))


@pytest.mark.requirement("2.6")
def test_a_client_that_goes_away_leaves_its_runs(house: Home, http: Http) -> None:
    with Gateway(house) as gateway:
        run_id = gateway.call("shell", {"action": "spawn", "command": "read x; echo $x", "stdin": "open"})["run_id"]
        gateway.ask("runs.wait", {"run_ids": [run_id], "timeout_ms": 60_000})
    http.ok("runs.write", {"run_id": run_id, "text": "on\n"})
    assert http.finish(run_id)["status"] == "completed"


@pytest.mark.requirement("2.6", "0.9")
def test_the_same_key_from_many_connections_starts_once(house: Home, http: Http, tmp_path: Path) -> None:
    params: Answer = {"command": f"echo x >>'{tmp_path}/ran'", "key": "gate-once"}

    def call(_: int) -> Answer:
        with Gateway(house) as gateway:
            return gateway.call("shell", params)

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(call, range(8)))
    assert {answer["run_id"] for answer in answers} == {answers[0]["run_id"]}
    assert (tmp_path / "ran").read_text() == "x\n"
    assert http.ok("shell", params)["run_id"] == answers[0]["run_id"]


@pytest.mark.requirement("2.6")
def test_a_daemon_that_stops_says_goodbye(new_home: Callable[..., Home]) -> None:
    home = new_home()
    home.start()
    with Gateway(home) as gateway:
        gateway.ask("runs.wait", {"run_ids": [Http(home).spawn("sleep 1000")], "timeout_ms": 60_000})
        home.limpet("stop", "--kill-runs")
        with pytest.raises(ConnectionClosed) as closed:
            gateway.until(lambda _: False)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code in (1000, 1001, 1012)


@pytest.mark.requirement("2.6", "9.events")
def test_a_restart_repeats_no_event(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon."""
    home = new_home()
    home.start()
    with Gateway(home) as gateway:
        over = Http(home).ok("shell", {"command": SEEN})["run_id"]
        gateway.of(over)
        live = Http(home).spawn("codex() { echo up; read x; echo got; }; codex", stdin="open")
        gateway.until(lambda event: event["payload"].get("execId") == live and event["event"] == "exec.output")
    home.kill_daemon()
    home.start()
    with Gateway(home) as gateway:
        Http(home).ok("runs.write", {"run_id": live, "text": "x\n"})
        events = gateway.of(live)
        assert [event["event"] for event in events] == ["exec.output", "exec.completed"]
        assert events[0]["payload"]["output"] == "got\n"
        assert {event["payload"]["execId"] for event in gateway.events} == {live}
        json.dumps(events)
