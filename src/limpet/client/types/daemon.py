"""What the operations `daemon.*` take and answer."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Literal, TypedDict


class Counts(TypedDict):
    """How many runs go on, and how many are kept in all."""

    running: int
    total: int


class SinkState(TypedDict):
    """How it goes with one sink: what it was given, what was lost on the way, and why the last call failed."""

    name: str
    delivered: int
    failed: int
    dropped: int
    given_up: int
    waiting: int
    trouble: str | None


class CheckInfo(TypedDict):
    """One thing that was looked at, and what to do about it."""

    name: str
    ok: bool
    found: str
    advice: str


class DaemonStatusParams(TypedDict, total=False):
    """Nothing to say."""


class DaemonStatusAnswer(TypedDict):
    """Who answers, from where, since when, for how many runs; what waits in backlogs, and how it goes with sinks."""

    pid: int
    version: str
    home: str
    socket: str
    url: str | None
    uptime_ms: int
    runs: Counts
    backlog: int
    sinks: list[SinkState]
    ok: Literal[True]


class DaemonDoctorParams(TypedDict, total=False):
    """Nothing to say."""


class DaemonDoctorAnswer(TypedDict):
    """Whether nothing is to be done, and what was looked at."""

    healthy: bool
    checks: list[CheckInfo]
    ok: Literal[True]


class DaemonStopParams(TypedDict, total=False):
    """Whether the runs are to end too; without that they go on."""

    kill_runs: bool


class DaemonStopAnswer(TypedDict):
    """The daemon that is about to end."""

    pid: int
    ok: Literal[True]
