"""A conversation of its own for a test: opened over a surface, closed after it."""

import itertools
import re
import shutil
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from .home import Answer
from .surface import Surface

SENTINEL = re.compile(r"^__FWS_PROMPT__ ts=(\d+) cwd_b64=([A-Za-z0-9+/=]*) exit=(\d+)$", re.MULTILINE)
WITHIN_MS = 60_000
_numbers = itertools.count()


def _installed(shell: str) -> Any:
    is_missing = shutil.which(shell) is None
    return pytest.param(shell, marks=pytest.mark.skipif(is_missing, reason=f"{shell} is not installed"))


ALL_SHELLS = [_installed(shell) for shell in ("bash", "zsh", "fish", "sh")]
# Those that read POSIX's language.
POSIX_SHELLS = [_installed(shell) for shell in ("bash", "zsh", "sh")]


class Talk:
    """One conversation; each call carries its id."""

    def __init__(self, surface: Surface, conversation_id: str) -> None:
        self.surface = surface
        self.id = conversation_id

    def call(self, op: str, **params: Any) -> Answer:
        name = op if "." in op else f"pty.{op}"
        return self.surface.call(name, {"conversation_id": self.id, **params})

    def ok(self, op: str, **params: Any) -> Answer:
        answer = self.call(op, **params)
        assert answer["ok"] is True, (op, params, answer)
        return answer

    def run(self, cmd: str, **params: Any) -> Answer:
        return self.ok("run", cmd=cmd, **{"timeout_ms": WITHIN_MS, **params})

    def wait_for(self, match: str, from_cursor: int, match_type: str = "substring") -> Answer:
        return self.ok("wait_for", match=match, match_type=match_type, from_cursor=from_cursor, timeout_ms=WITHIN_MS)

    def wait_prompt(self, from_cursor: int) -> Answer:
        return self.ok("wait_prompt", from_cursor=from_cursor, timeout_ms=WITHIN_MS)

    def block(self, block_id: str) -> Answer:
        block: Answer = self.ok("blocks.get", block_id=block_id)["block"]
        return block

    def status(self) -> Answer:
        return self.ok("status")

    def spool(self) -> str:
        data: str = self.ok("read_spool", from_cursor=0, max_bytes=1 << 22)["data"]
        return data


@contextmanager
def talking(surface: Surface, **opening: Any) -> Generator[Talk]:
    talk = Talk(surface, f"talk-{surface.name}-{next(_numbers)}")
    talk.ok("open", **opening)
    try:
        yield talk
    finally:
        talk.ok("close")
