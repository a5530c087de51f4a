"""A daemon and a keeper of different protocols find out, and the run can still be read and killed (F12)."""

from collections.abc import Callable

import pytest

from .fifos import Lifeline
from .home import Home, running, until
from .other_keeper import OtherKeeper
from .remains import attempt_directory, kill_keeper
from .surface import Http

NewHome = Callable[..., Home]


@pytest.mark.requirement("F12", "1.11")
@pytest.mark.parametrize("protocol", [0, 2], ids=["older", "newer"])
def test_a_run_of_another_protocol_is_read_and_killed(new_home: NewHome, lifeline: Lifeline, protocol: int) -> None:
    """Injector: SIGKILL to daemon and keeper; the test itself keeps the run from there, and speaks another protocol."""
    home = new_home()
    home.start()
    run_id = Http(home).spawn("echo said; " + lifeline.hold + "exec sleep 1000")
    pid = int(lifeline.word())
    Http(home).read(run_id, wait_ms=60_000)
    home.kill_daemon()
    kill_keeper(home, run_id)
    with OtherKeeper(attempt_directory(home, run_id), protocol) as keeper:
        home.start()
        http = Http(home)
        until(lambda: keeper.said("hello"), "the daemon to ask who keeps the run")
        # A keeper that lives is no lost one, whatever it speaks.
        facts = http.facts(run_id)
        assert (facts["status"], facts["attempt"], facts["ended_by"]) == ("running", 1, None), facts
        assert running(pid)
        assert http.bytes_of(run_id) == b"said\n"
        assert http.ok("shell", {"command": "echo other"})["stdout"] == "other\n"
        http.ok("runs.kill", {"run_id": run_id})
        assert lifeline.gone(30)
        facts = http.finish(run_id)
    assert (facts["status"], facts["ended_by"], facts["attempt"]) == ("killed", "kill", 1), facts
    assert http.bytes_of(run_id) == b"said\n"
