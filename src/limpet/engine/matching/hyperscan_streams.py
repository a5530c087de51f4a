"""The one module that touches hyperscan, whose binding must be handled with care: databases, and streams over them."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from limpet.model.errors import Refusal

if TYPE_CHECKING:
    import hyperscan

Found = tuple[int, int, int]
"""The number of an expression, and from where to where it matched, counted from the stream's start."""


class TooLarge(Exception):  # noqa: N818  (the engine says no; the caller makes a refusal of it)
    """The engine does not take these expressions, in its own words."""


def engine() -> Any:
    """hyperscan, or a refusal where there is none."""
    try:
        return importlib.import_module("hyperscan")
    except ImportError as missing:
        raise Refusal(
            "unavailable",
            "matching a regex on a stream needs the package hyperscan, which exists for Linux only: "
            "use match_type `line` or `substring`",
            reason="no_stream_engine",
        ) from missing


class Database:
    """Expressions compiled for streams. Compiling releases the interpreter's lock; it can take a second."""

    def __init__(self, expressions: Sequence[bytes], *, once: bool) -> None:
        """`once`: each expression is found once at most, and where it began is not told (0)."""
        hs = engine()
        self._hs = hs
        self.once = once
        self._database: hyperscan.Database = hs.Database(mode=hs.HS_MODE_STREAM | hs.HS_MODE_SOM_HORIZON_LARGE)
        flags = hs.HS_FLAG_MULTILINE | (hs.HS_FLAG_SINGLEMATCH if once else hs.HS_FLAG_SOM_LEFTMOST)
        try:
            self._database.compile(
                expressions=list(expressions), ids=list(range(len(expressions))), flags=[flags] * len(expressions)
            )
        except hs.error as error:
            raise TooLarge(str(error)) from None
        # The scratch space belongs to the database: one scan at a time, whichever threads its streams are used in.
        self._alone = threading.Lock()

    def open(self) -> Stream:
        return Stream(self._hs, self._database, self._alone, once=self.once)


class Stream:
    """Bytes in pieces. To be closed once, and not used again when a scan has found something (`once` apart)."""

    def __init__(self, hs: Any, database: hyperscan.Database, alone: threading.Lock, *, once: bool) -> None:
        self._found: list[Found] = []
        self._alone = alone
        self._stops: type[Exception] = hs.ScanTerminated
        self._open = True
        found = self._found

        def note(number: int, start: int, end: int, _flags: int, _context: object) -> bool:
            found.append((number, start, end))
            return not once

        # The binding counts no reference of its own to what it is given. `stream` counts one too many for what it
        # returns, `__enter__` one too few: exactly one of each, or memory is lost or freed twice.
        self._kept = (database, note)
        self._stream: Any = database.stream(match_event_handler=note)
        self._stream.__enter__()

    def scan(self, data: bytes | memoryview) -> list[Found]:
        """What was found first, if anything (`once`: all that was found now). Releases the interpreter's lock."""
        try:
            with self._alone:
                self._stream.scan(data)
        except self._stops:
            pass
        return self._taken()

    def close(self) -> list[Found]:
        """What only the end of the bytes completes."""
        if not self._open:
            return []
        self._open = False
        with self._alone:
            self._stream.close()
        return self._taken()

    def _taken(self) -> list[Found]:
        found = self._found.copy()
        self._found.clear()
        return found

    def __del__(self) -> None:
        if getattr(self, "_open", False) and hasattr(self, "_stream"):
            self.close()
