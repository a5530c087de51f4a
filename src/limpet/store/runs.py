"""What the engine asks of a store of runs; every store answers alike."""

from typing import Protocol

import msgspec

from limpet.model.run import Run


class RunFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which runs a list is about; what is None does not narrow."""

    session_id: str | None = None
    status: str | None = None
    dialect: str | None = None
    label: str | None = None
    text: str | None = None
    before: str | None = None
    limit: int = 100


class RunStore(Protocol):
    """A projection of the runs' files: it can be lost, and is then filled again from them."""

    def put(self, run: Run, status: str) -> None:
        """Remembers the run as it is now, soon; reads see it at once."""
        ...

    def get(self, run_id: str) -> Run | None: ...

    def find_key(self, key: str) -> Run | None:
        """The run that was started with this key."""
        ...

    async def list(self, wanted: RunFilter) -> list[Run]:
        """The newest first."""
        ...

    def known_over(self) -> set[str]:
        """The ids of all runs that need no looking after any more."""
        ...

    def count(self) -> int: ...

    def close(self) -> None:
        """Writes what is still to be written."""
        ...
