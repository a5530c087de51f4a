"""What each control frame does to the run."""

from __future__ import annotations

import binascii
import fcntl
import os
import struct
import termios

from limpet_keeper import PROTOCOL, VERSION, system
from limpet_keeper.control import WAKES, Connection, Refused
from limpet_keeper.settings import MAX_SIDE
from limpet_keeper.stdin import Write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from limpet_keeper.conversation import Conversation
    from limpet_keeper.keeper import Keeper

    Json = dict[str, Any]
    Request = Callable[[Keeper, Connection, Json], Json | None]

TARGETS = ("foreground", "main", "group", "all")


def apply(keeper: Keeper, connection: Connection, request: Json) -> Json | None:
    """Applies one request, whose fields have been checked; the answer, or None when it comes later."""
    return REQUESTS[request["do"]](keeper, connection, request)


def hello(keeper: Keeper, connection: Connection, request: Json) -> Json:
    if request["protocol"] != PROTOCOL:
        message = f"this keeper ({VERSION}) speaks protocol {PROTOCOL}, not {request['protocol']}"
        raise Refused("conflict", message, protocol=PROTOCOL)
    wake(keeper, connection, {"on": request.get("wake", connection.wake)})
    return {
        "protocol": PROTOCOL,
        "version": VERSION,
        "keeper_pid": os.getpid(),
        "run": keeper.run,
        "phase": keeper.phase,
        "pid": keeper.pid,
        "journal_bytes": keeper.journal.size,
        "streams": {spool.name: spool.size for spool in keeper.spools} if keeper.run else {},
        "stalled": keeper.storage.stalled,
    }


def wake(_keeper: Keeper, connection: Connection, request: Json) -> Json:
    if request["on"] not in WAKES:
        raise Refused("invalid_argument", f"on: there is no wakeup {request['on']!r}; there are {', '.join(WAKES)}")
    connection.wake = request["on"]
    return {}


def start(keeper: Keeper, connection: Connection, request: Json) -> None:
    if keeper.run is not None:
        raise Refused("conflict", f"this keeper already keeps the run {keeper.run}")
    keeper.start(request, connection, request.get("id"))


def write(keeper: Keeper, connection: Connection, request: Json) -> None:
    try:
        data = binascii.a2b_base64(request["data"], strict_mode=True)
    except ValueError:
        raise Refused("invalid_argument", "data: must be base64") from None
    if keeper.stdin is None:
        raise Refused("conflict", "the command does not run yet")
    _let_shell_take(keeper)
    close, secret = request.get("close", False), request.get("secret", False)
    keeper.stdin.submit(Write(connection, request.get("id"), data, close, secret))


def answer(keeper: Keeper, connection: Connection, request: Json) -> None:
    if keeper.questions is None:
        raise Refused("conflict", "the run has no terminal, or does not run yet")
    data = binascii.a2b_base64(request["data"])
    keeper.questions.answer(connection, request.get("id"), data, request.get("of"))


def _let_shell_take(keeper: Keeper) -> None:
    if keeper.conversation is not None:
        keeper.conversation.let_it_take()


def cancel(keeper: Keeper, connection: Connection, request: Json) -> Json:
    if keeper.stdin is None or not keeper.stdin.cancel(connection, request["of"]):
        raise Refused("not_found", f"of: no write {request['of']} of this connection waits")
    return {}


def resize(keeper: Keeper, _connection: Connection, request: Json) -> Json:
    rows, cols = request["rows"], request["cols"]
    for name, value in (("rows", rows), ("cols", cols)):
        if not 1 <= value <= MAX_SIDE:
            raise Refused("invalid_argument", f"{name}: must be from 1 to {MAX_SIDE}")
    if keeper.terminal_fd < 0:
        raise Refused("conflict", "the run has no terminal (any more)")
    set_size(keeper.terminal_fd, rows, cols)
    keeper.journal.append("resized", rows=rows, cols=cols)
    return {}


def send_signal(keeper: Keeper, _connection: Connection, request: Json) -> Json:
    number = _signal_number(request["signal"])
    to = request.get("to", "foreground" if keeper.terminal_fd >= 0 else "main")
    if to not in TARGETS:
        raise Refused("invalid_argument", f"to: must be one of {', '.join(TARGETS)}")
    if keeper.pid is None:
        raise Refused("conflict", "the command does not run yet")
    if to == "foreground" and keeper.terminal_fd < 0:
        raise Refused("conflict", "to: the run has no terminal, so nothing is in its foreground")
    _let_shell_take(keeper)
    sent = _send(keeper, number, to)
    keeper.journal.append("signalled", signal=request["signal"], to=to, sent=sent)
    return {"sent": sent}


def _send(keeper: Keeper, number: int, to: str) -> int:
    if to == "all":
        return keeper.tree.signal(number)
    if keeper.exit is not None or keeper.pid is None:
        return 0  # its pid, and its group's, may be a stranger's by now
    try:
        if to == "main":
            os.kill(keeper.pid, number)
        else:
            if to == "foreground":
                # As a typed Ctrl-C does: ^S holds no end up. The second alone undoes only the first.
                termios.tcflow(keeper.slave_fd, termios.TCOOFF)
                termios.tcflow(keeper.slave_fd, termios.TCOON)
            os.killpg(os.tcgetpgrp(keeper.terminal_fd) if to == "foreground" else keeper.pid, number)
    except (OSError, termios.error):
        return 0
    return 1


def kill(keeper: Keeper, _connection: Connection, request: Json) -> Json:
    number = _signal_number(request.get("signal", "SIGTERM"))
    keeper.kill(request.get("by", "kill"), number, request.get("grace_ms"))
    return {}


def _conversation(keeper: Keeper) -> Conversation:
    if keeper.conversation is None:
        raise Refused("conflict", "the run is no conversation")
    return keeper.conversation


def shell(keeper: Keeper, connection: Connection, request: Json) -> None:
    _conversation(keeper).take_shell(connection, request.get("id"), request.get("descriptor", 0))


def shell_gone(keeper: Keeper, connection: Connection, request: Json) -> Json:
    return _conversation(keeper).lose_shell(connection, request["code"], request["signal"])


def deliver(keeper: Keeper, _connection: Connection, request: Json) -> Json:
    return _conversation(keeper).deliver(request["line"], request["text"], request["block"])


def reset(keeper: Keeper, _connection: Connection, _request: Json) -> Json:
    _conversation(keeper).reset()
    return {}


REQUESTS: dict[str, Request] = {
    "hello": hello,
    "start": start,
    "write": write,
    "answer": answer,
    "cancel": cancel,
    "resize": resize,
    "signal": send_signal,
    "kill": kill,
    "wake": wake,
    "shell": shell,
    "shell_gone": shell_gone,
    "deliver": deliver,
    "reset": reset,
}


def _signal_number(name: str) -> int:
    number = system.signal_number(name)
    if number is None:
        raise Refused("invalid_argument", f"signal: {name!r} is no signal; write it like SIGTERM")
    return number


def set_size(terminal_fd: int, rows: int, cols: int) -> None:
    """Tells the terminal its size; the kernel tells the programs in it."""
    fcntl.ioctl(terminal_fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
