"""What the command line says: JSON lines, failures in a line or two, and text that no terminal can be taken over by."""

import json
import sys
from collections.abc import Mapping
from typing import Any, Final

_SHOWN: Final = {
    **{code: f"^{chr(code ^ 0x40)}" for code in (*range(0x20), 0x7F)},
    **{code: f"\\x{code:02x}" for code in range(0x80, 0xA0)},
    **{code: f"\\x{code - 0xDC00:02x}" for code in range(0xDC80, 0xDD00)},
    **{
        code: f"\\u{code:04x}"
        for code in (0x61C, 0x200E, 0x200F, 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
    },
}
"""Control characters of both sets, bytes that were no text, and what turns the writing direction around."""
_IN_TEXT: Final = {code: shown for code, shown in _SHOWN.items() if code not in (0x09, 0x0A)}


def visible(text: str, *, lines: bool = False) -> str:
    """The text with every control character made visible; with `lines`, newlines and tabs stay."""
    return text.translate(_IN_TEXT if lines else _SHOWN)


def say_json(value: Mapping[str, Any]) -> None:
    """One object, on one line."""
    print(json.dumps(value, ensure_ascii=True, separators=(",", ":")))


def say_failure(answer: Mapping[str, Any], *, as_json: bool = False) -> None:
    """On stderr what was wrong and what to do; with `as_json` the failure itself on stdout too."""
    print(f"limpet: {visible(str(answer.get('message') or answer.get('error')))}", file=sys.stderr)
    if as_json:
        say_json(answer)


def note(text: str) -> None:
    """Something to know, on stderr."""
    print(f"limpet: {visible(text)}", file=sys.stderr)
