"""Input on its way to the command: taken in order, as fast as it reads, and written down as far as it may be."""

from __future__ import annotations

import binascii
import os
import termios

from limpet_keeper.control import Refused
from limpet_keeper.loop import WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from limpet_keeper.control import Connection
    from limpet_keeper.journal import Journal
    from limpet_keeper.loop import Loop

CHUNK_BYTES = 65536
RECORDED_BYTES = 4096
# A terminal in line mode cuts what goes beyond this before a line ends, and tells nobody.
LINE_BYTES = 4095


class Write:
    """One write: whose it is, what is left of it, and how much the kernel took."""

    def __init__(self, connection: Connection | None, to: float | None, data: bytes, close: bool, secret: bool) -> None:
        self.connection = connection
        self.to = to
        self.rest = memoryview(data)
        self.close = close
        self.secret = secret
        self.written = 0

    def answer(self) -> None:
        if self.connection is not None:
            self.connection.answer(self.to, written=self.written)

    def refuse(self, code: str, message: str) -> None:
        if self.connection is not None:
            self.connection.refuse(self.to, Refused(code, message, written=self.written))


class Stdin:
    """The command's input: a pipe or a terminal's master side, and the writes that wait for it."""

    def __init__(self, fd: int, is_terminal: bool, journal: Journal, loop: Loop) -> None:
        self.fd = fd
        self.is_terminal = is_terminal
        self.journal = journal
        self.loop = loop
        self.queue: list[Write] = []
        self.taken_bytes = 0
        self.line_bytes = 0
        self.is_open = True
        # A terminal's output side is watched under its own descriptor: waiting for the input side needs another.
        self._wait_fd = os.dup(fd)
        self._waits = False
        os.set_blocking(fd, False)

    def submit(self, write: Write) -> None:
        """Takes a write; its answer comes once the kernel has all of it."""
        if not self.is_open:
            write.refuse("closed", "the command's input is closed")
            return
        if self.is_terminal:
            if write.close:
                raise Refused("conflict", "a terminal's input cannot be closed: write its end-of-file character (C-d)")
            self._check_line(bytes(write.rest))
        self.queue.append(write)
        self.pump()

    def _check_line(self, data: bytes) -> None:
        attributes = termios.tcgetattr(self.fd)
        if not attributes[3] & termios.ICANON:
            self.line_bytes = 0
            return
        ends = {b"\n", b"\r", attributes[6][termios.VEOF], attributes[6][termios.VEOL]} - {b"\0"}
        line_bytes = self.line_bytes
        place = 0
        while place < len(data):
            stops = [stop for end in ends if (stop := data.find(end, place)) >= 0]
            stop = min(stops, default=len(data))
            line_bytes += stop - place
            if line_bytes > LINE_BYTES:
                message = (
                    f"the terminal is in line mode and would cut a line past {LINE_BYTES} bytes: send shorter lines"
                )
                raise Refused("line_too_long_for_canonical", message)
            if stops:
                line_bytes = 0
            place = stop + 1
        self.line_bytes = line_bytes

    def pump(self, _mask: int = 0) -> None:
        """Gives the kernel as much as it takes now."""
        while self.queue and self.is_open:
            write = self.queue[0]
            if write.rest:
                chunk = write.rest[:CHUNK_BYTES]
                # Looked at before: what reads a secret may let the terminal echo again as soon as it has it.
                secret = write.secret or (self.is_terminal and not termios.tcgetattr(self.fd)[3] & termios.ECHO)
                try:
                    done = os.write(self.fd, chunk)
                except (BlockingIOError, InterruptedError):
                    self._wait(True)
                    return
                except OSError:
                    self.close("broken")
                    return
                self._record(write, bytes(chunk[:done]), secret)
                write.rest = write.rest[done:]
            else:
                self.queue.pop(0)
                if write.close:
                    self.close("asked")
                write.answer()
        self._wait(False)

    def _record(self, write: Write, data: bytes, secret: bool) -> None:
        start = self.taken_bytes
        self.taken_bytes += len(data)
        write.written += len(data)
        shown = None if secret or len(data) > RECORDED_BYTES else binascii.b2a_base64(data, newline=False).decode()
        self.journal.append("stdin", start=start, end=self.taken_bytes, data=shown, secret=secret)

    def cancel(self, connection: Connection, of: int) -> bool:
        """Gives up a write that waits; it is answered with what it got to. False when there is none."""
        for write in self.queue:
            if write.connection is connection and write.to == of:
                self.queue.remove(write)
                write.refuse("cancelled", f"given up after {write.written} bytes")
                self.pump()
                return True
        return False

    def forget(self, connection: Connection) -> None:
        """What a client that went away has not got in yet is not written for it."""
        self.queue = [write for write in self.queue if write.connection is not connection]

    def close(self, why: str | None) -> None:
        """No more input; the writes that wait are told. None: the command was not given any, and nothing is said."""
        if not self.is_open:
            return
        self.is_open = False
        self._wait(False)
        os.close(self._wait_fd)
        if not self.is_terminal:
            os.close(self.fd)
        if why is not None:
            self.journal.append("stdin_closed", why=why)
        for write in self.queue:
            write.refuse("closed", "the command's input is closed")
        self.queue.clear()

    def _wait(self, wanted: bool) -> None:
        if wanted and not self._waits:
            self.loop.watch(self._wait_fd, WRITE, self.pump)
        elif self._waits and not wanted:
            self.loop.forget(self._wait_fd)
        self._waits = wanted
