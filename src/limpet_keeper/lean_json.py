"""JSON by the interpreter's own C parts: the json package would bring re and enum into every keeper."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    def _scan(text: str, place: int) -> tuple[Any, int]: ...
    def _pieces(value: object, level: int) -> tuple[str, ...]: ...
else:
    import _json

    class _Rules:
        """What the C scanner asks of a decoder: the same that Python's own asks for."""

        strict = True
        object_hook = object_pairs_hook = None
        parse_float = parse_constant = float
        parse_int = int

    def _refuse(value):
        raise TypeError(f"{type(value).__name__} is nothing that JSON can hold")

    _scan = _json.make_scanner(_Rules())
    _pieces = _json.make_encoder(None, _refuse, _json.encode_basestring_ascii, None, ":", ",", False, False, True)

_SPACE = " \t\n\r"


def encode(value: object) -> str:
    """On one line, without a space, in ASCII."""
    return "".join(_pieces(value, 0))


def decode(data: bytes) -> Any:
    """The value in UTF-8 text; ValueError for what is none, RecursionError for what is nested too deeply."""
    text = data.decode().strip(_SPACE)
    try:
        value, end = _scan(text, 0)
    except (StopIteration, SystemError):  # the C part finds no exception to raise where json is not imported
        raise ValueError("no JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value
