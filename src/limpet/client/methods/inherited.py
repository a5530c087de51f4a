"""What clients inherit: a typed method for each operation."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast, overload

from limpet.client.methods.asking import named

if TYPE_CHECKING:
    from typing import Literal, Unpack

    from limpet.client.methods.backlog import AsyncBacklog, SyncBacklog
    from limpet.client.methods.blocks import AsyncBlocks, SyncBlocks
    from limpet.client.methods.daemon import AsyncDaemon, SyncDaemon
    from limpet.client.methods.exec_events import AsyncExecEvents, SyncExecEvents
    from limpet.client.methods.pty import AsyncPty, SyncPty
    from limpet.client.methods.runs import AsyncRuns, SyncRuns
    from limpet.client.types.shell import (
        ShellKilled,
        ShellLog,
        ShellParams,
        ShellPolled,
        ShellResult,
        ShellSpawned,
        ShellTyped,
    )


class AsyncMethods:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    async def _ask(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        return await self.call_checked(operation, **params)

    async def call_checked(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """Calls an operation by its name; the clients say how."""
        raise NotImplementedError

    @overload
    async def shell(self, *, action: None = None, **params: Unpack[ShellParams]) -> ShellResult: ...

    @overload
    async def shell(self, *, action: Literal["spawn"], **params: Unpack[ShellParams]) -> ShellSpawned: ...

    @overload
    async def shell(self, *, action: Literal["poll"], **params: Unpack[ShellParams]) -> ShellPolled: ...

    @overload
    async def shell(self, *, action: Literal["log"], **params: Unpack[ShellParams]) -> ShellLog: ...

    @overload
    async def shell(self, *, action: Literal["kill"], **params: Unpack[ShellParams]) -> ShellKilled: ...

    @overload
    async def shell(self, *, action: Literal["send_keys"], **params: Unpack[ShellParams]) -> ShellTyped: ...

    async def shell(
        self,
        *,
        action: Literal["spawn", "poll", "log", "kill", "send_keys"] | None = None,
        **params: Unpack[ShellParams],
    ) -> ShellResult | ShellSpawned | ShellPolled | ShellLog | ShellKilled | ShellTyped:
        """Runs a shell command: waits for its result, or leaves it in the background, to be polled and read."""
        asked = named(params)
        if action is not None:
            asked["action"] = action
        return cast(
            "ShellResult | ShellSpawned | ShellPolled | ShellLog | ShellKilled | ShellTyped",
            await self._ask("shell", asked),
        )

    @property
    def backlog(self) -> AsyncBacklog:
        """The operations `backlog.*`."""
        from limpet.client.methods.backlog import AsyncBacklog

        return AsyncBacklog(self._ask)

    @property
    def pty(self) -> AsyncPty:
        """The operations `pty.*`."""
        from limpet.client.methods.pty import AsyncPty

        return AsyncPty(self._ask)

    @property
    def blocks(self) -> AsyncBlocks:
        """The operations `blocks.*`."""
        from limpet.client.methods.blocks import AsyncBlocks

        return AsyncBlocks(self._ask)

    @property
    def runs(self) -> AsyncRuns:
        """The operations `runs.*`."""
        from limpet.client.methods.runs import AsyncRuns

        return AsyncRuns(self._ask)

    @property
    def exec_events(self) -> AsyncExecEvents:
        """The operations `exec_events.*`."""
        from limpet.client.methods.exec_events import AsyncExecEvents

        return AsyncExecEvents(self._ask)

    @property
    def daemon(self) -> AsyncDaemon:
        """The operations `daemon.*`."""
        from limpet.client.methods.daemon import AsyncDaemon

        return AsyncDaemon(self._ask)


class SyncMethods:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def _ask(self, operation: str, params: dict[str, Any]) -> dict[str, Any]:
        return self.call_checked(operation, **params)

    def call_checked(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """Calls an operation by its name; the clients say how."""
        raise NotImplementedError

    @overload
    def shell(self, *, action: None = None, **params: Unpack[ShellParams]) -> ShellResult: ...

    @overload
    def shell(self, *, action: Literal["spawn"], **params: Unpack[ShellParams]) -> ShellSpawned: ...

    @overload
    def shell(self, *, action: Literal["poll"], **params: Unpack[ShellParams]) -> ShellPolled: ...

    @overload
    def shell(self, *, action: Literal["log"], **params: Unpack[ShellParams]) -> ShellLog: ...

    @overload
    def shell(self, *, action: Literal["kill"], **params: Unpack[ShellParams]) -> ShellKilled: ...

    @overload
    def shell(self, *, action: Literal["send_keys"], **params: Unpack[ShellParams]) -> ShellTyped: ...

    def shell(
        self,
        *,
        action: Literal["spawn", "poll", "log", "kill", "send_keys"] | None = None,
        **params: Unpack[ShellParams],
    ) -> ShellResult | ShellSpawned | ShellPolled | ShellLog | ShellKilled | ShellTyped:
        """Runs a shell command: waits for its result, or leaves it in the background, to be polled and read."""
        asked = named(params)
        if action is not None:
            asked["action"] = action
        return cast(
            "ShellResult | ShellSpawned | ShellPolled | ShellLog | ShellKilled | ShellTyped", self._ask("shell", asked)
        )

    @property
    def backlog(self) -> SyncBacklog:
        """The operations `backlog.*`."""
        from limpet.client.methods.backlog import SyncBacklog

        return SyncBacklog(self._ask)

    @property
    def pty(self) -> SyncPty:
        """The operations `pty.*`."""
        from limpet.client.methods.pty import SyncPty

        return SyncPty(self._ask)

    @property
    def blocks(self) -> SyncBlocks:
        """The operations `blocks.*`."""
        from limpet.client.methods.blocks import SyncBlocks

        return SyncBlocks(self._ask)

    @property
    def runs(self) -> SyncRuns:
        """The operations `runs.*`."""
        from limpet.client.methods.runs import SyncRuns

        return SyncRuns(self._ask)

    @property
    def exec_events(self) -> SyncExecEvents:
        """The operations `exec_events.*`."""
        from limpet.client.methods.exec_events import SyncExecEvents

        return SyncExecEvents(self._ask)

    @property
    def daemon(self) -> SyncDaemon:
        """The operations `daemon.*`."""
        from limpet.client.methods.daemon import SyncDaemon

        return SyncDaemon(self._ask)
