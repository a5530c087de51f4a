"""The sync client: the async one, on an event loop in a thread of its own."""

import asyncio
import os
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from limpet.client.client import AsyncClient, Params, connect
from limpet.client.methods.inherited import SyncMethods

Result = TypeVar("Result")


def connect_sync(home: str | os.PathLike[str] | None = None, *, start: bool = True) -> "SyncClient":
    """As `connect`, for programs without an event loop: `with limpet.connect_sync() as client`."""
    return SyncClient(connect(home, start=start))


class SyncClient(SyncMethods):
    """May be used from several threads at once."""

    def __init__(self, client: AsyncClient) -> None:
        self._client: Final = client
        self._loop: Final = asyncio.new_event_loop()
        self._thread: Final = threading.Thread(target=self._loop.run_forever, name="limpet-client", daemon=True)

    @property
    def home(self) -> str:
        """As `AsyncClient.home`."""
        return self._client.home

    @property
    def daemon_version(self) -> str | None:
        """As `AsyncClient.daemon_version`."""
        return self._client.daemon_version

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._run(self._client.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run(self._client.__aexit__(kind, error, trace))
        finally:
            self._stop()

    def call(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """As `AsyncClient.call`."""
        return self._run(self._client.call(operation, **params))

    def call_checked(self, operation: str, /, **params: Any) -> dict[str, Any]:
        """As `AsyncClient.call_checked`."""
        return self._run(self._client.call_checked(operation, **params))

    def call_raw(
        self, operation: str, params: Params = None, *, repeat: bool | None = None, as_caller: bool = False
    ) -> dict[str, Any]:
        """As `AsyncClient.call_raw`."""
        return self._run(self._client.call_raw(operation, params, repeat=repeat, as_caller=as_caller))

    def _run(self, work: Coroutine[Any, Any, Result]) -> Result:
        under_way = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return under_way.result()
        except BaseException:  # Ctrl-C here, say: the call must not go on unseen
            under_way.cancel()
            raise

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
