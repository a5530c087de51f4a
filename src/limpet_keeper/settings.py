"""What a start asks for, checked: one place for defaults and refusals."""

from __future__ import annotations

import binascii
import os

from limpet_keeper.control import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

RLIMITS = ("cpu", "as", "nofile", "nproc", "fsize", "core")
MAX_SIDE = 65535
# The system's numbers have 63 bits, and the hard limit of `cpu` is one more.
MAX_LIMIT = 1 << 62


class Settings:
    """The run as it was asked for."""

    def __init__(self) -> None:
        self.argv: list[str] = []
        self.cwd = "/"
        self.env: dict[str, str] = {}
        self.pty: tuple[int, int] | None = None
        self.stdin = "null"
        self.stdin_data: bytes | None = None
        self.timeout_ms: int | None = None
        self.kill_grace_ms = 2000
        self.spool_max_bytes = 1 << 30
        self.head_bytes = 16 << 20
        self.min_free_bytes = 0
        self.sync_ms = 1000
        self.rlimits: dict[str, int] = {}
        self.cgroups: list[dict[str, Any]] = []
        # Where the host of a conversation finds its keeper.
        self.shells: str | None = None

    @classmethod
    def of(cls, request: Json) -> Settings:
        """The settings in a start request; Refused names the field that is wrong."""
        self = cls()
        for name in ("timeout_ms", "kill_grace_ms", "spool_max_bytes", "head_bytes", "min_free_bytes", "sync_ms"):
            setattr(self, name, request.get(name, getattr(self, name)))
        self.argv, self.cwd, self.env = request["argv"], request["cwd"], request["env"]
        for word in self.argv or (None,):
            if type(word) is not str:
                raise _refused("argv", "must be a list of texts, one at least")
        if not self.cwd.startswith("/"):
            raise _refused("cwd", "must be absolute")
        for value in self.env.values():
            if type(value) is not str:
                raise _refused("env", "must hold texts only")
        self._take_stdio(request.get("pty"), request.get("stdin", "null"))
        self.shells = request.get("shells")
        if self.shells is not None and self.pty is None:
            raise _refused("shells", "goes with pty only")
        self.rlimits = request.get("rlimits", {})
        for name, most in self.rlimits.items():
            if name not in RLIMITS or not _is_in(0, MAX_LIMIT, most):
                raise _refused("rlimits", f"must hold numbers from 0 to 2^62, under the names {', '.join(RLIMITS)}")
        self.cgroups = request.get("cgroups", [])
        for group in self.cgroups:
            if not _is_cgroup(group):
                message = 'must be a list of {"path": absolute, "settings": {file: text}}, without NULs'
                raise _refused("cgroups", message)
        return self

    def _take_stdio(self, pty: Json | None, stdin: str | Json) -> None:
        if pty is not None:
            if set(pty) != {"rows", "cols"} or not all(_is_in(1, MAX_SIDE, side) for side in pty.values()):
                raise _refused("pty", f"must have rows and cols, each from 1 to {MAX_SIDE}")
            self.pty = (pty["rows"], pty["cols"])
            if stdin != "null":
                raise _refused("stdin", "a terminal is its own input: leave it out")
        elif isinstance(stdin, dict):
            if unknown := set(stdin) - {"data"}:
                raise _refused("stdin", f"{', '.join(unknown)}: there is no such field")
            try:
                self.stdin_data = binascii.a2b_base64(stdin.get("data", 0), strict_mode=True)
            except (TypeError, ValueError):
                raise _refused("stdin", 'data: must be base64, as in {"data": "aGkK"}') from None
            self.stdin = "data"
        elif stdin in ("null", "open"):
            self.stdin = stdin
        else:
            raise _refused("stdin", 'must be "null", "open" or {"data": base64}')


def _is_in(least: int, most: int, value: object) -> bool:
    return type(value) is int and least <= value <= most


def _is_cgroup(group: Any) -> bool:
    """Whether every name and text in it is one that the system takes: no NUL, nothing that stands for no bytes."""
    try:
        path, settings = group["path"], group["settings"].items()
        texts = [path, *(text for pair in settings for text in pair)]
        is_whole = len(group) == 2 and path.startswith("/") and not any("/" in name for name, _ in settings)
        return is_whole and not any(b"\0" in os.fsencode(text) for text in texts)
    except (AttributeError, KeyError, TypeError, UnicodeEncodeError):
        return False


def _refused(field: str, message: str) -> Refused:
    return Refused("invalid_argument", f"{field}: {message}")
