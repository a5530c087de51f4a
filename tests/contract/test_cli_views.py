"""The commands that look at runs and steer them (ps, logs, wait, kill, call): help, JSON, exit codes (6.3)."""

import json
import time

import pytest

from .fifos import Gate, Lifeline
from .home import Home, json_lines, read_line
from .surface import Http

COMMANDS = ["run", "ps", "logs", "wait", "kill", "call", "serve", "status", "stop", "restart"]


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example(house: Home, command: str) -> None:
    done = house.limpet(command, "--help")
    assert (done.returncode, done.stderr) == (0, b""), done
    text = done.stdout.decode()
    after = text[text.lower().index("example") :]
    assert f"limpet {command}" in after, text


@pytest.mark.requirement("6.3")
def test_help_names_every_command(house: Home) -> None:
    done = house.limpet("--help")
    assert done.returncode == 0
    words = done.stdout.decode().split()
    assert [command for command in COMMANDS if command not in words] == []


@pytest.mark.requirement("6.3")
def test_version_answers_in_under_100_ms(house: Home) -> None:
    """The best of ten: the machine's other work is not limpet's."""
    best_s = 60.0
    for _ in range(10):
        begun = time.monotonic()
        done = house.limpet("--version")
        best_s = min(best_s, time.monotonic() - begun)
        assert done.returncode == 0
        assert done.stdout.strip()
    assert best_s < 0.1


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize(
    "words",
    [
        ["nosuch"],
        ["--nosuch"],
        ["run"],
        ["run", "--nosuch", "true"],
        ["wait"],
        ["kill"],
        ["logs"],
        ["call"],
        ["ps", "--nosuch"],
        ["status", "extra"],
    ],
    ids=" ".join,
)
def test_usage_is_2(house: Home, words: list[str]) -> None:
    done = house.limpet(*words)
    assert (done.returncode, done.stdout) == (2, b""), done
    assert done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("words", [["kill"], ["logs"], ["wait"], ["logs", "-f"]], ids=" ".join)
def test_an_unknown_run_is_a_failure(house: Home, words: list[str]) -> None:
    done = house.limpet(*words, "nosuchrun")
    # 1 would be what the run's command said: `wait` has 125 for what is not its.
    assert (done.returncode, done.stdout) == (125 if words == ["wait"] else 1, b""), done
    assert b"nosuchrun" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("6.3", "0.2")
def test_call_prints_the_answer(house: Home) -> None:
    done = house.limpet("call", "shell", '{"command": "echo hi; exit 3"}')
    (answer,) = json_lines(done.stdout)
    assert (done.returncode, answer["ok"], answer["exit_code"], answer["stdout"]) == (0, True, 3, "hi\n")
    done = house.limpet("call", "no.such", "{}")
    assert done.returncode == 1
    assert json.loads(done.stdout)["error"] == "not_found"


@pytest.mark.requirement("6.3", "0.1", "0.11")
def test_ps(house: Home, http: Http, gate: Gate) -> None:
    live = http.spawn("echo ps-live; " + gate.wait)
    http.read(live, wait_ms=60_000)
    ended = http.ok("shell", {"command": "echo ps-ended; exit 3"})["run_id"]
    for words in (["ps"], ["ps", "--all"], ["ps", "--json"], ["ps", "--all", "--json"]):
        done = house.limpet(*words)
        assert done.returncode == 0, done
        for run_id in (live, ended):
            assert run_id in done.stdout.decode(), (words, done)
        if "--json" in words:
            assert json_lines(done.stdout)
    gate.open()
    http.finish(live)


@pytest.mark.requirement("6.7")
def test_list_views_pass_no_escapes_on(house: Home, http: Http) -> None:
    http.ok("shell", {"command": ": \x1b]0;title\x07 \x1b[2J \x9b31m \r overwritten", "labels": ["\x1b[31mred"]})
    for words in (["ps"], ["ps", "--all"]):
        shown = house.limpet(*words).stdout.decode()
        assert "overwritten" in shown or "..." in shown or "…" in shown
        assert [byte for byte in "\x1b\x07\x9b\r" if byte in shown] == []


@pytest.mark.requirement("6.3")
def test_logs_follow_to_the_end(house: Home, http: Http, gate: Gate) -> None:
    run_id = http.spawn(f"echo one; {gate.wait} echo two; {gate.wait} printf three; exit 4")
    process = house.popen("logs", "-f", run_id)
    assert read_line(process) == b"one\n"
    gate.open()
    assert read_line(process) == b"two\n"
    gate.open()
    assert read_line(process) == b"three"
    assert process.wait(60) == 0
    assert house.limpet("logs", "-f", run_id).stdout == b"one\ntwo\nthree"


@pytest.mark.requirement("6.3")
def test_logs_of_a_living_run_return(house: Home, http: Http, gate: Gate) -> None:
    run_id = http.spawn("echo one; " + gate.wait)
    http.read(run_id, wait_ms=60_000)
    done = house.limpet("logs", run_id)
    assert (done.returncode, done.stdout) == (0, b"one\n")
    gate.open()
    http.finish(run_id)


@pytest.mark.requirement("6.3", "9")
@pytest.mark.parametrize(
    ("command", "code"), [("exit 0", 0), ("exit 5", 5), ("kill -TERM $$", 143), ("kill -9 $$", 137)]
)
def test_wait_exits_with_the_runs_code(house: Home, http: Http, command: str, code: int) -> None:
    assert house.limpet("wait", http.spawn(command)).returncode == code


@pytest.mark.requirement("6.3")
def test_wait_waits(house: Home, http: Http, gate: Gate) -> None:
    run_id = http.spawn(f"{gate.wait} exit 5")
    process = house.popen("wait", run_id)
    assert process.poll() is None
    gate.open()
    assert process.wait(60) == 5


@pytest.mark.requirement("6.3")
def test_kill_and_wait(house: Home, http: Http, lifeline: Lifeline) -> None:
    run_id = http.spawn(lifeline.hold + "exec sleep 1000")
    lifeline.word()
    assert house.limpet("kill", run_id).returncode == 0
    assert house.limpet("wait", run_id).returncode == 143
    assert lifeline.gone(30)


@pytest.mark.requirement("6.3")
def test_json_is_all_there_is_on_stdout(house: Home, http: Http) -> None:
    run_id = http.ok("shell", {"command": "echo out; exit 3"})["run_id"]
    for words, code in (
        (["ps", "--json"], 0),
        (["status", "--json"], 0),
        (["wait", "--json", run_id], 3),
        (["logs", "--json", run_id], 0),
        (["kill", "--json", run_id], 0),
    ):
        done = house.limpet(*words)
        assert done.returncode == code, (words, done)
        lines = json_lines(done.stdout)
        assert lines, words
        assert {type(line) for line in lines} == {dict}, words
    failed = house.limpet("kill", "--json", "nosuchrun")
    assert failed.returncode == 1
    if failed.stdout:
        (told,) = json_lines(failed.stdout)
        assert (told["ok"], told["error"]) == (False, "not_found")
