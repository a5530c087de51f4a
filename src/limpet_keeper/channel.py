"""A keeper's connection to the shell of a conversation: lines to it, the text of blocks, what it exports."""

from __future__ import annotations

import os
import time

from limpet_keeper import system
from limpet_keeper.control import RECEIVE_BYTES, unread_bytes
from limpet_keeper.loop import READ
from limpet_keeper.shells import EXPORTED_NAME
from limpet_keeper.spool import create

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from limpet_keeper.keeper import Keeper

SHUT_RDWR = 2
BLOCK_NAME = "block"
# Exported variables beyond this are not kept for the next shell.
MOST_EXPORTED_BYTES = 8 << 20
# How long what interrupts is held back from a shell that has not taken in the line that it was handed.
TAKES_WITHIN_S = 0.5


class Channel:
    """One after another, the connections that became the shells' standard input, or the standard error of fish."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._socket: Any = None
        # What it is to the shell. One that has it as its standard error reads keys where no line is asked for.
        self.descriptor = 0
        self._block_fd = -1
        # What the shell says of its variables at each prompt, behind which stands the nonce that it was given.
        self._said = bytearray()
        self._exported = b""
        self._nonce = b""
        self._is_told = False
        self._held_line = b""

    def take(self, connected: Any, descriptor: int) -> None:
        """The next shell is at the other end from now on."""
        if self._socket is not None:
            self._keeper.loop.forget(self._socket.fileno())
            self._socket.close()
        self._socket, self.descriptor = connected, descriptor
        self._keeper.loop.watch(connected.fileno(), READ, self._on_readable)
        self._said.clear()
        self._is_told, self._held_line = False, b""

    def answer(self, nonce: bytes) -> None:
        """What the shell waits for behind its marker."""
        self._nonce, self._is_told = nonce, False
        # As a line of the shell's own it would do nothing.
        self.say(b": %b\n" % nonce)

    def hand(self, line: bytes) -> None:
        """The line for a block: at once, or as soon as it does not hide behind another."""
        if self.descriptor and not self._is_told:
            self._held_line = line  # fish reads more than a line at a time
        else:
            self.say(line)

    def say(self, line: bytes) -> None:
        try:
            self._socket.send(line)
        except OSError:
            pass  # it has just gone: its host tells

    def wait_until_taken(self) -> None:
        """Before what may interrupt: half a line that was interrupted would be the beginning of another."""
        until = time.monotonic() + TAKES_WITHIN_S
        while unread_bytes(self._socket) and time.monotonic() < until:
            time.sleep(0.0002)

    def hang_up(self) -> None:
        """Lets a shell that waits for what it is to do find the end of that."""
        try:
            self._socket.shutdown(SHUT_RDWR)
        except (AttributeError, OSError):
            pass  # there is none, or it has gone

    def _on_readable(self, _mask: int) -> None:
        """Takes what it exports, whole or not at all."""
        try:
            data = self._socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._keeper.loop.forget(self._socket.fileno())  # it has gone: its host tells
            return
        self._said += data
        behind = b"\x1e%b\n" % self._nonce
        if self._said.endswith(behind) and not (self.descriptor and self._said.count(behind) < 2):
            self._exported = bytes(self._said[: -len(behind)]).rpartition(behind)[2]
            self._said.clear()
            self._is_told = True
            if self._held_line:
                self.say(self._held_line)
                self._held_line = b""
        elif len(self._said) > MOST_EXPORTED_BYTES:
            del self._said[: -len(behind)]

    # Files.

    def open_block(self) -> str:
        """The file from which the shell reads the text of a block: in memory where that can be had."""
        if self._block_fd < 0:
            try:
                self._block_fd = os.memfd_create("block")
            except (AttributeError, OSError):
                self._block_fd = create(BLOCK_NAME, self._keeper.directory_fd)
        if os.path.exists(path := f"/proc/{os.getpid()}/fd/{self._block_fd}"):
            return path
        return f"{self._keeper.settings.shells}/{BLOCK_NAME}"

    def write_block(self, text: bytes) -> None:
        """Puts the text of the next block in the place of the last one's."""
        done = 0
        os.ftruncate(self._block_fd, 0)
        while done < len(text):
            done += system.write_at(self._block_fd, text[done:], done)

    def keep_exported(self) -> None:
        """For the next shell: a file, as long as it takes to begin that."""
        self.forget_exported()
        try:
            with open(create(EXPORTED_NAME, self._keeper.directory_fd), "wb") as file:
                file.write(self._exported)
        except OSError:
            self.forget_exported()  # it begins without

    def forget_exported(self) -> None:
        try:
            os.unlink(EXPORTED_NAME, dir_fd=self._keeper.directory_fd)
        except OSError:
            pass
