"""The control socket: frames in, replies and wakeups out. What a frame means is the keeper's business."""

from __future__ import annotations

import fcntl
import os
import sys
import termios

from limpet_keeper import lean_json
from limpet_keeper.bare import accept, socket
from limpet_keeper.loop import READ, WRITE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from limpet_keeper.loop import Loop

    Json = dict[str, Any]

SOCKET_NAME = "control.sock"
MAX_FRAME_BYTES = 64 << 20
# A client that does not read its replies is dropped before it costs more than this.
MAX_UNSENT_BYTES = 1 << 20
# Small enough that no memory has to be mapped for a frame of the usual size.
RECEIVE_BYTES = 1 << 16
INFINITY = float("inf")

# What each request may carry: the field's type and whether it must be there.
_TEXT, _NUMBER, _FLAG, _OBJECT, _LIST = (str,), (int,), (bool,), (dict,), (list,)
FIELDS: dict[str, dict[str, tuple[tuple[type, ...], bool]]] = {
    "hello": {"protocol": (_NUMBER, True), "wake": (_TEXT, False)},
    "start": {
        "run": (_TEXT, True),
        "argv": (_LIST, True),
        "cwd": (_TEXT, True),
        "env": (_OBJECT, True),
        "pty": ((dict, type(None)), False),
        "stdin": ((str, dict), False),
        "timeout_ms": ((int, type(None)), False),
        "kill_grace_ms": (_NUMBER, False),
        "spool_max_bytes": (_NUMBER, False),
        "head_bytes": (_NUMBER, False),
        "min_free_bytes": (_NUMBER, False),
        "sync_ms": (_NUMBER, False),
        "rlimits": (_OBJECT, False),
        "cgroups": (_LIST, False),
        "shells": ((str, type(None)), False),
    },
    "write": {"data": (_TEXT, True), "close": (_FLAG, False), "secret": (_FLAG, False)},
    "answer": {"data": (_TEXT, True), "of": ((int, type(None)), False)},
    "cancel": {"of": (_NUMBER, True)},
    "resize": {"rows": (_NUMBER, True), "cols": (_NUMBER, True)},
    "signal": {"signal": (_TEXT, True), "to": (_TEXT, False)},
    "kill": {"signal": (_TEXT, False), "grace_ms": (_NUMBER, False), "by": (_TEXT, False)},
    "wake": {"on": (_TEXT, True)},
    "shell": {"descriptor": (_NUMBER, False)},
    "shell_gone": {"code": ((int, type(None)), True), "signal": ((int, type(None)), True)},
    "deliver": {"line": (_TEXT, True), "text": (_TEXT, True), "block": (_TEXT, True)},
    "reset": {},
}
WAKES = ("never", "state", "every")


class Refused(Exception):  # noqa: N818  (it says no; nothing went wrong)
    """A request that is answered with an error: code, text, and what else belongs in the answer."""

    def __init__(self, code: str, message: str, **fields: Any) -> None:
        super().__init__(message)
        self.code = code
        self.fields = fields


def check(frame: Json) -> None:
    """Refuses what is no request, or carries what its kind does not take."""
    do = frame.get("do")
    fields = FIELDS.get(do) if isinstance(do, str) else None
    if fields is None:
        raise Refused("invalid_argument", f"do: {do!r} is no request; there are {', '.join(FIELDS)}")
    for name, value in frame.items():
        if name in ("do", "id"):
            continue
        if name not in fields:
            raise Refused("invalid_argument", f"{name}: {do} has no such field")
        types = fields[name][0]
        if type(value) not in types:
            raise Refused("invalid_argument", f"{name}: must be {' or '.join(kind.__name__ for kind in types)}")
        if type(value) is int and not 0 <= value < 1 << 63:
            raise Refused("invalid_argument", f"{name}: must be from 0 to 2^63-1")
    for name, (_, needed) in fields.items():
        if needed and name not in frame:
            raise Refused("invalid_argument", f"{name}: {do} needs it")


class Connection:
    """One client. `wake` says what it wants to hear of."""

    def __init__(self, connected: socket.socket, control: Control) -> None:
        self.socket = connected
        self.control = control
        self.wake = "never"
        self.unread = bytearray()
        self.unsent = bytearray()
        # The last frame that was sent is a wakeup: while anything is unread in the socket, so is that one.
        self.wake_sent = False
        self.wake_owed = False
        connected.setblocking(False)

    def on_event(self, mask: int) -> None:
        if mask & WRITE:
            self._send_rest()
        if mask & READ:
            self._receive()

    def _receive(self) -> None:
        try:
            data = self.socket.recv(RECEIVE_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self.control.drop(self)
            return
        searched = len(self.unread)
        self.unread += data
        while (end := self.unread.find(b"\n", searched)) >= 0:
            line = bytes(self.unread[:end])
            del self.unread[: end + 1]
            searched = 0
            self._take(line)
            if self.socket.fileno() < 0:
                return
        if len(self.unread) > MAX_FRAME_BYTES:
            self.refuse(None, Refused("invalid_argument", f"a frame has at most {MAX_FRAME_BYTES} bytes"))
            self.control.drop(self)

    def _take(self, line: bytes) -> None:
        try:
            frame: Any = lean_json.decode(line)
        except (ValueError, RecursionError):
            frame = None
        if not _is_object(frame):
            self.refuse(None, Refused("invalid_argument", "a frame is one JSON object on one line"))
            self.control.drop(self)
            return
        request: Json = frame
        number: Any = request.get("id")
        # JSON has no word for NaN, nor for what 1e999 becomes: such a number could not be repeated.
        if number is None or (type(number) in (int, float) and -INFINITY < number < INFINITY):
            self.apply(number, request)
        else:
            self.refuse(None, Refused("invalid_argument", "id: must be a number"))

    def apply(self, to: float | None, request: Json) -> None:
        """Has one request done, and answers it unless its answer comes later."""
        try:
            check(request)
            answer = self.control.handle(self, request)
            if answer is not None:
                self.answer(to, **answer)
        except Refused as refused:
            self.refuse(to, refused)

    def answer(self, to: float | None, **fields: Any) -> None:
        self.send({"re": to, "ok": True, **fields})

    def refuse(self, to: float | None, refused: Refused) -> None:
        self.send({"re": to, "ok": False, "error": refused.code, "message": str(refused), **refused.fields})

    def tell(self, journal_bytes: int) -> None:
        """A wakeup, unless the last one has not been read yet."""
        if self.unsent:
            self.wake_owed = True
        elif not (self.wake_sent and unread_bytes(self.socket)):
            self.send({"wake": journal_bytes})
            self.wake_sent = True

    def send(self, frame: Json) -> None:
        """Sends it as soon as the client reads, or drops a client that does not."""
        if self.socket.fileno() < 0:
            return
        self.wake_sent = False
        self.unsent += lean_json.encode(frame).encode() + b"\n"
        self._send_rest()
        if len(self.unsent) > MAX_UNSENT_BYTES:
            self.control.drop(self)

    def _send_rest(self) -> None:
        had = bool(self.unsent)
        try:
            while self.unsent:
                del self.unsent[: self.socket.send(self.unsent)]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.unsent.clear()  # the read side meets the same end and drops the connection
        self.control.listen_for(self)
        if had and not self.unsent and self.wake_owed:
            self.wake_owed = False
            self.tell(self.control.journal_bytes())


class Control:
    """All connections of one keeper."""

    listener: socket.socket

    def __init__(
        self,
        loop: Loop,
        handle: Callable[[Connection, Json], Json | None],
        dropped: Callable[[Connection], None],
        journal_bytes: Callable[[], int],
    ) -> None:
        self.loop = loop
        self.handle = handle
        self.dropped = dropped
        self.journal_bytes = journal_bytes
        self.connections: list[Connection] = []

    def open(self) -> None:
        """Binds in the current directory: a relative name is never too long for a socket."""
        self.listener = socket.socket(socket.AF_UNIX)
        umask = os.umask(0o177)
        self.listener.bind(SOCKET_NAME)
        os.umask(umask)
        self.listener.listen(128)
        self.listener.setblocking(False)
        self.loop.watch(self.listener.fileno(), READ, self.accept)

    def accept(self, _mask: int = 0) -> None:
        """Takes in everyone who waits at the door."""
        while True:
            try:
                connected = accept(self.listener)
            except OSError:
                return
            connection = Connection(connected, self)
            self.connections.append(connection)
            self.loop.watch(connected.fileno(), READ, connection.on_event)

    def listen_for(self, connection: Connection) -> None:
        """Asks the loop for what the connection needs now."""
        mask = READ | (WRITE if connection.unsent else 0)
        self.loop.watch(connection.socket.fileno(), mask, connection.on_event)

    def drop(self, connection: Connection) -> None:
        if connection.socket.fileno() < 0:
            return
        self.loop.forget(connection.socket.fileno())
        connection.socket.close()
        self.connections.remove(connection)
        self.dropped(connection)

    def is_heard(self) -> bool:
        """Whether anybody wants to hear everything."""
        return any(connection.wake == "every" for connection in self.connections)

    def tell(self, is_quiet: bool = False) -> None:
        """Wakes those that listen; what is quiet, only those that want to hear everything."""
        for connection in self.connections.copy():
            if connection.wake == "every" or (connection.wake == "state" and not is_quiet):
                connection.tell(self.journal_bytes())

    def tell_stalled(self, stalled: Json | None) -> None:
        """News of the storage, always sent: the journal may be unable to tell it."""
        for connection in self.connections.copy():
            if connection.wake != "never":
                connection.send({"wake": self.journal_bytes(), "stalled": stalled})

    def close(self, directory_fd: int) -> None:
        """Takes the socket out of its directory and hangs up."""
        try:
            os.unlink(SOCKET_NAME, dir_fd=directory_fd)
        except OSError:
            pass
        for connection in list(self.connections):
            self.drop(connection)
        self.loop.forget(self.listener.fileno())
        self.listener.close()


def _is_object(frame: Any) -> bool:
    return type(frame) is dict


def unread_bytes(connected: socket.socket) -> int:
    """How much of what was sent the other side has not taken yet; 0 where the system does not say."""
    if sys.platform != "linux":
        return 0
    return int.from_bytes(fcntl.ioctl(connected.fileno(), termios.TIOCOUTQ, b"\0\0\0\0"), sys.byteorder)
