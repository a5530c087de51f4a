"""`client.daemon`: the operations `daemon.*`."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Unpack, cast

from limpet.client.methods.asking import Ask, AskNow, named
from limpet.client.types.daemon import (
    DaemonDoctorAnswer,
    DaemonDoctorParams,
    DaemonStatusAnswer,
    DaemonStatusParams,
    DaemonStopAnswer,
    DaemonStopParams,
)


class AsyncDaemon:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def status(self, **params: Unpack[DaemonStatusParams]) -> DaemonStatusAnswer:
        """Says which daemon answers: its pid, version, home, age and number of runs."""
        return cast("DaemonStatusAnswer", await self._ask("daemon.status", named(params)))

    async def doctor(self, **params: Unpack[DaemonDoctorParams]) -> DaemonDoctorAnswer:
        """Looks at what limpet stands on: home, disk, SQLite, cgroups, keepers; says what to do about it."""
        return cast("DaemonDoctorAnswer", await self._ask("daemon.doctor", named(params)))

    async def stop(self, **params: Unpack[DaemonStopParams]) -> DaemonStopAnswer:
        """Ends the daemon; its runs go on unless `kill_runs` is set."""
        return cast("DaemonStopAnswer", await self._ask("daemon.stop", named(params)))


class SyncDaemon:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: AskNow) -> None:
        self._ask = ask

    def status(self, **params: Unpack[DaemonStatusParams]) -> DaemonStatusAnswer:
        """Says which daemon answers: its pid, version, home, age and number of runs."""
        return cast("DaemonStatusAnswer", self._ask("daemon.status", named(params)))

    def doctor(self, **params: Unpack[DaemonDoctorParams]) -> DaemonDoctorAnswer:
        """Looks at what limpet stands on: home, disk, SQLite, cgroups, keepers; says what to do about it."""
        return cast("DaemonDoctorAnswer", self._ask("daemon.doctor", named(params)))

    def stop(self, **params: Unpack[DaemonStopParams]) -> DaemonStopAnswer:
        """Ends the daemon; its runs go on unless `kill_runs` is set."""
        return cast("DaemonStopAnswer", self._ask("daemon.stop", named(params)))
