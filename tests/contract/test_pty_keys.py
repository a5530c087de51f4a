"""Input with a key is typed at most once: again, by many at a time, after the block has ended, and after a crash."""

import json
import os
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from .home import Home, until
from .surface import Http, Surface
from .talk import Talk, talking


@pytest.mark.requirement("0.9", "3.6")
def test_what_is_sent_with_a_key_is_typed_once(surface: Surface) -> None:
    with talking(surface) as talk:
        begun = talk.ok("exec_interactive", cmd="sh -c 'stty -echo; echo up; read a; read b; echo got $a $b'")
        talk.wait_for("up\n", begun["resume_cursor"])
        with ThreadPoolExecutor() as pool:
            sent = [pool.submit(talk.call, "send", data="one\r", key="k1") for _ in range(4)]
        assert [each.result() for each in sent] == [{"ok": True}] * 4
        refused = talk.call("send", data="other\r", key="k1")
        assert (refused["error"], refused["reason"]) == ("conflict", "key_reused")
        talk.ok("send", data="two\r", key="k2")
        talk.wait_for("got one two", begun["resume_cursor"])
        talk.wait_prompt(begun["resume_cursor"])
        assert talk.ok("send", data="two\r", key="k2") == {"ok": True}
        assert talk.call("send", data="three\r", key="k3")["reason"] == "idle"


@pytest.mark.requirement("0.9", "3.6")
def test_an_expect_send_with_a_key_answers_the_same_again(http: Http) -> None:
    with talking(http) as talk:
        begun = talk.ok(
            "exec_interactive", cmd="sh -c 'stty -echo; echo name?; read a; echo name?; read b; echo $a-$b'"
        )
        asked = {"expect": "name?", "from_cursor": begun["resume_cursor"], "timeout_ms": 60_000}
        first = talk.ok("expect_send", send="me\r", key="k1", **asked)
        assert talk.ok("expect_send", send="me\r", key="k1", **asked) == first
        assert talk.call("expect_send", send="you\r", key="k1", **asked)["reason"] == "key_reused"
        late = asked | {"from_cursor": first["resume_cursor"]}
        talk.ok("expect_send", send="you\r", key="k2", **late)
        talk.wait_for("me-you", first["resume_cursor"])
        talk.wait_prompt(first["resume_cursor"])
        assert talk.ok("expect_send", send="me\r", key="k1", **asked) == first


@pytest.mark.requirement("0.9", "F53")
def test_what_was_not_read_in_time_stays_so_under_its_key(http: Http) -> None:
    """Injector: a program in raw mode that never reads."""
    with talking(http) as talk:
        begun = talk.ok("exec_interactive", cmd="stty raw -echo; echo up; exec sleep 600")
        talk.wait_for("up", begun["resume_cursor"])
        late = talk.call("send", data="x" * 200_000, timeout_ms=300, key="k")
        assert (late["error"], 0 < late["written"] < 200_000) == ("timeout", True)
        assert talk.call("send", data="x" * 200_000, timeout_ms=300, key="k") == late


@pytest.mark.requirement("0.9", "3.9")
def test_input_with_a_key_is_typed_once_whoever_dies(new_home: Callable[..., Home]) -> None:
    """Injector: SIGKILL to the daemon, before it hears that the input was taken; the keeper is stopped meanwhile."""
    home = new_home()
    home.start()
    talk = Talk(Http(home), "c1")
    begun = talk.ok("exec_interactive", cmd="sh -c 'stty -echo; echo up; cat'")
    talk.wait_for("up\n", begun["resume_cursor"])
    talk.ok("send", data="first\r", key="k1")
    run_id = talk.status()["run_id"]
    first = next((home.path / "runs" / run_id).glob("*/keeper.journal")).read_bytes().split(b"\n")[0]
    keeper = json.loads(first.split(b" ", 2)[2])["keeper"]["pid"]
    journal = home.path / "runs" / run_id / "daemon.journal"
    os.kill(keeper, signal.SIGSTOP)
    with ThreadPoolExecutor() as pool:
        asked = pool.submit(talk.call, "send", data="second\r", key="k2")
        until(lambda: journal.read_bytes().count(b'"input_asked"') == 2, "the input to be recorded")
        home.kill_daemon()
        assert asked.exception(60) is not None
    os.kill(keeper, signal.SIGCONT)
    home.start()
    assert talk.ok("send", data="first\r", key="k1") == {"ok": True}
    assert talk.call("send", data="other\r", key="k2")["reason"] == "key_reused"
    talk.ok("send", data="last\r")
    talk.wait_for("last\n", 0)
    typed = talk.spool().split("up\n")[1]
    assert (typed.count("first"), typed.count("second") <= 1) == (1, True)
    talk.ok("close")


@pytest.mark.requirement("3.3", "3.9")
def test_a_reset_is_an_item_of_the_run(http: Http) -> None:
    with talking(http) as talk:
        ended = talk.run("exit 3")
        talk.run("true")  # the next shell is there, to be ended too
        talk.ok("reset")
        run_id = talk.status()["run_id"]
    items = http.ok("shell", {"action": "log", "run_id": run_id})["items"]
    resets = [item["data"] for item in items if item.get("event") == "session_reset"]
    assert [(reset["block_id"], reset["exit_code"], reset["signal"]) for reset in resets] == [
        (ended["block_id"], 3, None),
        (None, None, "SIGKILL"),
    ]
