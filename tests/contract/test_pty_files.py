"""The files of a conversation: soon there, each block whole in them, and written to their end after a crash."""

import base64
import json
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .home import Home, until
from .surface import Http
from .talk import ALL_SHELLS, Talk, talking

SAID_WITHIN_S = 1.0


def lines(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]
    except FileNotFoundError:
        return []


def wait_whole(directory: Path, block_id: str) -> dict[str, Any]:
    """The block's line, once it is there."""
    until(lambda: block_id in {line["block_id"] for line in lines(directory / "blocks.jsonl")}, "the block's line")
    return next(line for line in lines(directory / "blocks.jsonl") if line["block_id"] == block_id)


def rebuilt(directory: Path, block_id: str) -> bytes:
    """A block's output from the events alone, with what they leave to the block's own file."""
    output = b""
    own = (directory / "blocks" / f"{block_id}.out").read_bytes()
    for event in lines(directory / "events.jsonl"):
        if event["type"] == "agent_block_delta" and event["block_id"] == block_id:
            assert event["offset"] == len(output)
            if "data" in event:
                output += event["data"].encode()
            elif "data_base64" in event:
                output += base64.b64decode(event["data_base64"])
            else:
                assert event["truncated"]
                output += own[event["offset"] : event["offset"] + event["bytes"]]
            assert len(output) == event["offset"] + event["bytes"]
    return output


def check(talk: Talk, directory: Path) -> None:
    """Everything in the files, against what the operations say."""
    events = lines(directory / "events.jsonl")
    assert [event["seq"] for event in events] == list(range(1, len(events) + 1))
    spool = (directory / "output.spool").read_bytes()
    known = {block["block_id"]: block for block in talk.ok("blocks.since", limit=1000)["blocks"]}
    assert [line["block_id"] for line in lines(directory / "blocks.jsonl")] == list(known)
    for line in lines(directory / "blocks.jsonl"):
        block = known[line["block_id"]]
        names = ("seq", "cmd", "cwd", "interactive", "ts_begin", "ts_end", "status", "exit_code", "signal", "ended_by")
        assert {name: line[name] for name in names} == {name: block[name] for name in names}
        own = (directory / line["output_path"]).read_bytes()
        assert own == spool[line["start"] : line["end"]] == rebuilt(directory, line["block_id"])
        assert len(own) == block["output_bytes"]
        kinds = [event["type"] for event in events if event.get("block_id") == line["block_id"]]
        assert kinds[0] == "agent_block_begin"
        assert (kinds.count("agent_block_begin"), kinds.count("agent_block_end")) == (1, 1)
        assert [kind for kind in kinds if kind != "session_reset"][-1] == "agent_block_end"


@pytest.mark.requirement("3.2", "3.4", "3.7")
@pytest.mark.parametrize("shell", ALL_SHELLS)
def test_the_files_say_what_the_operations_say(http: Http, house: Home, shell: str) -> None:
    with talking(http, shell=shell) as talk:
        directory = house.path / "conversations" / talk.id / "agent_pty"
        talk.run("echo hello")
        talk.run("printf 'no newline, \\xe2\\x82\\xac \\xff'")
        talk.run("head -c 300000 /dev/zero | tr '\\0' x")
        talk.run("sh -c 'yes e-grave-\u00e8 | head -c 100001'")
        talk.run("sh -c 'exit 7'")
        talk.run("exit 3")
        done = talk.run("echo last")
        ended = time.monotonic()
        wait_whole(directory, done["block_id"])
        assert time.monotonic() - ended < SAID_WITHIN_S + 4  # on a machine that others use
        check(talk, directory)
        resets = [event for event in lines(directory / "events.jsonl") if event["type"] == "session_reset"]
        assert [reset["exit_code"] for reset in resets] == [3]
        for path in (directory / "events.jsonl", directory / "blocks.jsonl", *(directory / "blocks").iterdir()):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.requirement("3.7")
def test_a_block_that_runs_is_in_the_files_as_far_as_it_came(http: Http, house: Home) -> None:
    with talking(http) as talk:
        directory = house.path / "conversations" / talk.id / "agent_pty"
        begun = talk.ok("exec_interactive", cmd="sh -c 'head -c 10000 /dev/zero | tr \"\\0\" y; read x'")
        out = directory / "blocks" / f"{begun['block_id']}.out"
        until(lambda: out.exists() and out.stat().st_size == 10_000, "the block's file to grow")
        kinds = [event["type"] for event in lines(directory / "events.jsonl")]
        assert (kinds[0], "agent_block_end" in kinds) == ("agent_block_begin", False)
        talk.ok("send", data="\r")
        wait_whole(directory, begun["block_id"])
        check(talk, directory)


@pytest.mark.requirement("3.7", "3.9")
def test_files_are_written_to_their_end_after_a_crash(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon, as blocks end; each time another one goes on."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    directory = home.path / "conversations" / "c1" / "agent_pty"
    for number in range(4):
        talk.run(f"echo {number}; seq 2000")
        begun = talk.ok("exec_block", cmd=f"sh -c 'seq 3000; echo up {number}; sleep 0.3; echo over'")
        talk.wait_for(f"up {number}\n", 0)
        home.kill_daemon()
        home.start()
        # Nobody asks for the conversation: its files come all the same.
        wait_whole(directory, begun["block_id"])
    check(talk, directory)
    (directory / "events.jsonl").write_bytes(b"")
    home.kill_daemon()
    home.start()
    last = talk.run("echo last")
    wait_whole(directory, last["block_id"])
    check(talk, directory)
    before = talk.ok("close")["run_id"]
    talk.run("echo in another")
    until(lambda: len(lines(directory / "blocks.jsonl")) == 1, "the files of the next conversation")
    check(talk, directory)
    assert len(lines(directory.with_name(f"agent_pty.{before}") / "blocks.jsonl")) == 9
    talk.ok("close")


@pytest.mark.requirement("3.7", "F15")
def test_files_that_cannot_be_written_hold_nothing_up(http: Http, house: Home) -> None:
    """Injector: a file where the directory of the files is to be."""
    with talking(http) as talk:
        directory = house.path / "conversations" / talk.id / "agent_pty"
        talk.run("true")
        until(lambda: bool(lines(directory / "blocks.jsonl")), "the first block's line")
    other = house.path / "conversations" / f"{talk.id}-other"
    other.mkdir()
    (other / "agent_pty").write_text("in the way")
    talk = Talk(http, other.name)
    assert talk.run("echo on")["output"] == "on\n"
    (other / "agent_pty").unlink()
    done = talk.run("echo again")
    wait_whole(other / "agent_pty", done["block_id"])
    check(talk, other / "agent_pty")
    talk.ok("close")
