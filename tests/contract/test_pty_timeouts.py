"""What a conversation answers when time is over: all that was said till then, and the cursor behind it (3.1, 3.5)."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .fifos import Gate
from .surface import Http, Surface
from .talk import talking


@pytest.mark.requirement("3.1", "3.5")
def test_a_block_that_is_not_over_answers_all_it_said(surface: Surface, gate: Gate) -> None:
    with talking(surface) as talk:
        late = talk.call("run", cmd=f"printf word; {gate.wait}", timeout_ms=2000)
        assert (late["error"], late["status"], late["output"]) == ("timeout", "running", "word")
        assert late["resume_cursor"] == talk.status()["resume_cursor"]
        gate.open()
        talk.wait_prompt(late["resume_cursor"])


@pytest.mark.requirement("3.2", "3.5")
@pytest.mark.parametrize("match_type", ["prompt", "exit"])
def test_a_wait_in_vain_answers_the_size_of_the_spool(http: Http, match_type: str) -> None:
    """Output that nobody waited for counts too."""
    with talking(http) as talk, ThreadPoolExecutor() as pool:
        at = talk.ok("exec_interactive", cmd="read x; printf word; read y")["resume_cursor"]
        vain = pool.submit(talk.call, "wait_for", match_type=match_type, from_cursor=at, timeout_ms=2500)
        talk.ok("send", data="\r")
        late = vain.result(60)
        assert (late["error"], late["matched"]) == ("timeout", False)
        assert talk.spool().endswith("word")
        assert late["resume_cursor"] == talk.status()["resume_cursor"]
