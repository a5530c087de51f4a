"""`client.runs`: the operations `runs.*`."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Unpack, cast

from limpet.client.methods.asking import Ask, AskNow, named
from limpet.client.types.runs import (
    RunsAnswerAnswer,
    RunsAnswerParams,
    RunsAttendAnswer,
    RunsAttendParams,
    RunsGetAnswer,
    RunsGetParams,
    RunsKillAnswer,
    RunsKillParams,
    RunsListAnswer,
    RunsListParams,
    RunsPruneAnswer,
    RunsPruneParams,
    RunsReadAnswer,
    RunsReadParams,
    RunsResizeAnswer,
    RunsResizeParams,
    RunsSearchAnswer,
    RunsSearchParams,
    RunsSignalAnswer,
    RunsSignalParams,
    RunsSnapshotAnswer,
    RunsSnapshotParams,
    RunsVerifyAnswer,
    RunsVerifyParams,
    RunsWaitAnswer,
    RunsWaitParams,
    RunsWaitTimeout,
    RunsWriteAnswer,
    RunsWriteParams,
)


class AsyncRuns:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def list(self, **params: Unpack[RunsListParams]) -> RunsListAnswer:
        """Lists runs, the newest first, narrowed by session, status, dialect, label or command text."""
        return cast("RunsListAnswer", await self._ask("runs.list", named(params)))

    async def get(self, **params: Unpack[RunsGetParams]) -> RunsGetAnswer:
        """Tells all that is known of one run."""
        return cast("RunsGetAnswer", await self._ask("runs.get", named(params)))

    async def read(self, **params: Unpack[RunsReadParams]) -> RunsReadAnswer:
        """Reads a range of a run's output by offset, or its end; can wait for more to come."""
        return cast("RunsReadAnswer", await self._ask("runs.read", named(params)))

    async def kill(self, **params: Unpack[RunsKillParams]) -> RunsKillAnswer:
        """Ends a run with every process of it: the signal, a grace, then a kill that nothing escapes."""
        return cast("RunsKillAnswer", await self._ask("runs.kill", named(params)))

    async def signal(self, **params: Unpack[RunsSignalParams]) -> RunsSignalAnswer:
        """Sends one signal to what a run does now, and nothing more."""
        return cast("RunsSignalAnswer", await self._ask("runs.signal", named(params)))

    async def write(self, **params: Unpack[RunsWriteParams]) -> RunsWriteAnswer:
        """Writes input to a run with an open stdin or a terminal."""
        return cast("RunsWriteAnswer", await self._ask("runs.write", named(params)))

    async def snapshot(self, **params: Unpack[RunsSnapshotParams]) -> RunsSnapshotAnswer:
        """Shows what stands on the screen of a run's terminal, as a person would see it."""
        return cast("RunsSnapshotAnswer", await self._ask("runs.snapshot", named(params)))

    async def resize(self, **params: Unpack[RunsResizeParams]) -> RunsResizeAnswer:
        """Tells a run's terminal its size."""
        return cast("RunsResizeAnswer", await self._ask("runs.resize", named(params)))

    async def attend(self, **params: Unpack[RunsAttendParams]) -> RunsAttendAnswer:
        """Says, for as long as it waits, that a terminal looks at a run; whether that one answers for it."""
        return cast("RunsAttendAnswer", await self._ask("runs.attend", named(params)))

    async def answer(self, **params: Unpack[RunsAnswerParams]) -> RunsAnswerAnswer:
        """Answers a program that asked the terminal, if it still can be."""
        return cast("RunsAnswerAnswer", await self._ask("runs.answer", named(params)))

    async def wait(self, **params: Unpack[RunsWaitParams]) -> RunsWaitAnswer | RunsWaitTimeout:
        """Waits for the first of several things to hold for any of several runs: an end, output, quiet, a port."""
        return cast("RunsWaitAnswer | RunsWaitTimeout", await self._ask("runs.wait", named(params)))

    async def search(self, **params: Unpack[RunsSearchParams]) -> RunsSearchAnswer:
        """Finds text or a pattern in the output of runs, the newest first."""
        return cast("RunsSearchAnswer", await self._ask("runs.search", named(params)))

    async def prune(self, **params: Unpack[RunsPruneParams]) -> RunsPruneAnswer:
        """Removes runs that are over, oldest first, by age or by the room they take; `dry_run` only says which."""
        return cast("RunsPruneAnswer", await self._ask("runs.prune", named(params)))

    async def verify(self, **params: Unpack[RunsVerifyParams]) -> RunsVerifyAnswer:
        """Compares every record, spool and row with what was written; changes nothing, may run at any time."""
        return cast("RunsVerifyAnswer", await self._ask("runs.verify", named(params)))


class SyncRuns:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: AskNow) -> None:
        self._ask = ask

    def list(self, **params: Unpack[RunsListParams]) -> RunsListAnswer:
        """Lists runs, the newest first, narrowed by session, status, dialect, label or command text."""
        return cast("RunsListAnswer", self._ask("runs.list", named(params)))

    def get(self, **params: Unpack[RunsGetParams]) -> RunsGetAnswer:
        """Tells all that is known of one run."""
        return cast("RunsGetAnswer", self._ask("runs.get", named(params)))

    def read(self, **params: Unpack[RunsReadParams]) -> RunsReadAnswer:
        """Reads a range of a run's output by offset, or its end; can wait for more to come."""
        return cast("RunsReadAnswer", self._ask("runs.read", named(params)))

    def kill(self, **params: Unpack[RunsKillParams]) -> RunsKillAnswer:
        """Ends a run with every process of it: the signal, a grace, then a kill that nothing escapes."""
        return cast("RunsKillAnswer", self._ask("runs.kill", named(params)))

    def signal(self, **params: Unpack[RunsSignalParams]) -> RunsSignalAnswer:
        """Sends one signal to what a run does now, and nothing more."""
        return cast("RunsSignalAnswer", self._ask("runs.signal", named(params)))

    def write(self, **params: Unpack[RunsWriteParams]) -> RunsWriteAnswer:
        """Writes input to a run with an open stdin or a terminal."""
        return cast("RunsWriteAnswer", self._ask("runs.write", named(params)))

    def snapshot(self, **params: Unpack[RunsSnapshotParams]) -> RunsSnapshotAnswer:
        """Shows what stands on the screen of a run's terminal, as a person would see it."""
        return cast("RunsSnapshotAnswer", self._ask("runs.snapshot", named(params)))

    def resize(self, **params: Unpack[RunsResizeParams]) -> RunsResizeAnswer:
        """Tells a run's terminal its size."""
        return cast("RunsResizeAnswer", self._ask("runs.resize", named(params)))

    def attend(self, **params: Unpack[RunsAttendParams]) -> RunsAttendAnswer:
        """Says, for as long as it waits, that a terminal looks at a run; whether that one answers for it."""
        return cast("RunsAttendAnswer", self._ask("runs.attend", named(params)))

    def answer(self, **params: Unpack[RunsAnswerParams]) -> RunsAnswerAnswer:
        """Answers a program that asked the terminal, if it still can be."""
        return cast("RunsAnswerAnswer", self._ask("runs.answer", named(params)))

    def wait(self, **params: Unpack[RunsWaitParams]) -> RunsWaitAnswer | RunsWaitTimeout:
        """Waits for the first of several things to hold for any of several runs: an end, output, quiet, a port."""
        return cast("RunsWaitAnswer | RunsWaitTimeout", self._ask("runs.wait", named(params)))

    def search(self, **params: Unpack[RunsSearchParams]) -> RunsSearchAnswer:
        """Finds text or a pattern in the output of runs, the newest first."""
        return cast("RunsSearchAnswer", self._ask("runs.search", named(params)))

    def prune(self, **params: Unpack[RunsPruneParams]) -> RunsPruneAnswer:
        """Removes runs that are over, oldest first, by age or by the room they take; `dry_run` only says which."""
        return cast("RunsPruneAnswer", self._ask("runs.prune", named(params)))

    def verify(self, **params: Unpack[RunsVerifyParams]) -> RunsVerifyAnswer:
        """Compares every record, spool and row with what was written; changes nothing, may run at any time."""
        return cast("RunsVerifyAnswer", self._ask("runs.verify", named(params)))
