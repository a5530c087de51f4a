"""What a run reads: nothing, a text given at the start, or what is written to it while it lives (0.12)."""

import base64
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from .home import Answer, Home, read_line
from .surface import Http, Surface


@pytest.mark.requirement("0.12")
def test_without_stdin_there_is_nothing_to_read(surface: Surface) -> None:
    ran = surface.ok("shell", {"command": "readlink /proc/self/fd/0; cat | wc -c"})
    assert ran["stdout"].split() == ["/dev/null", "0"]


@pytest.mark.requirement("0.12")
@pytest.mark.parametrize("text", ["", "one\ntwo", "héllo 🐚\n", "\0\r\n\x04\x1b", " open"])
def test_stdin_text_is_there_at_the_start_and_then_over(surface: Surface, text: str) -> None:
    ran = surface.ok("shell", {"command": "cat", "stdin": text})
    assert (ran["exit_code"], ran["stdout"]) == (0, text)


@pytest.mark.requirement("0.12")
def test_a_long_text(http: Http) -> None:
    text = "".join(f"{n}é\n" for n in range(100_000))
    ran = http.ok("shell", {"command": "cksum; cat /dev/null", "stdin": text})
    same = http.ok("shell", {"command": "wc -c", "stdin": text})
    assert ran["exit_code"] == 0
    assert int(ran["stdout"].split()[1]) == int(same["stdout"]) == len(text.encode())


@pytest.mark.requirement("0.12")
def test_a_command_that_does_not_read_its_text(http: Http) -> None:
    ran = http.ok("shell", {"command": "echo done", "stdin": "x" * 1_000_000})
    assert (ran["exit_code"], ran["stdout"]) == (0, "done\n")


@pytest.mark.requirement("0.12")
def test_open_stdin_takes_writes_until_it_is_closed(surface: Surface) -> None:
    run_id = surface.spawn("while read -r line; do echo got $line; done; echo over", stdin="open")
    surface.ok("runs.write", {"run_id": run_id, "text": "one\n"})
    assert surface.read(run_id, wait_ms=60_000)["data"] == "got one\n"
    surface.ok("runs.write", {"run_id": run_id, "data_base64": base64.b64encode(b"two\n").decode()})
    assert surface.read(run_id, offset=8, wait_ms=60_000)["data"] == "got two\n"
    surface.ok("runs.write", {"run_id": run_id, "text": "three\n", "close": True})
    assert surface.finish(run_id)["exit_code"] == 0
    assert surface.bytes_of(run_id) == b"got one\ngot two\ngot three\nover\n"


@pytest.mark.requirement("0.12")
def test_written_bytes_are_exact_and_in_order(http: Http) -> None:
    run_id = http.spawn("cat", stdin="open")
    content = bytes(range(256)) * 40
    for start in range(0, len(content), 1000):
        part = base64.b64encode(content[start : start + 1000]).decode()
        http.ok("runs.write", {"run_id": run_id, "data_base64": part})
    http.ok("runs.write", {"run_id": run_id, "text": "", "close": True})
    http.finish(run_id)
    assert http.bytes_of(run_id) == content


@pytest.mark.requirement("0.12")
def test_close_alone(http: Http) -> None:
    run_id = http.spawn("cat; echo over", stdin="open")
    http.ok("runs.write", {"run_id": run_id, "close": True})
    http.finish(run_id)
    assert http.bytes_of(run_id) == b"over\n"


@pytest.mark.requirement("0.12", "0.3")
def test_writing_where_it_cannot_be_read(http: Http) -> None:
    closed = http.spawn("cat >/dev/null; exec sleep 1000", stdin="open")
    http.ok("runs.write", {"run_id": closed, "text": "x", "close": True})
    never = http.spawn("exec sleep 1000")
    ended = http.spawn("true", stdin="open")
    http.finish(ended)
    for run_id in (closed, never, ended):
        answer = http.call("runs.write", {"run_id": run_id, "text": "y"})
        assert answer["ok"] is False, answer
        assert answer["error"] in ("conflict", "gone"), answer
    for run_id in (closed, never):
        http.ok("runs.kill", {"run_id": run_id})
        http.finish(run_id)


@pytest.mark.requirement("0.12", "0.3")
@pytest.mark.parametrize("params", [{}, {"text": "a", "data_base64": "YQ=="}, {"data_base64": "YQ"}, {"text": None}])
def test_a_write_of_nothing_or_of_both(http: Http, params: Answer) -> None:
    run_id = http.spawn("cat", stdin="open")
    http.refused("runs.write", {"run_id": run_id, **params}, "invalid_argument")
    http.ok("runs.write", {"run_id": run_id, "text": "after", "close": True})
    http.finish(run_id)
    assert http.bytes_of(run_id) == b"after"


@pytest.mark.requirement("0.9", "0.12")
def test_a_write_with_a_key_is_written_once(http: Http) -> None:
    run_id = http.spawn("cat", stdin="open")
    write: Answer = {"run_id": run_id, "text": "once\n", "key": f"write-{run_id}"}
    first = http.ok("runs.write", write)
    assert http.ok("runs.write", write) == first
    http.refused("runs.write", {**write, "text": "twice\n"}, "conflict")
    http.ok("runs.write", {"run_id": run_id, "close": True})
    http.finish(run_id)
    assert http.bytes_of(run_id) == b"once\n"


@pytest.mark.requirement("0.12", "6.3")
@pytest.mark.parametrize("content", [b"", b"x", b"\0\xff\n" * 100_000])
def test_the_command_line_passes_its_stdin_on(house: Home, content: bytes) -> None:
    done = house.limpet("run", "wc", "-c", stdin=content)
    assert done.returncode == 0, done
    assert int(done.stdout) == len(content)
    assert house.limpet("run", "cat", stdin=content).stdout == content


@pytest.mark.requirement("0.12", "6.3")
def test_the_command_line_passes_stdin_on_as_it_comes(house: Home) -> None:
    script = house.work / "answers"
    script.write_text("while read -r line; do echo got $line; done; echo over\n")
    inner, outer = os.pipe()
    try:
        process = house.popen("run", "sh", str(script), stdin=inner)
        os.close(inner)
        for word in (b"one", b"two"):
            os.write(outer, word + b"\n")
            assert read_line(process) == b"got " + word + b"\n"
    finally:
        os.close(outer)
    assert read_line(process) == b"over\n"
    assert process.wait(60) == 0


@pytest.mark.requirement("0.12", "6.3")
def test_the_command_line_does_not_wait_for_stdin_that_nobody_reads(house: Home) -> None:
    inner, outer = os.pipe()
    try:
        process = house.popen("run", "echo", "done", stdin=inner)
        assert process.wait(60) == 0
    finally:
        os.close(inner)
        os.close(outer)


@pytest.mark.requirement("0.3", "0.12", "6.3")
@pytest.mark.parametrize("content", [b"", b"x" * 500_000], ids=["empty", "long"])
def test_stdin_that_nobody_reads_is_nothing_to_complain_of(house: Home, content: bytes) -> None:
    def run(_: int) -> subprocess.CompletedProcess[bytes]:
        return house.limpet("run", "echo", "done", stdin=content)

    with ThreadPoolExecutor(4) as pool:
        ran = list(pool.map(run, range(12)))
    assert [done.stderr.decode() for done in ran if done.stderr] == []
    assert [(done.returncode, done.stdout) for done in ran] == [(0, b"done\n")] * 12
