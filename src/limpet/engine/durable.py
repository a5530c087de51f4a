"""Makes records durable in groups: whoever comes while the disk works shares the next round."""

import asyncio
import threading
from collections.abc import Callable

_Work = tuple[Callable[[], None], asyncio.Future[None]]


class Durable:
    """One thread that syncs; the event loop never waits for a disk."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._wanted: list[_Work] = []
        self._turn = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="limpet-durable", daemon=True)
        self._thread.start()

    def begin(self, sync: Callable[[], None]) -> asyncio.Future[None]:
        """Done once `sync` has returned; its error is the caller's."""
        future: asyncio.Future[None] = self._loop.create_future()
        with self._turn:
            self._wanted.append((sync, future))
            self._turn.notify()
        return future

    def _run(self) -> None:
        while True:
            with self._turn:
                self._turn.wait_for(lambda: self._wanted or self._closing)
                if not self._wanted:
                    return
                batch, self._wanted = self._wanted, []
            done: list[tuple[asyncio.Future[None], Exception | None]] = []
            for sync, future in batch:
                try:
                    sync()
                    done.append((future, None))
                except Exception as error:  # noqa: BLE001  (the thread goes on; who asked is told)
                    done.append((future, error))
            self._loop.call_soon_threadsafe(_resolve, done)

    def close(self) -> None:
        with self._turn:
            self._closing = True
            self._turn.notify()
        self._thread.join()


def _resolve(done: list[tuple[asyncio.Future[None], Exception | None]]) -> None:
    for future, error in done:
        if future.cancelled():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
