"""Where a daemon lives: the home's path and its socket. Strings: importing pathlib costs a command 8 ms."""

import os
import stat
from collections.abc import Mapping
from typing import Final

from limpet.model.errors import Refusal

SOCKET_PATH_MAX_BYTES: Final = 107
"""What the system takes in a socket's address, its final NUL apart."""


def find_home(home: str | os.PathLike[str] | None = None, environ: Mapping[str, str] = os.environ) -> str:
    """The home's absolute path: as given, or `LIMPET_HOME`, or below `XDG_STATE_HOME`, or below the user's own home."""
    chosen = os.fspath(home) if home is not None else environ.get("LIMPET_HOME", "")
    if home is not None and not chosen:
        raise Refusal("invalid_argument", "the home is an empty path: name a directory", field="home")
    if "\0" in chosen:
        raise Refusal("invalid_argument", "the home's path holds a NUL byte: name a directory", field="home")
    if chosen:
        return os.path.abspath(chosen)  # noqa: PTH100
    state = environ.get("XDG_STATE_HOME", "")
    if not state.startswith("/"):  # the XDG rules: a relative path is no path
        state = os.path.expanduser("~/.local/state")  # noqa: PTH111
    return f"{state}/limpet"


def socket_of(home: str) -> str:
    """The path of the home's socket; refused when no socket can have it."""
    path = f"{home}/daemon.sock"
    size = len(os.fsencode(path))
    if size > SOCKET_PATH_MAX_BYTES:
        raise Refusal(
            "invalid_argument",
            f"{path} is too long for a socket ({size} bytes, the system takes {SOCKET_PATH_MAX_BYTES}): "
            "set LIMPET_HOME to a shorter path",
            reason="socket_path_too_long",
            field="home",
        )
    return path


def make_home(home: str) -> None:
    """Makes the home if it is not there, for its owner alone whatever the umask; refuses one of somebody else."""
    parent, _, _ = home.rpartition("/")
    os.makedirs(parent or "/", exist_ok=True)  # noqa: PTH103
    try:
        os.mkdir(home, 0o700)  # noqa: PTH102
        os.chmod(home, 0o700)  # noqa: PTH101
    except FileExistsError:
        found = os.stat(home)  # noqa: PTH116
        if not stat.S_ISDIR(found.st_mode):
            raise Refusal(
                "invalid_argument",
                f"{home} is not a directory: set LIMPET_HOME to one",
                reason="home_not_ours",
                field="home",
            ) from None
        if found.st_uid != os.geteuid():
            raise Refusal(
                "invalid_argument",
                f"{home} belongs to uid {found.st_uid}: set LIMPET_HOME to a directory of your own",
                reason="home_not_ours",
                field="home",
            ) from None
