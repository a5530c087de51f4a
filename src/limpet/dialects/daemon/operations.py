"""`daemon.status`, `daemon.doctor` and `daemon.stop`."""

import os
from typing import Final

import msgspec

from limpet.engine.engine import Engine
from limpet.engine.sinks import SinkState
from limpet.model.operation import Caller, Operation
from limpet_keeper import VERSION


class StatusRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing to say."""


class Counts(msgspec.Struct, frozen=True):
    """How many runs go on, and how many are kept in all."""

    running: int
    total: int


class StatusResponse(msgspec.Struct, frozen=True, kw_only=True):
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


class StopRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether the runs are to end too; without that they go on."""

    kill_runs: bool = False


class StopResponse(msgspec.Struct, frozen=True, kw_only=True):
    """The daemon that is about to end."""

    pid: int


class DoctorRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Nothing to say."""


class CheckInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at, and what to do about it."""

    name: str
    ok: bool
    found: str
    advice: str


class DoctorResponse(msgspec.Struct, frozen=True, kw_only=True):
    """Whether nothing is to be done, and what was looked at."""

    healthy: bool
    checks: list[CheckInfo]


async def status(engine: Engine, _request: StatusRequest, _caller: Caller) -> StatusResponse:
    return StatusResponse(
        pid=os.getpid(),
        version=VERSION,
        home=str(engine.home.path),
        socket=str(engine.home.socket),
        url=engine.url,
        uptime_ms=engine.clock.passed_ms(),
        runs=Counts(**engine.counts()),
        backlog=engine.news.backlog.count,
        sinks=engine.news.standings(),
    )


async def stop(engine: Engine, request: StopRequest, _caller: Caller) -> StopResponse:
    engine.stop_kills_runs = request.kill_runs
    engine.stop_asked.set()
    return StopResponse(pid=os.getpid())


async def doctor(engine: Engine, _request: DoctorRequest, _caller: Caller) -> DoctorResponse:
    checks = [CheckInfo(**msgspec.structs.asdict(check)) for check in engine.examine()]
    return DoctorResponse(healthy=all(check.ok for check in checks), checks=checks)


ROWS: Final = (
    Operation(
        name="daemon.status",
        request=StatusRequest,
        response=StatusResponse,
        handle=status,
        summary="Says which daemon answers: its pid, version, home, age and number of runs.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="daemon.doctor",
        request=DoctorRequest,
        response=DoctorResponse,
        handle=doctor,
        summary="Looks at what limpet stands on: home, disk, SQLite, cgroups, keepers; says what to do about it.",
        reads_only=True,
        repeatable=True,
    ),
    Operation(
        name="daemon.stop",
        request=StopRequest,
        response=StopResponse,
        handle=stop,
        summary="Ends the daemon; its runs go on unless `kill_runs` is set.",
        reads_only=False,
        repeatable=False,
    ),
)
