"""A daemon that is killed leaves conversations as they are: same shell, same cursors, blocks that go on."""

from collections.abc import Callable

import pytest

from .home import Home
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
