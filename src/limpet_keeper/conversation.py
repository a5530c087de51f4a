"""A run that is a conversation: tells true prompts from forged ones, and hands the shell what it is to do next.

Imported by keepers of conversations alone. See docs/adr/0016.
"""

from __future__ import annotations

import binascii
import os
import struct
import time

from limpet_keeper import system
from limpet_keeper.bare import signal
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
REMARK = b"__limpet_mark && :\n"
# A program may ask for it as often as it likes.
MOST_REMARKS = 8


class Conversation:
    """The shell of a conversation as its keeper knows it."""

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._channel: Any = None
        self._pid = 0
        self._nonce: bytes | None = None
        self._nonce_before: bytes | None = None
        self._is_ready = False
        # What was handed over last: its block and where the spool stood; and whether it has not come back yet.
        self._block: str | None = None
        self._offset = 0
        self._is_under_way = False
        self._has_asked = False
        self._remarks = 0
        self._told = 0
        self._facts: list[tuple[bool, Json]] = []
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
        if nonce != self._nonce and nonce != self._nonce_before:
            return self._suspect(offset, "not the shell's own")
        if not self._is_in_front():
            return self._suspect(offset, "the shell is not in front")
        if not self._waits():
            return self._suspect(offset, "the shell does not wait")
        if nonce != self._nonce:
            self._has_asked = False
            self._answer()
            return b""
        return self._on_prompt(int(code or b"0"), offset, is_line_start)

    def _on_prompt(self, code: int, offset: int, is_line_start: bool) -> bytes:
        is_first = self._nonce == b""
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
        if self._told > MOST_SUSPICIOUS:
            fields["suspicious"] = self._told
        self._facts.append((True, fields))
        self._told = 0
        self._is_under_way = False
        self._is_ready = True
        self._has_asked = False
        self._nonce_before, self._nonce = self._nonce, os.urandom(12).hex().encode()
        self._answer()
        return line if is_line_start else b"\n" + line

    def _on_asked(self) -> bytes:
        """The shell is about to read on. If it has shown no marker, what was under way was cut off: it is asked to.

        This may come late, or from a program: then the shell takes the word for nothing.
        """
        if not self._has_asked:
            self._has_asked = True  # for the command that comes next: the first time after each prompt
        elif self._is_under_way and self._remarks < MOST_REMARKS and self._is_in_front():
            self._remarks += 1
            self._say(REMARK)
        return b""

    def _answer(self) -> None:
        # As a line of the shell's own it would do nothing.
        self._say(b": %b\n" % (self._nonce or b""))

    def _say(self, line: bytes) -> None:
        try:
            self._channel.send(line)
        except OSError:
            pass  # it has just gone: its host tells

    def _is_in_front(self) -> bool:
        try:
            return self._pid > 0 and os.tcgetpgrp(self._keeper.terminal_fd) == os.getpgid(self._pid)
        except OSError:
            return False

    def _waits(self) -> bool:
        """Whether the shell itself stands in a read of its channel: the kernel's word, where it gives one."""
        until = time.monotonic() + WAITS_WITHIN_S
        while True:
            call = system.read_small(f"/proc/{self._pid}/syscall").split()
            if not call or (call[0] in READ_CALLS and call[1] == b"0x0"):
                return True
            if time.monotonic() > until:
                return False
            time.sleep(0.0001)

    # Who asks.

    def take_shell(self, connection: Connection, to: float | None) -> None:
        """A process that its host has begun is about to become the shell: its connection becomes its standard input."""
        pid = _peer(connection)
        state = system.process_state(pid)
        if state is None or state[1] != self._keeper.launcher.pid:
            raise Refused("conflict", "only the host of the shell begins one")
        if self._channel is not None:
            self._channel.close()
        connection.answer(to)
        self._keeper.loop.forget(connection.socket.fileno())
        self._keeper.control.connections.remove(connection)
        self._channel = connection.socket
        self._pid, self._nonce, self._nonce_before = pid, b"", None
        self._is_ready = self._is_under_way = self._has_asked = False
        self._keeper.journal.append("shell_began", pid=pid, offset=self._keeper.spools[0].size)

    def lose_shell(self, connection: Connection, code: int | None, number: int | None) -> bool:
        """The shell's process has ended; whether it ever came to its prompt."""
        if _peer(connection) != self._keeper.launcher.pid:
            raise Refused("conflict", "only the host of the shell knows that")
        self._take_all()
        block = self._block if self._is_under_way else None
        name = None if number is None else system.signal_name(number)
        size = self._keeper.spools[0].size
        self._keeper.journal.append("shell_gone", pid=self._pid, code=code, signal=name, offset=size, block=block)
        was_prompted = bool(self._nonce)
        self._pid, self._nonce, self._nonce_before = 0, None, None
        self._is_ready = self._is_under_way = False
        return was_prompted

    def deliver(self, line: str, block: str) -> Json:
        """Hands the shell one line, once for each block; where the spool stood then."""
        if block == self._block:
            return {"offset": self._offset}
        if not self._is_ready:
            raise Refused("conflict", "the shell is not at its prompt")
        self._take_all()
        self._is_ready, self._is_under_way, self._remarks = False, True, 0
        self._block, self._offset = block, self._keeper.spools[0].size
        self._keeper.journal.append("delivered", block=block, offset=self._offset)
        self._say(line.encode() + b"\n")
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


def _peer(connection: Connection) -> int:
    return struct.unpack("3i", connection.socket.getsockopt(1, SO_PEERCRED, 12))[0]
