"""What programs ask their terminal: seen as it passes, and answered once, while whoever asked can read the answer.

Imported by keepers of terminals alone. See docs/adr/0022.
"""

from __future__ import annotations

import termios

from limpet_keeper.control import Refused
from limpet_keeper.stdin import Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from limpet_keeper.control import Connection
    from limpet_keeper.keeper import Keeper

# Each stands in a question, and in little else. Who answers looks closer.
SIGNS = (
    *(b"\x1b[c", b"\x1b[0c", b"\x1b[>", b"\x1b[=", b"\x1bZ", b"\x1b[5n", b"\x1b[6n", b"\x1b[?6n", b"996n"),
    *(b"\x1b[14t", b"\x1b[16t", b"\x1b[18t", b"\x1b[?u", b"$p", b"\x1bP", b"\x1b_", b";?"),
)
OVERLAP_BYTES = 16
MOST_ANSWER_BYTES = 4096


class Questions:
    """Those of one terminal."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._last = b""
        self._asked: tuple[int, int] | None = None
        # Up to where what was asked has been answered.
        self._answered = -1

    def look(self, data: bytes, start: int, end: int) -> None:
        """Looks at what was just said, and stands at [start, end) of the spool."""
        both = self._last + data
        self._last = both[-OVERLAP_BYTES:]
        if b"\x1b" in both and self._can_be_answered() and _asks(both):
            self._asked = (start, end)
            self._last = b""

    def tell(self) -> None:
        """Writes down that something was asked, in bytes that are in the spool by now."""
        if self._asked is not None:
            start, end = self._asked
            self._asked = None
            self._keeper.journal.append("asked", start=start, end=end)

    def answer(self, connection: Connection, to: float | None, data: bytes, of: int | None) -> None:
        """Types the answer to what was asked up to `of`, once; without `of`, a terminal's that somebody looks at."""
        stdin, size = self._keeper.stdin, self._keeper.spools[0].size
        if of is not None and of <= self._answered:
            raise Refused("conflict", "that was answered")
        self._answered = size if of is None else of
        if stdin is None or stdin.queue or not self._can_be_answered():
            raise Refused("conflict", "nobody reads the answer")
        stdin.submit(Write(connection, to, data[:MOST_ANSWER_BYTES], False, False))

    def _can_be_answered(self) -> bool:
        """Whether line mode is off, and it is not the shell that is in front: else the answer would be a command's."""
        keeper = self._keeper
        try:
            if termios.tcgetattr(keeper.terminal_fd)[3] & termios.ICANON:
                return False
        except (OSError, termios.error):
            return False
        shell = keeper.conversation
        return shell is None or not shell.is_in_front()


def _asks(data: bytes) -> bool:
    return any(sign in data for sign in SIGNS)
