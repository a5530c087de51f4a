"""Signals by name, as callers give them."""

import signal

from limpet.model.errors import Refusal


def check_signal(field: str, name: str) -> str:
    """The name itself, or a refusal that says how signals are written."""
    if name.startswith("SIG") and not name.startswith("SIG_") and hasattr(signal, name):
        return name
    raise Refusal("invalid_argument", f"`{field}`: {name[:40]!r} is no signal; write it like SIGTERM", field=field)
