"""Reads RE2's syntax into a tree of bytes; what has no sure meaning on a stream of bytes is refused in plain words."""

from __future__ import annotations

from typing import Final, NamedTuple

from limpet.engine.matching import utf8
from limpet.engine.matching.tree import ALL, EMPTY, NEWLINE, WORD, Any, Group, Many, Mark, Node, One, Row, bits

DIGITS: Final = bits(b"0123456789")
UPPER: Final = bits(range(0x41, 0x5B))
LOWER: Final = bits(range(0x61, 0x7B))
SPACE: Final = bits(b"\t\n\f\r ")
PRINT: Final = bits(range(0x20, 0x7F))
PERL: Final = {"d": DIGITS, "s": SPACE, "w": WORD}
POSIX: Final = {
    "alnum": DIGITS | UPPER | LOWER,
    "alpha": UPPER | LOWER,
    "ascii": bits(range(0x80)),
    "blank": bits(b"\t "),
    "cntrl": bits(range(0x20)) | 1 << 0x7F,
    "digit": DIGITS,
    "graph": PRINT & ~(1 << 0x20),
    "lower": LOWER,
    "print": PRINT,
    "punct": PRINT & ~(1 << 0x20) & ~DIGITS & ~UPPER & ~LOWER,
    "space": SPACE | 1 << 0x0B,
    "upper": UPPER,
    "word": WORD,
    "xdigit": bits(b"0123456789ABCDEFabcdef"),
}
CONTROLS: Final = {"a": 0x07, "f": 0x0C, "n": 0x0A, "r": 0x0D, "t": 0x09, "v": 0x0B}
DEEPEST: Final = 100


class NotOurs(Exception):  # noqa: N818  (it says no; the caller makes a refusal of it)
    """RE2 may know it, this matcher does not take it; the words say why and what to write instead."""


class Flags(NamedTuple):
    """What `(?imsU)` set where the reader is."""

    i: bool = False
    m: bool = True
    s: bool = False
    U: bool = False


class Byte(NamedTuple):
    """A character of a set or a text: a byte, or a whole character beyond ASCII."""

    value: int
    whole: bool


def read(text: str, *, of_line: bool) -> Node:
    """A tree of a text that RE2 has already taken. Of a line: `\\A` and `\\z` are its ends."""
    reader = _Reader(text, of_line=of_line)
    node = reader.either(Flags(), 0)
    if reader.place != len(text):
        raise NotOurs(f"it has a `)` too many at {reader.place}")
    return node


class _Reader:
    def __init__(self, text: str, *, of_line: bool) -> None:
        self.text = text
        self.place = 0
        self.of_line = of_line

    def ahead(self, what: str) -> bool:
        return self.text.startswith(what, self.place)

    def take(self, what: str) -> bool:
        if self.ahead(what):
            self.place += len(what)
            return True
        return False

    def next(self) -> str:
        if self.place >= len(self.text):
            raise NotOurs("it ends too early")
        self.place += 1
        return self.text[self.place - 1]

    def until(self, end: str) -> str:
        stop = self.text.find(end, self.place)
        if stop < 0:
            raise NotOurs(f"`{end}` is missing")
        found, self.place = self.text[self.place : stop], stop + len(end)
        return found

    def either(self, flags: Flags, depth: int) -> Node:
        """Ways, to the end or the `)` that closes them. Flags hold from where they stand to there."""
        if depth > DEEPEST:
            raise NotOurs(f"its groups lie more than {DEEPEST} deep")
        ways: list[Node] = []
        parts: list[Node] = []
        while self.place < len(self.text) and not self.ahead(")"):
            if self.take("|"):
                ways.append(Row(tuple(parts)))
                parts = []
            elif self.take("(?P<") or self.take("(?<"):
                self.until(">")
                parts.append(self._repeated(Group(self._closed(flags, depth)), flags))
            elif self.take("(?"):
                inner, held = self._flags(flags)
                if held:
                    parts.append(self._repeated(self._closed(inner, depth), flags))
                else:
                    flags = inner
            elif self.take("("):
                parts.append(self._repeated(Group(self._closed(flags, depth)), flags))
            elif self.take("\\Q"):
                parts += self._quoted(flags)
            else:
                parts.append(self._repeated(self._atom(flags), flags))
        ways.append(Row(tuple(parts)))
        return ways[0] if len(ways) == 1 else Any(tuple(ways))

    def _closed(self, flags: Flags, depth: int) -> Node:
        inner = self.either(flags, depth + 1)
        if not self.take(")"):
            raise NotOurs("a `(` is not closed")
        return inner

    def _flags(self, flags: Flags) -> tuple[Flags, bool]:
        """And whether they hold in a group of their own only."""
        value = True
        while True:
            letter = self.next()
            if letter in ":)":
                return flags, letter == ":"
            if letter == "-":
                value = False
            elif letter in Flags._fields:
                flags = flags._replace(**{letter: value})
            else:
                raise NotOurs(f"`(?{letter}` is none of the groups `(?:`, `(?P<name>`, `(?imsU)`")

    def _quoted(self, flags: Flags) -> list[Node]:
        stop = self.text.find("\\E", self.place)
        stop = len(self.text) if stop < 0 else stop
        quoted, self.place = self.text[self.place : stop], min(stop + 2, len(self.text))
        parts = [_literal(Byte(ord(each), True), flags) for each in quoted]
        return [*parts[:-1], self._repeated(parts[-1], flags)] if parts else []

    def _repeated(self, node: Node, flags: Flags) -> Node:
        while True:
            found = self._times()
            if found is None:
                return node
            lazy = self.take("?") != flags.U
            node = Many(node, *found, lazy)

    def _times(self) -> tuple[int, int | None] | None:
        for sign, times in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.take(sign):
                return times
        if not self.ahead("{"):
            return None
        inside, closed, _ = self.text[self.place + 1 :].partition("}")
        first, comma, last = inside.partition(",")
        numbers = [each for each in (first, last) if each]
        if not closed or not first or not all(each.isascii() and each.isdigit() for each in numbers):
            return None
        self.place += len(inside) + 2
        return int(first), int(last) if last else None if comma else int(first)

    def _atom(self, flags: Flags) -> Node:
        letter = self.next()
        match letter:
            case "*" | "+" | "?":
                raise NotOurs(f"`{letter}` has nothing before it that it could repeat")
            case ".":
                return One(ALL if flags.s else ALL & ~NEWLINE)
            case "^":
                return Mark("^") if flags.m else self._edge("^")
            case "$":
                return Mark("$") if flags.m else self._edge("$")
            case "[":
                return self._set(flags)
            case "\\":
                return self._escaped(flags)
            case _:
                return _literal(Byte(ord(letter), True), flags)

    def _edge(self, mark: str) -> Node:
        if not self.of_line:
            raise NotOurs(
                "`\\A`, `\\z` and `(?-m)` speak of the ends of a text, and a stream has none: use `^` and `$`"
            )
        return Mark(mark)

    def _escaped(self, flags: Flags) -> Node:
        letter = self.text[self.place : self.place + 1]
        if letter in ("b", "B"):
            self.place += 1
            return Mark(letter)
        if letter in ("A", "z"):
            self.place += 1
            return self._edge("^" if letter == "A" else "$")
        if letter == "C":
            self.place += 1
            return One(ALL)
        perl = self._perl()
        return One(perl) if perl is not None else _literal(self._character(), flags)

    def _perl(self) -> int | None:
        letter = self.text[self.place : self.place + 1]
        if letter and letter in "pP":
            raise NotOurs("`\\p{..}` is about characters, and the stream is of bytes: write the characters themselves")
        if letter.lower() not in PERL or not letter:
            return None
        self.place += 1
        return PERL[letter.lower()] if letter.islower() else ALL & ~PERL[letter.lower()]

    def _character(self) -> Byte:
        """After a backslash."""
        letter = self.next()
        if letter in CONTROLS:
            return Byte(CONTROLS[letter], False)
        if letter == "x":
            value = self.until("}") if self.take("{") else self.next() + self.next()
            number = int(value, 16)
            if number > 0xFF:
                raise NotOurs(f"`\\x{{{value}}}` is no byte: write the character itself")
            return Byte(number, False)
        if letter in "01234567":
            while len(letter) < 3 and self.text[self.place : self.place + 1] in tuple("01234567"):
                letter += self.next()
            number = int(letter, 8)
            if number > 0xFF:
                raise NotOurs(f"`\\{letter}` is no byte")
            return Byte(number, False)
        if not letter.isascii() or letter.isalnum():
            raise NotOurs(f"`\\{letter}` has no meaning here")
        return Byte(ord(letter), False)

    def _set(self, flags: Flags) -> Node:
        inverted = self.take("^")
        plain = 0
        wide: list[tuple[int, int]] = []
        first = True
        while first or not self.ahead("]"):
            first = False
            part = self._class()
            if part is not None:
                plain |= part
                continue
            low = self._member()
            high = low
            if self.ahead("-") and not self.text.startswith("-]", self.place):
                self.place += 1
                high = self._member()
            if high.value < 0x80 or not (high.whole or (low.value > 0x7F and low.whole)):
                plain |= bits(range(low.value, high.value + 1))
                continue
            if not high.whole or (low.value > 0x7F and not low.whole):
                raise NotOurs("a range between a byte and a character has no meaning: use two of one kind")
            plain |= bits(range(low.value, 0x80))
            wide.append((max(low.value, 0x80), high.value))
        self.place += 1
        if flags.i:
            plain = _folded(plain)
            for low, high in wide:
                _check_fold(low, high)
        if not wide:
            return One(ALL & ~plain if inverted else plain)
        if not inverted:
            return Any((One(plain), utf8.characters(wide))) if plain else utf8.characters(wide)
        if plain >> 0x80:
            raise NotOurs("a set cannot leave out bytes beyond ASCII and characters beyond ASCII at once")
        return Any((One(((1 << 0x80) - 1) & ~plain), utf8.characters(utf8.without(wide))))

    def _class(self) -> int | None:
        """`\\d` or `[:digit:]` inside of a set."""
        if self.ahead("[:") and ":]" in self.text[self.place :]:
            stop = self.text.index(":]", self.place)
            name = self.text[self.place + 2 : stop]
            known = POSIX.get(name.removeprefix("^"))
            if known is not None:
                self.place = stop + 2
                return ALL & ~known if name.startswith("^") else known
        if not self.take("\\"):
            return None
        perl = self._perl()
        if perl is None:
            self.place -= 1
        return perl

    def _member(self) -> Byte:
        letter = self.next()
        return self._character() if letter == "\\" else Byte(ord(letter), True)


def _literal(of: Byte, flags: Flags) -> Node:
    if not of.whole or of.value < 0x80:
        return One(_folded(1 << of.value) if flags.i else 1 << of.value)
    if flags.i:
        _check_fold(of.value, of.value)
    return Row(tuple(One(1 << byte) for byte in chr(of.value).encode()))


def _folded(of: int) -> int:
    return of | (of & UPPER) << 0x20 | (of & LOWER) >> 0x20


def _check_fold(low: int, high: int) -> None:
    if high - low > 0x1000 or any(chr(each).swapcase() != chr(each) for each in range(low, high + 1)):
        raise NotOurs("`(?i)` is about ASCII letters alone: write other letters both ways, as in [éÉ]")


def literal(text: bytes) -> Node:
    """Exactly these bytes."""
    return Row(tuple(One(1 << byte) for byte in text)) if text else EMPTY
