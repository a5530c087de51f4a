"""`limpet attach` as a person has it: a terminal that is taken, talked through and given back (6.3, 3.8)."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest

from .home import LIMPET, Home, until
from .surface import Http
from .talk import talking

SIZES = """
import os, signal
def say(*_):
    print(os.get_terminal_size(), flush=True)
signal.signal(signal.SIGWINCH, say)
signal.signal(signal.SIGINT, signal.SIG_DFL)
print("up", flush=True)
while True:
    signal.pause()
"""


class Person:
    """Somebody at a terminal of their own, with a command in front."""

    def __init__(self, home: Home, *args: str, rows: int = 30, cols: int = 90) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(theirs)
        self._theirs = theirs
        self.process = subprocess.Popen(
            [LIMPET, *args],
            env={**home.env, "TERM": "xterm-256color"},
            cwd=home.work,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        self.seen = b""

    def resize(self, rows: int, cols: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self._ours, keys)

    def sees(self, text: bytes, timeout_s: float = 60) -> None:
        """Waits until it was shown, since what was seen last."""
        deadline = time.monotonic() + timeout_s
        while text not in self.seen:
            left_s = deadline - time.monotonic()
            assert left_s > 0, (text, self.seen[-2000:])
            if select.select([self._ours], [], [], left_s)[0]:
                self.seen += os.read(self._ours, 65536)
        self.seen = self.seen.partition(text)[2]

    def leaves(self) -> int:
        """The exit code, once the command is over; what it still showed is taken."""
        deadline = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < deadline, self.seen[-2000:]
            if select.select([self._ours], [], [], 0.05)[0]:
                self.seen += os.read(self._ours, 65536)
        return self.process.returncode

    def given_back(self) -> bool:
        """Is the terminal as it was before?"""
        now = termios.tcgetattr(self._theirs)
        return now[:4] == self.before[:4]

    def close(self) -> None:
        self.process.kill()
        self.process.wait(20)
        os.close(self._theirs)
        os.close(self._ours)


@pytest.fixture
def people() -> Iterator[list[Person]]:
    made: list[Person] = []
    yield made
    for person in made:
        person.close()


def sit_down(people: list[Person], home: Home, *args: str) -> Person:
    people.append(Person(home, *args))
    return people[-1]


@pytest.mark.requirement("6.3")
def test_a_person_attaches_types_and_detaches(house: Home, http: Http, people: list[Person]) -> None:
    command = "echo before; while read x; do echo got $x; [ $x = end ] && exit 5; done"
    run_id = http.spawn(command, pty=True)
    http.read(run_id, "pty", wait_ms=60_000)
    person = sit_down(people, house, "attach", run_id)
    person.sees(b"before")
    person.type(b"one\r")
    person.sees(b"got one")
    person.type(b"\x1dd")
    assert person.leaves() == 0
    assert person.given_back()
    assert http.facts(run_id)["status"] == "running"
    again = sit_down(people, house, "attach", run_id)
    again.sees(b"got one")
    again.type(b"end\r")
    assert again.leaves() == 5
    assert again.given_back()


@pytest.mark.requirement("6.3", "3.8")
def test_the_window_and_the_keys_go_through(house: Home, http: Http, people: list[Person]) -> None:
    run_id = http.spawn(f"exec {sys.executable} -c '{SIZES}'", pty=True)
    http.read(run_id, "pty", wait_ms=60_000)
    person = sit_down(people, house, "attach", run_id)
    person.sees(b"up")
    until(
        lambda: http.ok("runs.snapshot", {"run_id": run_id})["size"] == {"rows": 30, "cols": 90}, "the size to be told"
    )
    person.resize(33, 101)
    os.kill(person.process.pid, signal.SIGWINCH)
    person.sees(b"columns=101, lines=33")
    person.type(b"\x03")
    assert person.leaves() == 130
    assert person.given_back()
    assert http.finish(run_id)["signal"] == "SIGINT"


@pytest.mark.requirement("6.3")
@pytest.mark.parametrize("number", [signal.SIGTERM.value, signal.SIGHUP.value])
def test_a_signal_gives_the_terminal_back(
    house: Home, http: Http, people: list[Person], number: signal.Signals
) -> None:
    run_id = http.spawn("printf '\\033[?1049hfull'; exec cat", pty=True)
    http.read(run_id, "pty", wait_ms=60_000)
    person = sit_down(people, house, "attach", run_id)
    person.sees(b"full")
    os.kill(person.process.pid, number)
    assert person.leaves() in (128 + number, -number)
    assert person.given_back()
    assert b"\x1b[?1049l" in person.seen
    assert http.facts(run_id)["status"] == "running"
    http.ok("runs.kill", {"run_id": run_id})


@pytest.mark.requirement("6.3", "0.3")
def test_what_cannot_be_attached_is_said(house: Home, http: Http, people: list[Person]) -> None:
    piped = http.spawn("exec sleep 1000")
    for name in (piped, "nosuchrun"):
        person = sit_down(people, house, "attach", name)
        assert person.leaves() == 1
        assert name.encode() in person.seen, person.seen
        assert person.given_back()
    http.ok("runs.kill", {"run_id": piped})
    none = house.limpet("attach", piped)
    assert none.returncode in (1, 2), none
    assert b"terminal" in none.stderr, none


@pytest.mark.requirement("6.3", "3.8")
def test_a_person_and_an_agent_share_a_conversation(house: Home, http: Http, people: list[Person]) -> None:
    with talking(http) as talk:
        person = sit_down(people, house, "attach", talk.id)
        until(lambda: talk.status()["mode"] == "idle", "the shell to be ready")
        talk.run("echo from the $((40 + 2)) agent")
        person.sees(b"from the 42 agent")
        person.type(b"echo from the $((40 + 3)) person\r")
        talk.wait_for("from the 43 person\n", 0)
        person.sees(b"from the 43 person")
        commands = [block["cmd"] for block in talk.ok("blocks.since")["blocks"]]
        assert commands[-1] == "echo from the $((40 + 3)) person"
        person.type(b"\x1dd")
        assert person.leaves() == 0
        assert person.given_back()
