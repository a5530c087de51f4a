"""Input of a run: writes that fit, wait, are cancelled or come too late, what of them is recorded, and long lines."""

from __future__ import annotations

import base64
import subprocess
import time
from pathlib import Path

import pytest

from tests.keeper.driver import Fact, Keeper
from tests.keeper.samples import assert_whole, random_bytes, wait_extent

PTY = {"rows": 24, "cols": 80}
PIPE_BYTES = 65536


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def taken(facts: list[Fact]) -> int:
    """How many bytes of input the kernel took, by ranges that must be adjacent."""
    end = 0
    for fact in facts:
        if fact["fact"] == "stdin":
            assert fact["start"] == end < fact["end"]
            end = fact["end"]
    return end


def wait_taken(keeper: Keeper, size: int) -> None:
    keeper.wait_until(lambda facts: taken(facts) >= size, what=f"{size} bytes of input taken")


@pytest.mark.requirement("0.12")
def test_no_stdin_is_dev_null(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("readlink /proc/self/fd/0; cat; echo done")["ok"]
        keeper.wait_gone()
        assert keeper.spool() == b"/dev/null\ndone\n"
    with Keeper(tmp_path / "run2") as keeper:
        assert keeper.sh("sleep 1000")["ok"]
        reply = keeper.write(b"to nobody")
        assert (reply["ok"], reply["error"], reply["written"]) == (False, "closed", 0)


@pytest.mark.requirement("0.12")
@pytest.mark.parametrize("size", [0, 1, 4097, 1 << 20])
def test_stdin_given_at_the_start(tmp_path: Path, size: int) -> None:
    data = random_bytes(size)
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin={"data": b64(data)})["ok"]
        keeper.wait_gone()
        assert taken(assert_whole(keeper, "stdout", data)) == size
        assert len(keeper.named("stdin_closed")) == 1
        assert keeper.named("exited")[0]["code"] == 0


@pytest.mark.requirement("0.12")
def test_stdin_given_at_the_start_to_a_command_that_does_not_read_it(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("true", stdin={"data": b64(random_bytes(1 << 20))})["ok"]
        keeper.wait_gone()
        assert keeper.named("exited")[0]["code"] == 0
        assert keeper.facts()[-1]["fact"] == "sealed"


@pytest.mark.requirement("0.12")
def test_a_terminal_takes_no_stdin_beside_itself(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        reply = keeper.start("cat", stdin={"data": b64(b"x")}, pty=PTY)
        assert reply["ok"] is False, reply


@pytest.mark.requirement("0.12")
def test_close_ends_the_input_and_the_next_write_is_refused(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("cat; echo more; exec sleep 1000", stdin="open")["ok"]
        assert keeper.write(b"last", close=True)["written"] == 4
        wait_extent(keeper, "stdout", len("lastmore\n"))
        assert keeper.named("stdin_closed")[0]["why"] == "asked"
        reply = keeper.write(b"too late")
        assert (reply["ok"], reply["error"], reply["written"]) == (False, "closed", 0)
        assert len(keeper.named("stdin_closed")) == 1


@pytest.mark.requirement("0.12")
def test_a_command_that_closes_its_input(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("exec <&-; echo closed; exec sleep 1000", stdin="open")["ok"]
        wait_extent(keeper, "stdout", len("closed\n"))
        reply = keeper.write(b"to nobody")
        assert (reply["ok"], reply["error"], reply["written"]) == (False, "closed", 0)
        assert keeper.wait_fact("stdin_closed")["why"] == "broken"


@pytest.mark.requirement("0.12")
def test_a_write_that_does_not_fit_waits_and_can_be_cancelled(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("sleep", "1000", stdin="open")["ok"]
        large = keeper.connection.post("write", data=b64(b"x" * (1 << 20)))
        behind = keeper.connection.post("write", data=b64(b"behind it"))
        wait_taken(keeper, PIPE_BYTES)
        assert keeper.hello()["phase"] == "running"
        assert keeper.call("cancel", of=behind)["ok"]
        reply = keeper.connection.reply(behind)
        assert (reply["ok"], reply["error"], reply["written"]) == (False, "cancelled", 0)
        assert keeper.call("cancel", of=large)["ok"]
        reply = keeper.connection.reply(large)
        assert (reply["ok"], reply["error"], reply["written"]) == (False, "cancelled", PIPE_BYTES)
        assert taken(keeper.facts()) == PIPE_BYTES
        assert keeper.named("stdin_closed") == []


@pytest.mark.requirement("0.12")
def test_what_was_cancelled_is_not_written_later(tmp_path: Path) -> None:
    gate = "while [ ! -e gate ]; do sleep 0.01; done; exec cat"
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh(gate, stdin="open", cwd=str(tmp_path))["ok"]
        large = keeper.connection.post("write", data=b64(b"x" * (1 << 20)))
        wait_taken(keeper, PIPE_BYTES)
        assert keeper.call("cancel", of=large)["ok"]
        written = keeper.connection.reply(large)["written"]
        (tmp_path / "gate").touch()
        assert keeper.write(b"after", close=True)["written"] == 5
        keeper.wait_gone()
        assert_whole(keeper, "stdout", b"x" * written + b"after")


@pytest.mark.requirement("0.12")
@pytest.mark.parametrize("end", ["kill", "exit"])
def test_a_write_that_waits_is_answered_at_the_end_of_the_run(tmp_path: Path, end: str) -> None:
    gate = "while [ ! -e gate ]; do sleep 0.01; done"
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh(gate, stdin="open", cwd=str(tmp_path))["ok"]
        large = keeper.connection.post("write", data=b64(b"x" * (1 << 20)))
        behind = keeper.connection.post("write", data=b64(b"y"), close=True)
        wait_taken(keeper, PIPE_BYTES)
        if end == "kill":
            assert keeper.call("kill")["ok"]
        else:
            (tmp_path / "gate").touch()
        reply = keeper.connection.reply(large)
        assert (reply["ok"], reply["error"], reply["written"]) == (False, "closed", PIPE_BYTES)
        reply = keeper.connection.reply(behind)
        assert (reply["ok"], reply["error"], reply["written"]) == (False, "closed", 0)
        keeper.wait_gone()


@pytest.mark.requirement("0.10")
def test_a_secret_is_recorded_by_its_length(tmp_path: Path) -> None:
    secret = b"hunter2-hunter2-hunter2"
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("cat >/dev/null", pty=PTY)["ok"]
        assert keeper.write(b"plain words\n")["ok"]
        assert keeper.write(secret + b"\n", secret=True)["ok"]
        plain, hidden = keeper.wait_until(lambda facts: [f for f in facts if f["fact"] == "stdin"][:2])
        assert plain["data"] == b64(b"plain words\n")
        assert not plain["secret"]
        assert hidden["secret"] is True
        assert hidden.get("data") is None
        assert hidden["end"] - hidden["start"] == len(secret) + 1
        journal = (keeper.directory / "keeper.journal").read_bytes()
        assert secret not in journal
        assert b64(secret + b"\n").encode() not in journal


@pytest.mark.requirement("0.10")
def test_what_a_terminal_does_not_echo_is_recorded_by_its_length(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh("stty -echo; printf pass:; read p; stty echo; printf name:; read n; echo $n", pty=PTY)["ok"]
        wait_extent(keeper, "pty", len("pass:"))
        assert keeper.write(b"hunter2\n")["ok"]
        wait_extent(keeper, "pty", len("pass:name:"))
        assert keeper.write(b"joe\n")["ok"]
        keeper.wait_gone()
        hidden, plain = keeper.named("stdin")
        assert hidden.get("data") is None
        assert hidden["end"] == 8
        assert plain["data"] == b64(b"joe\n")
        assert keeper.spool("pty") == b"pass:name:joe\njoe\n"


@pytest.mark.requirement("0.10")
def test_a_terminal_that_echoes_again_right_after_a_secret(tmp_path: Path) -> None:
    """Injector: strace holds up each look at the terminal for 300 ms; by a look after the write it echoes again."""
    script = "stty -echo; printf pass:; read p; stty echo; printf name:; exec sleep 1000"
    look = ["strace", "-e", "trace=ioctl", "-e", "inject=ioctl:delay_enter=300000"]
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.sh(script, pty=PTY)["ok"]
        wait_extent(keeper, "pty", len("pass:"))
        strace = subprocess.Popen([*look, "-p", str(keeper.pid)], stderr=subprocess.PIPE)
        with strace:
            assert strace.stderr is not None
            assert b"attached" in strace.stderr.readline()
            assert keeper.write(b"hunter2\n")["ok"]
            wait_extent(keeper, "pty", len("pass:name:"))
            strace.terminate()
            assert b"(DELAYED)" in strace.stderr.read()
        assert [fact.get("data") for fact in keeper.named("stdin")] == [None]


@pytest.mark.requirement("0.10")
def test_long_input_is_recorded_by_its_length(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("cat", stdin="open")["ok"]
        assert keeper.write(random_bytes(4097), close=True)["ok"]
        keeper.wait_gone()
        assert [fact.get("data") for fact in keeper.named("stdin")] == [None]


def line_mode_cat(keeper: Keeper, before: str = "stty -echo") -> None:
    """A terminal in line mode that says `+` when it is ready and then what it is sent."""
    assert keeper.sh(f"{before}; printf +; exec cat", pty=PTY)["ok"]
    wait_extent(keeper, "pty", 1)


@pytest.mark.requirement("1.7")
def test_a_line_that_the_terminal_would_cut_is_refused_whole(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        line_mode_cat(keeper)
        for line in (b"a" * 4096 + b"\n", b"ok\n" + b"a" * 4096, b"a" * 100_000):
            reply = keeper.write(line)
            assert (reply["ok"], reply["error"]) == (False, "line_too_long_for_canonical"), reply
        assert taken(keeper.facts()) == 0
        longest = b"b" * 4095 + b"\n"
        assert keeper.write(longest)["written"] == 4096
        wait_extent(keeper, "pty", 1 + len(longest))
        assert keeper.write(b"\x04")["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "pty", b"+" + longest)


@pytest.mark.requirement("1.7")
def test_a_line_made_of_several_writes_is_counted_whole(tmp_path: Path) -> None:
    with Keeper(tmp_path / "run") as keeper:
        line_mode_cat(keeper)
        assert keeper.write(b"a" * 3000)["ok"]
        assert keeper.write(b"b" * 1096)["error"] == "line_too_long_for_canonical"
        assert keeper.write(b"b" * 1095)["ok"]
        assert keeper.write(b"c")["error"] == "line_too_long_for_canonical"
        assert keeper.write(b"\n")["ok"]
        wait_extent(keeper, "pty", 1 + 4096)
        assert keeper.write(b"d" * 3000 + b"\r" + b"e" * 3000 + b"\n")["ok"]
        wait_extent(keeper, "pty", 1 + 4096 + 6002)
        assert keeper.write(b"\x04")["ok"]
        keeper.wait_gone()
        lines = [b"+" + b"a" * 3000 + b"b" * 1095, b"d" * 3000, b"e" * 3000, b""]
        assert_whole(keeper, "pty", b"\n".join(lines))


@pytest.mark.requirement("1.7", "F47")
def test_many_short_lines_and_a_raw_terminal_have_no_such_bound(tmp_path: Path) -> None:
    lines = b"".join(b"line %d\n" % number for number in range(20_000))
    with Keeper(tmp_path / "run") as keeper:
        line_mode_cat(keeper)
        assert keeper.write(lines)["written"] == len(lines)
        assert keeper.write(b"\x04")["ok"]
        keeper.wait_gone()
        assert_whole(keeper, "pty", b"+" + lines)
    data = random_bytes(300_000).replace(b"\r", b"R")
    with Keeper(tmp_path / "run2") as keeper:
        assert keeper.sh(f"stty raw -echo; printf +; exec head -c {len(data)}", pty=PTY)["ok"]
        wait_extent(keeper, "pty", 1)
        assert keeper.write(data)["written"] == len(data)
        keeper.wait_gone()
        assert_whole(keeper, "pty", b"+" + data)


@pytest.mark.requirement("F55")
@pytest.mark.parametrize("stream", ["stdout", "pty"])
def test_each_byte_is_seen_when_it_is_said(tmp_path: Path, stream: str) -> None:
    """A byte every 50 ms: each has its own fact, and the half of them at least within 50 ms of being said."""
    script = 'i=0; while [ $i -lt 20 ]; do date +%s%N >>"$0"; printf .; sleep 0.05; i=$((i+1)); done'
    times = tmp_path / "times"
    with Keeper(tmp_path / "run") as keeper:
        assert keeper.start("/bin/sh", "-c", script, str(times), pty=PTY if stream == "pty" else None)["ok"]
        for count in range(1, 21):
            wait_extent(keeper, stream, count)
            assert (keeper.directory / f"{stream}.spool").stat().st_size >= count
        seen_ms = time.time() * 1000
        keeper.wait_gone()
        said_ms = [int(line) / 1e6 for line in times.read_text().split()]
        late_ms = sorted(fact["at"] - said for fact, said in zip(keeper.named("wrote"), said_ms, strict=True))
        assert late_ms[10] <= 50, late_ms
        assert late_ms[-1] <= 500, late_ms
        assert seen_ms - said_ms[-1] <= 500
