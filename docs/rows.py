"""What the generators ask of a row: the types of its answers."""

from __future__ import annotations

import typing
from typing import Any

import msgspec
from msgspec import inspect

from limpet.model.operation import Operation, Timeout


def answers_of(row: Operation[Any, Any]) -> list[type[msgspec.Struct]]:
    """The row's own type, and the timeout that its handler may give."""
    hinted: Any = typing.get_type_hints(row.handle)["return"]
    kinds: tuple[Any, ...] = typing.get_args(hinted) or (hinted,)
    return [row.response, *(kind for kind in kinds if kind is not row.response and issubclass(kind, Timeout))]


def is_unset(kind: Any) -> bool:
    """Whether a field of that type may be missing from an answer."""
    return isinstance(kind, inspect.CustomType) and kind.cls is msgspec.UnsetType
