"""Who may write to a conversation, and what becomes of what nobody reads."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from .surface import Http
from .talk import talking
from .terminals import TOO_LONG, TOO_LONG_CODES


@pytest.mark.requirement("3.6")
def test_writers_queue_behind_an_expect_send(http: Http) -> None:
    with talking(http) as talk, ThreadPoolExecutor() as pool:
        begun = talk.ok("exec_interactive", cmd="stty -echo; echo up; cat")
        up = talk.wait_for("up", begun["resume_cursor"])
        place = {"from_cursor": up["resume_cursor"], "timeout_ms": 60_000}
        first = pool.submit(talk.ok, "expect_send", expect="go", send="first\r", **place)
        # The lock is held as soon as somebody else finds it so.
        while (busy := talk.call("send", data="early\r", timeout_ms=0))["ok"]:
            pass
        assert (busy["error"], busy["reason"], busy["mode"]) == ("busy", "writing", "interactive")
        second = pool.submit(talk.ok, "send", data="second\r")
        assert talk.status()["mode"] == "interactive"
        assert talk.ok("read_spool")["cursor"] == 0
        talk.ok("send", data="go\r", now=True)
        assert first.result(60)["match_text"] == "go"
        second.result(60)
        spool_at = talk.wait_for("second", 0)["match_cursor"]
        assert spool_at > talk.wait_for("first", 0)["match_cursor"]


@pytest.mark.requirement("3.6")
def test_one_that_timed_out_has_sent_nothing(http: Http) -> None:
    with talking(http) as talk:
        begun = talk.ok("exec_interactive", cmd="cat")
        at = begun["resume_cursor"]
        late = talk.call("expect_send", expect="never", send="nothing\r", from_cursor=at, timeout_ms=100)
        assert (late["error"], late["matched"]) == ("timeout", False)
        talk.ok("send", data="something\r")
        talk.wait_for("something\nsomething\n", 0)
        assert "nothing\n" not in talk.spool()[at:]


@pytest.mark.requirement("F52", "3.2")
def test_a_line_that_the_terminal_would_cut_is_refused(http: Http) -> None:
    with talking(http) as talk:
        talk.ok("exec_interactive", cmd="cat >/dev/null")
        refused = talk.call("send", data="x" * 6000 + "\r")
        assert refused["error"] in TOO_LONG_CODES
        assert TOO_LONG in str(refused)


@pytest.mark.requirement("F53")
def test_what_nobody_reads_is_given_up_in_time(http: Http) -> None:
    """Injector: a program in raw mode that never reads."""
    with talking(http) as talk:
        begun = talk.ok("exec_interactive", cmd="stty raw -echo; echo up; exec sleep 600")
        talk.wait_for("up", begun["resume_cursor"])
        late = talk.call("send", data="x" * 200_000, timeout_ms=300)
        assert late["error"] == "timeout"
        assert 0 < late["written"] < 200_000
        assert talk.status()["mode"] == "interactive"
        again = talk.call("send", data="y" * 200_000, timeout_ms=100)
        assert again["error"] == "timeout"
        assert talk.ok("signal", signal="SIGTERM")["sent"] == 1
        talk.wait_for("", 0, "exit")


@pytest.mark.requirement("F53")
def test_a_terminal_that_was_stopped_holds_nobody_up(http: Http) -> None:
    """Injector: ^S, typed while a program talks without end."""
    with talking(http) as talk:
        begun = talk.ok("exec_interactive", cmd="sh -c 'echo up; while :; do echo on; done'")
        talk.wait_for("on\n", begun["resume_cursor"])
        talk.ok("send", data="\x13")
        stopped = talk.wait_for("200", begun["resume_cursor"], "quiet")
        assert talk.status()["resume_cursor"] == stopped["resume_cursor"]
        talk.ok("send", data="\x11")
        talk.wait_for("on\n", stopped["resume_cursor"])
        talk.ok("send", data="\x13")
        assert talk.ok("end_session")["ended"] is True


@pytest.mark.requirement("3.5")
def test_quiet_and_patterns(http: Http) -> None:
    with talking(http) as talk:
        begun = talk.ok("exec_interactive", cmd="echo one 1; echo two 22; read x")
        at = begun["resume_cursor"]
        talk.wait_for("two 22\n", at)
        quiet = talk.wait_for("100", at, "quiet")
        assert quiet["resume_cursor"] == talk.status()["resume_cursor"]
        assert talk.wait_for("[0-9]+", at, "regex")["match_text"] == "1"
        line = talk.wait_for("^two (?P<n>[0-9]+)$", at, "line")
        assert (line["match_text"], line["extra"]["groups"]["n"]) == ("two 22", "22")
        refused = talk.call("wait_for", match="(a)\\1", match_type="regex", from_cursor=at)
        assert refused["error"] == "invalid_argument"
        beyond = talk.call("wait_for", match="x", from_cursor=1 << 40)
        assert (beyond["error"], beyond["field"]) == ("invalid_argument", "from_cursor")


@pytest.mark.requirement("3.2", "9.pty")
def test_what_no_shell_could_run_is_refused(http: Http) -> None:
    with talking(http) as talk:
        for cmd, code in ((" ", "invalid_argument"), ("a\0b", "invalid_argument"), ("x" * (1 << 20 | 1), "too_large")):
            refused = talk.call("exec_block", cmd=cmd)
            assert (refused["error"], refused["field"]) == (code, "cmd")
        assert talk.call("send", data="nobody\r")["reason"] == "idle"
        assert talk.call("resize", rows=0, cols=80)["error"] == "invalid_argument"
        talk.ok("resize", rows=33, cols=99)
        assert talk.run("stty size")["output"] == "33 99\n"
