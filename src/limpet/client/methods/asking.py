"""How a typed method asks: the operation's name and its parameters, as a mapping."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

Ask = Callable[[str, dict[str, Any]], Awaitable[dict[str, Any]]]
AskNow = Callable[[str, dict[str, Any]], dict[str, Any]]


def named(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters by their public names: `from_` is how Python has to spell `from`."""
    return {name.removesuffix("_"): value for name, value in params.items()}
