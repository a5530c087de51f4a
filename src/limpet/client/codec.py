"""How JSON is read and written: fast for a program that stays, light to import for a command that does not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from limpet.model.errors import Refusal


@dataclass(frozen=True, slots=True)
class Codec:
    """Two functions."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes | bytearray], Any]


def fast() -> Codec:
    """msgspec: 30-50 ms to import, then several times as fast."""
    import msgspec

    return Codec(msgspec.json.Encoder().encode, msgspec.json.Decoder().decode)


def light() -> Codec:
    """The standard library's."""
    import json

    def encode(value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()

    return Codec(encode, json.loads)


def encode(params: Mapping[str, Any], codec: Codec) -> bytes:
    """The parameters as JSON. What the codec balks at the daemon shall judge, which names the field."""
    try:
        return codec.encode(params)
    except (TypeError, ValueError, OverflowError, RecursionError):
        import json
    for name, value in params.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"`{name}` cannot be said in JSON: {error}"
            raise Refusal("invalid_argument", message, field=name) from None
    return json.dumps(params).encode()
