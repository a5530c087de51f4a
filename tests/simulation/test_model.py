"""Histories that Hypothesis thinks of: daemon, keepers, disk and clients in any order, and smaller where one fails."""

from __future__ import annotations

import shutil
import tempfile
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from limpet.dialects.shell.types import ShellRequest
from limpet.testing.simulation.checks import check_rest
from limpet.testing.simulation.daemon import Daemon
from limpet.testing.simulation.ground import SeenStore
from limpet.testing.simulation.history import History
from limpet.testing.simulation.watching import Asked

STEPS = st.lists(st.sampled_from(["o5", "o900", "e17", "o20000", "p5", "p300", "t", "b40"]), max_size=4)
ENDS = st.sampled_from(["x0", "x3", "kSIGKILL", "h"])


class Machine(RuleBasedStateMachine):
    """A history whose events are the rules; what must hold is looked at as in those from seeds."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="limpet-sim-"))
        self.history = history = History(0, self.base / "h")
        history.machine.home.mkdir(mode=0o700)
        self.stack = ExitStack()
        self.stack.callback(shutil.rmtree, self.base, ignore_errors=True)
        self.stack.enter_context(history.machine.in_place())
        self.stack.callback(history.machine.close)
        self.started = 0

    def let(self, seconds: float) -> None:
        """So much happens."""
        daemon = self.history.daemon
        if daemon is None:
            self.history.world.run_for(seconds)
            return
        daemon.go_on(seconds)
        if not daemon.has_begun:
            self.history.daemon = None

    def begin_daemon(self) -> None:
        history = self.history
        history.store = SeenStore(history.machine, history.store.done)
        history.daemon = Daemon(history.machine, history.config, history.store)
        history.daemon.begin()

    def strike(self, fault: str) -> None:
        self.history.world.after(0, lambda: self.history.strike(fault))
        self.let(0.001)

    @precondition(lambda self: self.history.daemon is None)
    @rule()
    def start_daemon(self) -> None:
        self.begin_daemon()
        self.let(0.05)

    @rule(seconds=st.sampled_from([0.001, 0.01, 0.1, 1.0]))
    def wait(self, seconds: float) -> None:
        self.let(seconds)

    @rule(
        steps=STEPS,
        end=ENDS,
        session=st.sampled_from([None, "a", "b"]),
        has_key=st.booleans(),
        timeout_secs=st.sampled_from([None, 0.3]),
        on_lost=st.sampled_from([None, "fail"]),
    )
    def spawn(
        self,
        steps: list[str],
        end: str,
        session: str | None,
        has_key: bool,
        timeout_secs: float | None,
        on_lost: str | None,
    ) -> None:
        self.started += 1
        request = ShellRequest(
            action="spawn",
            command=" ".join([*steps, end]),
            session_id=session,
            key=f"k{self.started}" if has_key else None,
            timeout_secs=timeout_secs,
            on_lost="fail" if on_lost else None,
            env={"CALL": str(self.started)},
        )
        asked = Asked(self.history.world, self.started, request)
        self.history.world.after(0, lambda: self.history.start(asked))
        self.let(0.001)

    def ask(self, number: int, action: str) -> None:
        known = [asked for asked in self.history.asked if asked.run_id is not None]
        if known:
            asked = known[number % len(known)]
            request = ShellRequest(action="poll" if action == "poll" else "kill", run_id=asked.run_id)
            self.history.world.after(0, lambda: self.history.ask(asked, request))
            self.let(0.001)

    @rule(number=st.integers(0, 9))
    def poll(self, number: int) -> None:
        self.ask(number, "poll")

    @rule(number=st.integers(0, 9))
    def kill(self, number: int) -> None:
        self.ask(number, "kill")

    @rule()
    def crash(self) -> None:
        self.strike("crash")

    @rule()
    def crash_at_change(self) -> None:
        self.strike("crash at change")

    @rule()
    def stop(self) -> None:
        self.strike("stop")

    @rule()
    def kill_keeper(self) -> None:
        self.strike("kill keeper")

    @rule()
    def reboot(self) -> None:
        self.strike("reboot")

    @rule()
    def fill_disk(self) -> None:
        self.strike("full")

    @rule()
    def lose_database(self) -> None:
        self.strike("database")

    def teardown(self) -> None:
        """All comes to rest, and what is kept is compared with what happened."""
        history = self.history
        with self.stack:
            history.is_ending = True
            if history.daemon is None:
                self.start_daemon()
            self.let(5.0)  # who asked for something just now is answered
            history.world.after(0, history.rest)
            while not history.is_at_rest:
                if history.daemon is None:
                    self.start_daemon()
                self.let(10.0)
            while history.daemon is not None:
                self.let(1.0)
            history.machine.reboot()
            check_rest(history.machine, SeenStore(history.machine, history.store.done), history.asked)


TestMachine = pytest.mark.requirement("0.9", "1.10", "1.11", "F13", "F16")(Machine.TestCase)
TestMachine.settings = settings(max_examples=15, stateful_step_count=30, deadline=None, database=None)
