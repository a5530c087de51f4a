"""No answer larger than a client can take: long texts are cut in their middle, and say so."""

from typing import Any, Final

import msgspec

from limpet.model.errors import Refusal

MOST_BYTES: Final = 512 * 1024
"""Of one answer, as JSON."""
_TEXTS_CHARS: Final = (4096, 256)


def fit(answer: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """The answer, as it is where it is small enough, and its JSON."""
    text = msgspec.json.encode(answer)
    for most in _TEXTS_CHARS:
        if len(text) <= MOST_BYTES:
            break
        answer = {**_cut(answer, most), "cut": True}
        text = msgspec.json.encode(answer)
    if len(text) > MOST_BYTES:
        message = f"the answer has {len(text)} bytes, and here at most {MOST_BYTES} are answered: ask for less at once"
        answer = Refusal("too_large", message, limit_bytes=MOST_BYTES).answer()
        text = msgspec.json.encode(answer)
    return answer, text.decode()


def _cut(value: Any, most: int) -> Any:
    if isinstance(value, str) and len(value) > most:
        half = most // 2
        return f"{value[:half]}\n[... {len(value) - 2 * half} characters left out ...]\n{value[-half:]}"
    if isinstance(value, dict):
        named: dict[str, Any] = value  # pyright: ignore[reportUnknownVariableType]
        return {name: _cut(each, most) for name, each in named.items()}
    if isinstance(value, list):
        listed: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [_cut(each, most) for each in listed]
    return value
