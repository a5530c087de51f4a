"""`client.blocks`: the operations `blocks.*`."""

# Written by `python -m docs.generate`: change the rows, then run it again.

from typing import Unpack, cast

from limpet.client.methods.asking import Ask, AskNow, named
from limpet.client.types.blocks import (
    BlocksGetAnswer,
    BlocksGetParams,
    BlocksReadAnswer,
    BlocksReadParams,
    BlocksSearchAnswer,
    BlocksSearchParams,
    BlocksSinceAnswer,
    BlocksSinceParams,
)


class AsyncBlocks:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def since(self, **params: Unpack[BlocksSinceParams]) -> BlocksSinceAnswer:
        """Lists a conversation's blocks behind one of them, oldest first."""
        return cast("BlocksSinceAnswer", await self._ask("blocks.since", named(params)))

    async def get(self, **params: Unpack[BlocksGetParams]) -> BlocksGetAnswer:
        """Says all that is known of a block."""
        return cast("BlocksGetAnswer", await self._ask("blocks.get", named(params)))

    async def read(self, **params: Unpack[BlocksReadParams]) -> BlocksReadAnswer:
        """Reads a block's own output, by offset."""
        return cast("BlocksReadAnswer", await self._ask("blocks.read", named(params)))

    async def search(self, **params: Unpack[BlocksSearchParams]) -> BlocksSearchAnswer:
        """Finds text or a pattern in all blocks of a conversation, oldest first."""
        return cast("BlocksSearchAnswer", await self._ask("blocks.search", named(params)))


class SyncBlocks:
    """A failure raises `limpet.LimpetError`; a wait whose time is over answers `ok: False`."""

    def __init__(self, ask: AskNow) -> None:
        self._ask = ask

    def since(self, **params: Unpack[BlocksSinceParams]) -> BlocksSinceAnswer:
        """Lists a conversation's blocks behind one of them, oldest first."""
        return cast("BlocksSinceAnswer", self._ask("blocks.since", named(params)))

    def get(self, **params: Unpack[BlocksGetParams]) -> BlocksGetAnswer:
        """Says all that is known of a block."""
        return cast("BlocksGetAnswer", self._ask("blocks.get", named(params)))

    def read(self, **params: Unpack[BlocksReadParams]) -> BlocksReadAnswer:
        """Reads a block's own output, by offset."""
        return cast("BlocksReadAnswer", self._ask("blocks.read", named(params)))

    def search(self, **params: Unpack[BlocksSearchParams]) -> BlocksSearchAnswer:
        """Finds text or a pattern in all blocks of a conversation, oldest first."""
        return cast("BlocksSearchAnswer", self._ask("blocks.search", named(params)))
