"""What a start asks for, checked: one place for defaults and refusals."""

from __future__ import annotations

import binascii

from limpet_keeper.control import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = dict[str, Any]

RLIMITS = ("cpu", "as", "nofile", "nproc", "fsize", "core")
MAX_SIDE = 65535


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

    @classmethod
    def of(cls, request: Json) -> Settings:
        """The settings in a start request; Refused names the field that is wrong."""
        self = cls()
        for name in ("timeout_ms", "kill_grace_ms", "spool_max_bytes", "head_bytes", "min_free_bytes", "sync_ms"):
            setattr(self, name, request.get(name, getattr(self, name)))
        self.argv, self.cwd, self.env = request["argv"], request["cwd"], request["env"]
        if not self.argv or not all(type(word) is str for word in self.argv):
            raise _refused("argv", "must be a list of texts, one at least")
        if not self.cwd.startswith("/"):
            raise _refused("cwd", "must be absolute")
        if not all(type(value) is str for value in self.env.values()):
            raise _refused("env", "must hold texts only")
        self._take_stdio(request.get("pty"), request.get("stdin", "null"))
        self.rlimits = request.get("rlimits", {})
        if not all(name in RLIMITS and type(most) is int and most >= 0 for name, most in self.rlimits.items()):
            raise _refused("rlimits", f"must hold numbers, under the names {', '.join(RLIMITS)}")
        self.cgroups = request.get("cgroups", [])
        for group in self.cgroups:
            if not _is_cgroup(group):
                raise _refused("cgroups", 'must be a list of {"path": absolute, "settings": {file: text}}')
        return self

    def _take_stdio(self, pty: Json | None, stdin: str | Json) -> None:
        if pty is not None:
            rows, cols = pty.get("rows"), pty.get("cols")
            if set(pty) != {"rows", "cols"} or not (_is_side(rows) and _is_side(cols)):
                raise _refused("pty", f"must have rows and cols, each from 1 to {MAX_SIDE}")
            self.pty = (pty["rows"], pty["cols"])
            if stdin != "null":
                raise _refused("stdin", "a terminal is its own input: leave it out")
        elif isinstance(stdin, dict):
            try:
                self.stdin_data = binascii.a2b_base64(stdin.get("data", 0), strict_mode=True)
            except (TypeError, ValueError):
                raise _refused("stdin", 'data: must be base64, as in {"data": "aGkK"}') from None
            self.stdin = "data"
        elif stdin in ("null", "open"):
            self.stdin = stdin
        else:
            raise _refused("stdin", 'must be "null", "open" or {"data": base64}')


def _is_side(value: object) -> bool:
    return type(value) is int and 1 <= value <= MAX_SIDE


def _is_cgroup(group: Any) -> bool:
    if not (_is_a(dict, group) and set(group) == {"path", "settings"} and _is_a(str, group["path"])):
        return False
    settings = group["settings"]
    if not (group["path"].startswith("/") and _is_a(dict, settings)):
        return False
    return all("/" not in name and _is_a(str, text) for name, text in settings.items())


def _is_a(kind: type, value: Any) -> bool:
    return type(value) is kind


def _refused(field: str, message: str) -> Refused:
    return Refused("invalid_argument", f"{field}: {message}")
