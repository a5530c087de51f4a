"""The host of a conversation's shells: the run's main process, which begins one after another on one terminal."""

from __future__ import annotations

import os
import termios
import time

from limpet_keeper import lean_json, system
from limpet_keeper.bare import signal, socket
from limpet_keeper.control import SOCKET_NAME

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    Json = dict[str, Any]

# Also where the keeper looks for it.
EXPORTED_NAME = "exported"
# One that never came to its prompt is followed by the next only after a while.
AGAIN_S = 1.0
HELD_OUT = (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU, signal.SIGTERM)


def keep(argv: list[bytes], env: dict[bytes, bytes], directory: str) -> NoReturn:
    """Begins the shell, and another whenever one has ended. Standard input, output and error are the terminal."""
    # Whoever waits for the program to run is told by this, as by an exec.
    os.closerange(3, 256)
    system.handle(HELD_OUT, signal.SIG_IGN)
    env[b"LIMPET_TTY"] = os.fsencode(os.ttyname(0))
    descriptor = int(env.pop(b"LIMPET_CHANNEL", b"0"))
    cwd = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    os.chdir(directory)
    settings = termios.tcgetattr(0)
    while True:
        os.tcsetpgrp(0, os.getpgrp())
        termios.tcsetattr(0, termios.TCSANOW, settings)
        pid = os.fork()
        if not pid:
            _become(argv, env, cwd, descriptor)
        status = os.waitpid(pid, 0)[1]
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        code = None if number is not None else os.WEXITSTATUS(status)
        connected, reply = _tell({"do": "shell_gone", "id": 1, "code": code, "signal": number})
        connected.close()
        if reply.get("over"):
            os._exit(0)
        env[b"LIMPET_AGAIN"] = os.fsencode(f"{directory}/{EXPORTED_NAME}")
        if not reply.get("prompted"):
            time.sleep(AGAIN_S)


def _tell(frame: Json) -> tuple[socket.socket, Json]:
    """Tells the keeper, and waits for its word."""
    connected = socket.socket(socket.AF_UNIX)
    connected.connect(SOCKET_NAME)
    connected.send(lean_json.encode(frame).encode() + b"\n")
    reply = b""
    while not reply.endswith(b"\n") and (byte := connected.recv(1)):
        reply += byte
    return connected, lean_json.decode(reply)


def _become(argv: list[bytes], env: dict[bytes, bytes], cwd: int, descriptor: int) -> NoReturn:
    try:
        channel, reply = _tell({"do": "shell", "id": 1, "descriptor": descriptor})
        env[b"LIMPET_BLOCK"] = os.fsencode(reply["block"])
        os.fchdir(cwd)
        os.dup2(channel.fileno(), descriptor)
        system.handle(HELD_OUT, signal.SIG_DFL)
        os.execve(argv[0], argv, env)
    finally:
        os._exit(127)
