"""A run that is a conversation: tells true prompts from forged ones, and hands the shell what it is to do next.

Imported by keepers of conversations alone. See docs/adr/0016.
"""

from __future__ import annotations

import binascii
import os
import struct
import termios
import time

from limpet_keeper import system
from limpet_keeper.bare import signal
from limpet_keeper.channel import Channel
from limpet_keeper.control import Refused
from limpet_keeper.markers import Markers
from limpet_keeper.tree import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from limpet_keeper.control import Connection
    from limpet_keeper.keeper import Keeper

    Json = dict[str, Any]

SO_PEERCRED = 17
# How long a shell that has shown its marker may take to wait for the answer.
WAITS_WITHIN_S = 2.0
READ_CALLS = (b"0", b"63")
# Look-alikes beyond this are told of at the next prompt, by their number alone.
MOST_SUSPICIOUS = 100
REMARK = b"__limpet_mark %b && :\n"
# The one key that a shell which reads keys is left with.
REMARK_KEY = b"\x1e"
# A program may ask for it as often as it likes.
MOST_REMARKS = 8
# For so long after a block began its output is read as it comes.
EAGER_S = 0.05
MOST_NONCES_BEFORE = 64


class Conversation:
    """The shell of a conversation as its keeper knows it."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._channel = Channel(keeper)
        self._pid = 0
        self._nonce: bytes | None = None
        # The one that it was asked to show in place of that, for as long as what is under way lasts.
        self._asked_nonce: bytes | None = None
        self._nonces_before: list[bytes | None] = []
        self._is_ready = False
        # What was handed over last: its block and where the spool stood; and whether it has not come back yet.
        self._block: str | None = None
        self._offset = 0
        self._is_under_way = False
        self._has_asked = False
        self._remarks = 0
        self._told = 0
        self._facts: list[tuple[bool, Json]] = []
        self._is_over = False
        self.markers = Markers(keeper.spools[0], self._judge, self._suspect)

    # What the terminal says.

    def tell(self) -> None:
        """Writes down what was seen in bytes that are in the spool by now."""
        facts, self._facts = self._facts, []
        for is_genuine, fields in facts:
            if is_genuine:
                self._keeper.journal.append("prompt", **fields)
            else:
                self._keeper.journal.append("suspicious", **fields)

    def _suspect(self, offset: int, why: str) -> None:
        self._told += 1
        if self._told <= MOST_SUSPICIOUS:
            self._facts.append((False, {"offset": offset, "why": why}))

    def _judge(self, text: bytes, offset: int, is_line_start: bool) -> bytes | None:
        """What stands in the spool in a marker's place; None for one that is forged."""
        if text == b"?":
            return self._on_asked()
        _, nonce, code = text.split(b":")
        is_asked = self._is_under_way and nonce == self._asked_nonce
        if not is_asked and nonce != self._nonce and nonce not in self._nonces_before:
            return self._suspect(offset, "not the shell's own")
        if not self.is_in_front():
            return self._suspect(offset, "the shell is not in front")
        if not self._waits():
            return self._suspect(offset, "the shell does not wait")
        if not is_asked and (nonce != self._nonce or (nonce and self._is_ready)):
            # It shows it once more: what it was told was lost on it.
            self._has_asked = self.markers.is_drawing = False
            self._channel.answer(self._nonce or b"")
            return b""
        return self._on_prompt(int(code or b"0"), offset, is_line_start)

    def _on_prompt(self, code: int, offset: int, is_line_start: bool) -> bytes:
        is_first = self._nonce == b""
        if is_first:
            self._channel.forget_exported()
        try:
            cwd = os.fsencode(os.readlink(f"/proc/{self._pid}/cwd"))
        except OSError:
            cwd = b""
        cwd_b64 = binascii.b2a_base64(cwd, newline=False)
        now_ms = time.time_ns() // 1_000_000
        line = b"__FWS_PROMPT__ ts=%d cwd_b64=%b exit=%d\n" % (now_ms, cwd_b64, code)
        start = offset if is_line_start else offset + 1
        fields: Json = {"output_end": offset, "start": start, "end": start + len(line), "exit": code}
        fields |= {"cwd_b64": cwd_b64.decode(), "ts": now_ms, "first": is_first}
        fields["block"] = self._block if self._is_under_way else None
        self.markers.is_drawing = False
        if self._told > MOST_SUSPICIOUS:
            fields["suspicious"] = self._told
        self._facts.append((True, fields))
        if self.markers.drawn_bytes:
            fields["drawn"], self.markers.drawn_bytes = self.markers.drawn_bytes, 0
        self._told = 0
        self._is_under_way = False
        self._is_ready = True
        self._has_asked = False
        self._remarks = 0
        self._nonces_before += self._nonce, self._asked_nonce
        del self._nonces_before[:-MOST_NONCES_BEFORE]
        self._nonce, self._asked_nonce = _new_nonce(), None
        self._channel.answer(self._nonce or b"")
        return line if is_line_start else b"\n" + line

    def _on_asked(self) -> bytes:
        """The shell is about to read on. If it has shown no marker, what was under way was cut off: it is asked to.

        This may come late, or from a program: then the shell takes the word for nothing.
        """
        if self._channel.descriptor:
            if self._remarks < MOST_REMARKS and self.is_in_front() and self._reads_keys():
                self._remarks += 1
                self.markers.is_drawing = True  # its command line, up to the marker
                os.write(self._keeper.terminal_fd, REMARK_KEY)
        elif not self._has_asked:
            self._has_asked = True  # for the command that comes next: the first time after each prompt
        elif self._is_under_way and self._remarks < MOST_REMARKS and self.is_in_front():
            self._remarks += 1
            self._asked_nonce = self._asked_nonce or _new_nonce()
            self._channel.say(REMARK % self._asked_nonce)
        return b""

    def is_in_front(self) -> bool:
        try:
            return self._pid > 0 and os.tcgetpgrp(self._keeper.terminal_fd) == os.getpgid(self._pid)
        except OSError:
            return False

    def _reads_keys(self) -> bool:
        try:
            return not termios.tcgetattr(self._keeper.terminal_fd)[3] & termios.ICANON
        except (OSError, termios.error):
            return False

    def _waits(self) -> bool:
        """Whether the shell itself stands in a read of its channel: the kernel's word, where it gives one."""
        until = time.monotonic() + WAITS_WITHIN_S
        channel = b"0x%x" % self._channel.descriptor
        while True:
            call = system.read_small(f"/proc/{self._pid}/syscall").split()
            if not call or (call[0] in READ_CALLS and call[1] == channel):
                return True
            if time.monotonic() > until:
                return False
            time.sleep(0.0001)

    # Who asks.

    def take_shell(self, connection: Connection, to: float | None, descriptor: int) -> None:
        """A process that its host has begun is about to become the shell: its connection becomes its channel."""
        pid = _peer(connection)
        state = system.process_state(pid)
        if state is None or state[1] != self._keeper.launcher.pid:
            raise Refused("conflict", "only the host of the shell begins one")
        connection.answer(to, block=self._channel.open_block())
        self._keeper.loop.forget(connection.socket.fileno())
        self._keeper.control.connections.remove(connection)
        self._channel.take(connection.socket, descriptor)
        self._pid, self._nonce, self._asked_nonce, self._nonces_before = pid, b"", None, []
        self._is_ready = self._is_under_way = self._has_asked = False
        self._remarks = 0
        self.markers.is_drawing = False
        self._keeper.journal.append("shell_began", pid=pid, offset=self._keeper.spools[0].size)

    def lose_shell(self, connection: Connection, code: int | None, number: int | None) -> Json:
        """The shell's process has ended; whether it ever came to its prompt, and whether another is to begin."""
        if _peer(connection) != self._keeper.launcher.pid:
            raise Refused("conflict", "only the host of the shell knows that")
        if not self._is_over:
            self._take_all()
            block = self._block if self._is_under_way else None
            name = None if number is None else system.signal_name(number)
            size = self._keeper.spools[0].size
            self._keeper.journal.append("shell_gone", pid=self._pid, code=code, signal=name, offset=size, block=block)
            self._channel.keep_exported()
        was_prompted = bool(self._nonce)
        self._pid, self._nonce, self._asked_nonce, self._nonces_before = 0, None, None, []
        self._is_ready = self._is_under_way = False
        return {"prompted": was_prompted, "over": self._is_over}

    def let_it_take(self) -> None:
        """Returns when the shell has read what it was handed, before what may interrupt it."""
        if self._is_under_way:
            self._channel.wait_until_taken()

    def hang_up(self) -> None:
        """Lets a shell that waits for what it is to do find the end of that; no other is begun."""
        self._is_over = True
        self._channel.hang_up()

    def deliver(self, line: str, text: str, block: str) -> Json:
        """Hands the shell the text of a block and the line that runs it, once; where the spool stood then."""
        if block == self._block:
            return {"offset": self._offset}
        if not self._is_ready:
            raise Refused("conflict", "the shell is not at its prompt")
        self._take_all()
        try:
            self._channel.write_block(text.encode() + b"\n")
        except OSError as error:
            raise Refused("cannot_start", f"the command could not be written down: {error.strerror}") from None
        self._is_ready, self._is_under_way, self._remarks = False, True, 0
        self._block, self._offset = block, self._keeper.spools[0].size
        self._keeper.journal.append("delivered", block=block, offset=self._offset)
        self._keeper.storage.eager_until = time.monotonic() + EAGER_S
        self._channel.hand(line.encode() + b"\n")
        return {"offset": self._offset}

    def reset(self) -> None:
        """Ends every process of the run but the host, which begins another shell."""
        host, tree = self._keeper.launcher.pid, self._keeper.tree
        os.kill(host, signal.SIGSTOP)
        try:
            for _ in range(200):
                left = [process for pid, process in tree.living().items() if pid != host]
                if not left:
                    break
                for process in left:
                    try:
                        send(process, signal.SIGKILL)
                    except PermissionError:
                        pass  # a stranger's by now: it stays
        finally:
            os.kill(host, signal.SIGCONT)

    def _take_all(self) -> None:
        self._keeper.storage.read_on()
        self._keeper.storage.take_what_is_there()


def _new_nonce() -> bytes:
    return os.urandom(12).hex().encode()


def _peer(connection: Connection) -> int:
    return struct.unpack("3i", connection.socket.getsockopt(1, SO_PEERCRED, 12))[0]
