"""The person's own terminal: made raw, written to, and given back as it was, whatever happens in between."""

import contextlib
import os
import re
import select
import termios
from typing import Any, Final

from limpet.model.errors import Refusal

# What a program may have left behind: modes of keys, mouse, pastes, margins, characters, colours, a hidden cursor.
_PUT_BACK: Final = (
    b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1004l\x1b[?1005l\x1b[?1006l\x1b[?1015l\x1b[?2004l\x1b[?2026l\x1b[?9l"
    b"\x1b[?1l\x1b[?66l\x1b>\x1b[>4;0m\x1b[<99u\x1b[?7h\x1b[4l\x1b7\x1b[r\x1b8\x1b(B\x0f\x1b[0m"
    b"\x1b[?25h\x1b[0 q"
)
_SCREEN: Final = re.compile(rb"\x1b\[\?(?:[0-9;]*;)?(?:1049|1047|47)(?:;[0-9;]*)?([hl])|\x1b(c)")
_OVERLAP_BYTES: Final = 32


class OwnTerminal:
    """Standard input and output, which must be one terminal."""

    def __init__(self) -> None:
        if not (os.isatty(0) and os.isatty(1)):
            message = "standard input and output must be a terminal: `limpet logs -f` and `limpet send` need none"
            raise Refusal("invalid_argument", message)
        self._before: list[Any] = termios.tcgetattr(0)
        self._last = b""
        self.is_alternate = False

    def __enter__(self) -> "OwnTerminal":
        raw = termios.tcgetattr(0)
        raw[0] &= ~(termios.IGNBRK | termios.BRKINT | termios.PARMRK | termios.ISTRIP | termios.INLCR | termios.IGNCR)
        raw[0] &= ~(termios.ICRNL | termios.IXON)
        raw[1] &= ~termios.OPOST
        raw[3] &= ~(termios.ECHO | termios.ECHONL | termios.ICANON | termios.ISIG | termios.IEXTEN)
        raw[6][termios.VMIN], raw[6][termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSADRAIN, raw)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # it was hung up: there is nobody to give it back to
            self.show(b"\x18" + _PUT_BACK + (b"\x1b[?1049l" if self.is_alternate else b"") + b"\r\n")
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSAFLUSH, self._before)

    def show(self, data: bytes) -> None:
        """Writes all of it; notes which screen is on. May wait for whoever looks."""
        for found in _SCREEN.finditer(self._last + data):
            self.is_alternate = found[1] == b"h"
        self._last = (self._last + data)[-_OVERLAP_BYTES:]
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(1, view) :]
            except BlockingIOError:
                select.select((), (1,), ())

    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        cols, rows = os.get_terminal_size(1)
        return max(1, rows), max(1, cols)
