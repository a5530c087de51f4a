"""What a command finds in its environment, and what never gets there."""

import os
from typing import Final

from limpet.model.operation import Caller

# What a caller without an environment of its own gets of ours.
_SHORT: Final = ("PATH", "HOME", "USER", "SHELL", "LANG", "TERM", "TMPDIR")
_PAGERS: Final = {"PAGER": "cat", "GIT_PAGER": "cat"}
_OURS: Final = ("LIMPET_TOKEN", "LIMPET_TOKEN_FILE", "LIMPET_SOCKET")


def environment_for(caller: Caller, configured: dict[str, str], requested: dict[str, str]) -> dict[str, str]:
    """The caller's environment, or a short list of ours; then the configured, the trace and the requested on top."""
    if caller.env is not None:
        ambient = dict(caller.env)
    else:
        ambient = {name: value for name, value in os.environ.items() if name in _SHORT or name.startswith("LC_")}
    for name in _OURS:
        ambient.pop(name, None)
    return ambient | _PAGERS | configured | (caller.trace or {}) | requested
