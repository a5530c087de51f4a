"""A conversation's files, as spec 3, 11.6 has them: what is in them, there in time and true (3.7)."""

import hashlib
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from .home import Answer, Home, until
from .surface import Http
from .talk import SENTINEL, Talk, talking


def files_of(home: Home, talk: Talk) -> Path:
    return home.path / "conversations" / talk.id / "agent_pty"


def lines(path: Path) -> list[Answer]:
    """What is whole in a file of JSON lines; its end may be on its way."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n")]


def blocks_told(folder: Path) -> dict[str, Answer]:
    """The last word on each block."""
    return {each["block_id"]: each for each in lines(folder / "blocks.jsonl")}


def ended(folder: Path, block_id: str) -> bool:
    block = blocks_told(folder).get(block_id)
    return block is not None and block["ts_end"] is not None


@pytest.mark.requirement("3.7", "3.4", "3.2")
def test_what_a_block_leaves(http: Http, house: Home) -> None:
    with talking(http, cwd="/tmp") as talk:
        done = talk.run("printf 'one\\ntwo'; (exit 4)")
        folder = files_of(house, talk)
        until(lambda: ended(folder, done["block_id"]), "the block to be in blocks.jsonl", 2)
        block = blocks_told(folder)[done["block_id"]]
        names = {"block_id", "cmd", "cwd", "ts_begin", "ts_end", "status", "exit_code", "output_path"}
        assert set(block) >= names, block
        assert (block["cmd"], block["cwd"]) == ("printf 'one\\ntwo'; (exit 4)", "/tmp")
        assert (block["status"], block["exit_code"]) == ("failed", 4)
        assert 0 < block["ts_begin"] <= block["ts_end"]
        output = Path(block["output_path"])
        output = output if output.is_absolute() else folder / output
        assert output == folder / "blocks" / f"{done['block_id']}.out"
        assert output.read_bytes() == b"one\ntwo"
        assert (folder / "output.spool").read_text() == talk.spool()
        assert len(SENTINEL.findall(talk.spool())) == 2


@pytest.mark.requirement("3.2", "3.7")
def test_each_block_begins_once_and_ends_once(http: Http, house: Home) -> None:
    with talking(http) as talk:
        ids = [talk.run(cmd)["block_id"] for cmd in ("echo 1", "true", "seq 1000", "false", "exit 3", "echo again")]
        folder = files_of(house, talk)
        until(lambda: ended(folder, ids[-1]), "the last block to be told", 2)
        events = lines(folder / "events.jsonl")
        kinds = [event.get("type") or event.get("event") for event in events]
        assert {kind for kind in kinds if str(kind).startswith("agent_block_")} >= {
            "agent_block_begin",
            "agent_block_end",
        }, kinds
        for block_id in ids:
            mine = [
                str(event.get("type") or event.get("event")) for event in events if event.get("block_id") == block_id
            ]
            mine = [kind for kind in mine if kind.startswith("agent_block_")]
            assert (mine[0], mine[-1]) == ("agent_block_begin", "agent_block_end"), mine
            assert mine.count("agent_block_begin") == mine.count("agent_block_end") == 1, mine
            assert set(mine[1:-1]) <= {"agent_block_delta"}, mine
        order = [event["block_id"] for event, kind in zip(events, kinds, strict=True) if kind == "agent_block_begin"]
        assert order == ids
        assert any("session_reset" in str(kind) for kind in kinds), kinds


@pytest.mark.requirement("3.7")
def test_they_are_nobody_elses(http: Http, house: Home) -> None:
    with talking(http) as talk:
        done = talk.run("umask 0; echo mine")
        folder = files_of(house, talk)
        until(lambda: ended(folder, done["block_id"]), "the block to be told", 2)
        for path in [folder, *folder.rglob("*")]:
            mode = stat.S_IMODE(path.stat().st_mode)
            assert mode & 0o077 == 0, (path, oct(mode))


@pytest.mark.requirement("3.7", "0.5")
def test_exact_bytes_and_large_output(http: Http, house: Home, tmp_path: Path) -> None:
    data = bytes(range(1, 256)).replace(b"\r", b"").replace(b"\n", b"") * 4000
    (tmp_path / "data").write_bytes(data)
    with talking(http) as talk:
        done = talk.run(f"stty -opost; cat '{tmp_path}/data'; stty opost")
        folder = files_of(house, talk)
        until(lambda: ended(folder, done["block_id"]), "the block to be told", 5)
        kept = (folder / "blocks" / f"{done['block_id']}.out").read_bytes()
        assert (len(kept), hashlib.sha256(kept).hexdigest()) == (len(data), hashlib.sha256(data).hexdigest())


@pytest.mark.requirement("3.7", "3.2")
def test_an_interactive_block_is_told_as_such(http: Http, house: Home) -> None:
    with talking(http) as talk:
        begun = talk.ok("exec_interactive", cmd="echo asking; read x; echo got $x")
        talk.wait_for("asking", begun["resume_cursor"])
        folder = files_of(house, talk)
        talk.ok("send", data="it\r")
        talk.wait_prompt(begun["resume_cursor"])
        until(lambda: ended(folder, begun["block_id"]), "the end to be told", 2)
        assert blocks_told(folder)[begun["block_id"]]["status"] == "completed"
        out = (folder / "blocks" / f"{begun['block_id']}.out").read_text()
        assert "got it\n" in out
        assert "__FWS_PROMPT__" not in out


@pytest.mark.requirement("3.7", "3.9", "1.12")
def test_they_are_projections(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon while a block runs; its files damaged before the next one starts."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    first = talk.run("echo first")["block_id"]
    begun = talk.ok("exec_block", cmd="echo second; read x; echo $x")["block_id"]
    talk.wait_for("second\n", 0)
    folder = files_of(home, talk)
    until(lambda: ended(folder, first), "the first block to be told", 2)
    home.kill_daemon()
    told = (folder / "blocks.jsonl").read_text()
    (folder / "blocks.jsonl").write_text(told[: len(told) // 2])
    (folder / "events.jsonl").unlink()
    for path in (folder / "blocks").iterdir():
        path.write_text("forged")
    home.start()
    talk.ok("send", data="on\r")
    until(lambda: not talk.status().get("active_block_id"), "the block to end")
    until(lambda: ended(folder, begun), "the second block to be told", 5)
    assert set(blocks_told(folder)) == {first, begun}
    assert (folder / "blocks" / f"{begun}.out").read_text().endswith("on\n")
    until(lambda: (folder / "blocks" / f"{first}.out").read_text() == "first\n", "the first one's output to be true", 5)
    events = lines(folder / "events.jsonl")
    begins = [each["block_id"] for each in events if (each.get("type") or each.get("event")) == "agent_block_begin"]
    assert begins == [first, begun]
    talk.ok("close")


@pytest.mark.requirement("3.7")
def test_history_outlives_the_end_of_a_conversation(http: Http, house: Home) -> None:
    with talking(http) as talk:
        block_id = talk.run("echo kept")["block_id"]
        folder = files_of(house, talk)
        until(lambda: ended(folder, block_id), "the block to be told", 2)
        talk.ok("close")
        assert (folder / "blocks" / f"{block_id}.out").read_text() == "kept\n"
        again = talk.run("echo more")["block_id"]
        until(lambda: ended(folder, again), "the new block to be told", 2)
        assert set(blocks_told(folder)) >= {again}
