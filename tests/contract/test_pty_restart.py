"""A daemon that is killed leaves conversations as they are: same shell, same cursors, blocks that go on."""

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .home import Home, until
from .surface import Http
from .talk import Talk


@pytest.mark.requirement("3.9", "1.11")
def test_a_conversation_outlives_the_daemon(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon, while a block waits for input."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    talk.run("kept=1; echo first")
    begun = talk.ok("exec_block", cmd="echo asking; read x; echo got $x; (exit 5)")
    asked = talk.wait_for("asking", 0)
    before = talk.status()
    home.kill_daemon()
    home.start()
    after = talk.status()
    names = ("mode", "active_block_id", "shell_id", "run_id", "blocks", "cwd")
    assert [after[name] for name in names] == [before[name] for name in names]
    talk.ok("send", data="it\r")
    got = talk.wait_for("got it", asked["resume_cursor"])
    back = talk.wait_prompt(got["resume_cursor"])
    assert (back["block_id"], back["exit_code"]) == (begun["block_id"], 5)
    assert talk.run("echo $kept")["output"] == "1\n"
    seqs = [block["seq"] for block in talk.ok("blocks.since")["blocks"]]
    assert seqs == [1, 2, 3]
    talk.ok("close")
    closed, blocks, spool = talk.status(), talk.ok("blocks.since"), talk.spool()
    items = talk.surface.ok("shell", {"action": "log", "run_id": closed["run_id"]})
    home.kill_daemon()
    home.start()
    assert (talk.status(), talk.ok("blocks.since"), talk.spool()) == (closed, blocks, spool)
    assert talk.surface.ok("shell", {"action": "log", "run_id": closed["run_id"]}) == items
    assert talk.ok("open")["run_id"] != closed["run_id"]
    talk.ok("close")


@pytest.mark.requirement("0.9", "3.9")
def test_a_block_that_was_begun_is_run_once_whoever_dies(new_home: Callable[..., Home], tmp_path: Path) -> None:
    """Injector: the keeper is stopped, so that nothing is handed over; then SIGKILL to the daemon."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    talk.ok("open")
    run_id = talk.status()["run_id"]
    keeper = json.loads(
        next((home.path / "runs" / run_id).glob("*/keeper.journal")).read_bytes().split(b"\n")[0].split(b" ", 2)[2]
    )["keeper"]["pid"]
    journal = home.path / "runs" / run_id / "daemon.journal"
    os.kill(keeper, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(talk.call, "run", cmd=f"echo ran >>'{tmp_path}/ran'", key="k")
        until(lambda: b'"block_begun"' in journal.read_bytes(), "the block to be recorded")
        home.kill_daemon()
        assert asked.exception(60) is not None
    os.kill(keeper, signal.SIGCONT)
    home.start()
    done = talk.run(f"echo ran >>'{tmp_path}/ran'", key="k")
    assert (done["exit_code"], done["status"]) == (0, "completed")
    assert (tmp_path / "ran").read_text() == "ran\n"
    assert talk.status()["blocks"] == 1
    talk.ok("close")
