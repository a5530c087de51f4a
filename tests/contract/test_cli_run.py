"""`limpet run` is the command it runs: its streams, its exit code, its signals (6.3)."""

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from .fifos import Gate, Lifeline
from .home import Home, read_line, running
from .surface import Http


def script(house: Home, text: str) -> list[str]:
    """The words of a command that runs these lines."""
    path = house.work / f"script-{time.monotonic_ns()}"
    path.write_text(text + "\n")
    return ["sh", str(path)]


@pytest.mark.requirement("6.3")
def test_streams_stay_apart(house: Home) -> None:
    done = house.limpet("run", *script(house, "echo out; echo err >&2"))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


@pytest.mark.requirement("6.3")
def test_streams_are_live(house: Home, gate: Gate) -> None:
    """Each line is seen before the command may write the next."""
    process = house.popen(
        "run", *script(house, f"echo one; {gate.wait} echo two >&2; {gate.wait} printf three; exit 3")
    )
    assert read_line(process) == b"one\n"
    gate.open()
    assert read_line(process, stderr=True) == b"two\n"
    gate.open()
    assert process.wait(60) == 3
    assert read_line(process) == b"three"


@pytest.mark.requirement("6.3")
def test_words_arrive_as_given(house: Home) -> None:
    words = ["a  b", "", "$HOME", "'q'", '"', "*", "a;b", "é", "-d", "--json", "--", "\\", "new\nline"]
    done = house.limpet("run", "printf", "<%s>", *words)
    assert done.stdout.decode() == "".join(f"<{word}>" for word in words), done


@pytest.mark.requirement("6.3")
def test_bytes_arrive_as_written(house: Home) -> None:
    path = house.work / "bytes"
    path.write_bytes(bytes(range(256)) * 4000)
    done = house.limpet("run", "cat", str(path))
    assert done.stdout == path.read_bytes()
    assert done.stderr == b""


@pytest.mark.requirement("6.3", "1.5")
def test_all_output_arrives_past_what_becomes_items(house: Home) -> None:
    done = house.limpet("run", "head", "-c", "20000000", "/dev/zero")
    assert (done.returncode, len(done.stdout)) == (0, 20_000_000)
    assert not done.stdout.strip(b"\0")


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("code", [0, 1, 2, 3, 124, 125, 126, 127, 130, 255])
def test_the_exit_code_is_the_commands(house: Home, code: int) -> None:
    assert house.limpet("run", *script(house, f"exit {code}")).returncode == code


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("name", ["HUP", "INT", "QUIT", "KILL", "TERM", "USR1"])
def test_a_signal_is_128_and_its_number(house: Home, name: str) -> None:
    done = house.limpet("run", *script(house, f"ulimit -c 0; kill -{name} $$"))
    assert done.returncode == 128 + signal.Signals[f"SIG{name}"].value, done


@pytest.mark.requirement("6.3")
def test_a_program_that_is_not_there(house: Home) -> None:
    done = house.limpet("run", "/no/such/program")
    assert done.returncode == 127, done
    assert b"/no/such/program" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.requirement("6.3")
def test_125_when_limpet_itself_failed(new_home: Callable[..., Home]) -> None:
    home = new_home()
    (home.base / "file").write_text("no folder")
    done = home.limpet("run", "true", env={"LIMPET_HOME": str(home.base / "file")})
    assert (done.returncode, done.stdout) == (125, b""), done
    assert b"Traceback" not in done.stderr
    assert str(home.base / "file") in done.stderr.decode()


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_signal_reaches_the_command(house: Home, name: str) -> None:
    body = f"trap 'echo got {name}; exit 9' {name}; echo ready; while :; do sleep 0.05; done"
    process = house.popen("run", *script(house, body))
    assert read_line(process) == b"ready\n"
    process.send_signal(signal.Signals[f"SIG{name}"])
    assert read_line(process) == f"got {name}\n".encode()
    assert process.wait(60) == 9


@pytest.mark.requirement("6.3")
def test_ctrl_c_ends_a_plain_command(house: Home, lifeline: Lifeline) -> None:
    process = house.popen("run", *script(house, lifeline.hold + "echo ready; exec sleep 1000"))
    assert read_line(process) == b"ready\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 128 + signal.SIGINT
    assert lifeline.gone(30)
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()


@pytest.mark.requirement("6.3", "1.11")
def test_the_command_outlives_its_command_line(house: Home, http: Http, lifeline: Lifeline, gate: Gate) -> None:
    """Injector: SIGKILL to `limpet run`."""
    process = house.popen("run", *script(house, lifeline.hold + f"echo ready; {gate.wait} echo on; exit 3"))
    assert read_line(process) == b"ready\n"
    command_pid = int(lifeline.word())
    process.kill()
    process.wait(20)
    assert running(command_pid)
    (run,) = http.ok("runs.list", {"status": "running", "text": "script-"})["runs"]
    gate.open()
    assert http.finish(run["run_id"])["exit_code"] == 3
    assert http.bytes_of(run["run_id"]) == b"ready\non\n"


@pytest.mark.requirement("6.3")
def test_detached(house: Home, gate: Gate) -> None:
    done = house.limpet("run", "-d", *script(house, f"echo out; echo err >&2; {gate.wait} exit 6"))
    assert (done.returncode, done.stderr) == (0, b""), done
    run_id = done.stdout.decode().removesuffix("\n")
    assert run_id == run_id.strip() != ""
    assert Http(house).facts(run_id)["status"] == "running"
    gate.open()
    assert house.limpet("wait", run_id).returncode == 6
    logs = house.limpet("logs", run_id)
    assert logs.returncode == 0
    assert sorted((logs.stdout + logs.stderr).split()) == [b"err", b"out"]


@pytest.mark.requirement("6.3")
def test_run_in_another_folder_keeps_it(house: Home, tmp_path: Path) -> None:
    (tmp_path / "here").write_text("found\n")
    assert house.limpet("run", "cat", "here", cwd=tmp_path).stdout == b"found\n"


@pytest.mark.requirement("6.3", "0.1")
def test_run_json_is_json_alone(house: Home) -> None:
    done = house.limpet("run", "--json", *script(house, "echo out; exit 3"))
    told = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert told
    assert done.returncode == 3
    assert os.linesep.encode() in done.stdout
