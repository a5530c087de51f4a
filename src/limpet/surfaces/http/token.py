"""The token of a home: the file whose content opens TCP to whoever can read it."""

import contextlib
import os
import re
import secrets
import stat
from pathlib import Path
from typing import Final

from limpet.model.errors import Refusal

TOKEN_BYTES: Final = 32
_MAX_BYTES: Final = 4096
# At least 128 bits in the coarsest alphabet that people use, and only signs that a WebSocket subprotocol may hold.
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~-]{32,1024}")


def token_of(path: Path) -> str:
    """The token in the file, made when there is none: 256 bits, 0600, never another's file and never through a link.

    Remove the file and start the daemon again to have a new one.
    """
    if not os.path.lexists(path):
        _make(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise _unfit(path, f"cannot be opened as a file of its own ({error.strerror})") from None
    try:
        state = os.fstat(fd)
        if not stat.S_ISREG(state.st_mode) or state.st_uid != os.geteuid():
            raise _unfit(path, "is no file of this user")
        if stat.S_IMODE(state.st_mode) & 0o077:
            raise _unfit(path, "could be read by others")
        text = os.read(fd, _MAX_BYTES).decode("latin-1").strip()
    finally:
        os.close(fd)
    if not _TOKEN.fullmatch(text):
        raise _unfit(path, "holds no token of 32 letters, digits, dots, dashes and so on")
    return text


def _make(path: Path) -> None:
    """Whole or not at all, and never over what is there: a link under a name that must be free."""
    own = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    fd = os.open(own, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(fd, 0o600)
        os.write(fd, secrets.token_urlsafe(TOKEN_BYTES).encode() + b"\n")
        os.fsync(fd)
        with contextlib.suppress(FileExistsError):
            os.link(own, path, follow_symlinks=False)
    finally:
        os.close(fd)
        own.unlink()


def _unfit(path: Path, why: str) -> Refusal:
    message = f"{path} {why}: remove it, and a new token is made when the daemon starts again"
    return Refusal("unavailable", message, reason="unfit_token", field="token")
