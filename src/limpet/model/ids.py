"""Ids: which ones callers may choose, and how the ones that limpet makes sort by time."""

import re
from typing import Final

from limpet.model.errors import Refusal

PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z"
_valid: Final = re.compile(PATTERN)
_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"


def check_id(field: str, value: str) -> str:
    """The id itself, or a refusal that names the field."""
    if _valid.match(value) is None:
        raise Refusal(
            "invalid_argument",
            f"`{field}` is no id: use letters, digits, '.', '_' and '-', at most 128, beginning with a letter or digit",
            field=field,
        )
    return value


_made: Final = re.compile(rf"[{_DIGITS}]{{13}}\Z")


def check_made_id(field: str, value: str) -> str:
    """An id that limpet made; a refusal for one that it cannot have made."""
    if not is_made_id(value):
        raise Refusal("invalid_argument", f"`{field}` is none that was given out: pass it on as it came", field=field)
    return value


def is_made_id(value: str) -> bool:
    """Whether limpet may have made that id."""
    return _made.match(value) is not None


def made_at_ms(made_id: str) -> int:
    """When an id was made."""
    return sum(_DIGITS.index(digit) << 5 * place for place, digit in enumerate(reversed(made_id[:9])))


def make_id(at_ms: int, serial: int) -> str:
    """An id that sorts by `at_ms`, then by `serial` (20 bits of it)."""
    return _in_digits(at_ms, 9) + _in_digits(serial & 0xFFFFF, 4)


class IdMaker:
    """Makes ids that rise, whatever the clock does: none sorts before one that was made or known before it."""

    def __init__(self, serial: int, last: str = "") -> None:
        self._serial = serial & 0xFFFFF
        # In a later moment than the last: in its own, a smaller number would sort before it.
        self._last_ms = made_at_ms(last) + 1 if last else 0

    def make(self, now_ms: int) -> str:
        """The next id."""
        self._serial += 1
        if self._serial > 0xFFFFF:
            # Numbers begin anew, in a later moment.
            self._serial = 0
            self._last_ms += 1
        self._last_ms = max(self._last_ms, now_ms)
        return make_id(self._last_ms, self._serial)


def _in_digits(number: int, width: int) -> str:
    digits: list[str] = []
    for _ in range(width):
        number, rest = divmod(number, len(_DIGITS))
        digits.append(_DIGITS[rest])
    return "".join(reversed(digits))
