"""A terminal without a window: takes a program's bytes, says what stands on the screen. The only door to pyghostty.

Imported when a screen is first asked for: the library takes 150 ms and 10 MB. One emulator is for one thread at a time.
"""

import re
from typing import Any, Final

import pyghostty  # pyright: ignore[reportMissingTypeStubs]
from pyghostty import core  # pyright: ignore[reportMissingTypeStubs]

from limpet.model.screen import Cursor, Picture, Rgb

# A larger screen is drawn as large as this: nobody looks at one, and to make it costs seconds.
MAX_SIDE: Final = 1000
# What scrolls off costs a copy of the screen for each line, unless the library has pages to spare; it keeps some 600.
_SCROLLBACK_LINES: Final = 2000
_TITLE_MAX_CHARS: Final = 1024
# What changes what keys, mouse and pastes send: somebody else's terminal needs it to go on from here.
MODES: Final = (1, 9, 66, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 2004)
# What a program is told that asks for the colours.
_FRONT: Final[Rgb] = (229, 229, 229)
_BACK: Final[Rgb] = (0, 0, 0)
# The library puts its palette ahead of what it renders with colours.
_PALETTE: Final = re.compile(r"\x1b\]4;(\d+);rgb:([0-9a-f]{2})/([0-9a-f]{2})/([0-9a-f]{2})\x1b\\")

_core: Any = core
_ffi: Any = pyghostty.ffi
_lib: Any = pyghostty.lib


class Emulator:
    """One screen of a size. What its replies would be is kept in `replies` until somebody takes it."""

    def __init__(self, rows: int, cols: int) -> None:
        self._terminal: Any = _core.Terminal(
            _side(cols), _side(rows), scrollback=_SCROLLBACK_LINES, fg=_FRONT, bg=_BACK
        )
        no_images: Any = _ffi.new("uint64_t*", 0)
        _lib.ghostty_terminal_set(self._terminal._t[0], _lib.GHOSTTY_TERMINAL_OPT_KITTY_IMAGE_STORAGE_LIMIT, no_images)  # noqa: SLF001
        self._replies: list[bytes] = []
        self._terminal.on_reply(self._replies.append)

    def feed(self, data: bytes) -> None:
        """Takes what a program said, as it said it."""
        self._terminal.feed(data)

    def resize(self, rows: int, cols: int) -> None:
        self._terminal.resize(_side(cols), _side(rows))

    def take_replies(self) -> bytes:
        """What the program that was fed is to be answered, since this was asked last."""
        taken = b"".join(self._replies)
        self._replies.clear()
        return taken

    def picture(self) -> Picture:
        """What stands on the screen now."""
        cols, rows = self._terminal.size
        rendered = self._render()
        palette: dict[int, Rgb] = {}
        end = 0
        for found in _PALETTE.finditer(rendered):
            if found.start() != end:
                break
            number, *color = found.groups()
            palette[int(number)] = (int(color[0], 16), int(color[1], 16), int(color[2], 16))
            end = found.end()
        lines = rendered[end:].split("\r\n")[:rows]
        col, row = self._terminal.cursor
        return Picture(
            rows=lines + [""] * (rows - len(lines)),
            palette=palette,
            cursor=Cursor(row=row, col=col, visible=bool(self._terminal.get("cursor_visible", "bool"))),
            title=self._title(),
            is_alternate=self._terminal.get("active_screen", "int") == 1,
            modes=[mode for mode in MODES if self._terminal.mode(mode)],
            size=(rows, cols),
        )

    def _render(self) -> str:
        """The screen as text and SGR sequences."""
        cols, rows = self._terminal.size
        options: Any = _core.init_sized("GhosttyTerminalSelectionFormatOptions")
        selection: Any = _core.init_sized("GhosttySelection")
        selection.start = self._terminal.ref(0, 0)[0]
        selection.end = self._terminal.ref(cols - 1, rows - 1)[0]
        options.emit = _lib.GHOSTTY_FORMATTER_FORMAT_VT
        options.unwrap, options.trim, options.selection = False, False, selection
        handle: Any = self._terminal._t[0]  # noqa: SLF001
        format_into: Any = _lib.ghostty_terminal_selection_format_buf
        size: Any = _ffi.new("size_t*")
        format_into(handle, options[0], _ffi.NULL, 0, size)  # says how much room it needs
        room: Any = _ffi.new("uint8_t[]", max(1, size[0]))
        _core.check(format_into(handle, options[0], room, len(room), size), "format")
        data: bytes = _ffi.buffer(room, size[0])[:]
        return data.decode(errors="replace")  # what it renders of broken text is not always UTF-8

    def _title(self) -> str:
        text: Any = self._terminal.get("title", "GhosttyString")
        data: bytes = _ffi.buffer(text.ptr, text.len)[:] if text.len else b""
        return data.decode(errors="replace")[:_TITLE_MAX_CHARS]


def _side(asked: int) -> int:
    return max(1, min(MAX_SIDE, asked))
