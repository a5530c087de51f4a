"""A pattern as a tree over bytes: what it can match, and how it is written so that both engines read the same."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

ALL: Final = (1 << 256) - 1
NEWLINE: Final = 1 << 0x0A


def bits(values: bytes | range) -> int:
    """A set of bytes, as a number with one bit for each."""
    made = 0
    for value in values:
        made |= 1 << value
    return made


INSIDE: Final = bits(range(0x80, 0xC0))
"""Bytes that go on with a character of UTF-8."""
WORD: Final = bits(b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz")


@dataclass(frozen=True, slots=True)
class One:
    """One byte of a set; of the empty set it never matches."""

    of: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Matches between bytes: `^` and `$` of a line, `b` and `B` of a word."""

    kind: str


@dataclass(frozen=True, slots=True)
class Row:
    """One after the other."""

    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """One of them; earlier ones are preferred where that matters."""

    ways: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Many:
    """Again and again; `most` is None where nothing bounds it."""

    part: Node
    least: int
    most: int | None
    lazy: bool


@dataclass(frozen=True, slots=True)
class Group:
    """What a group reports; groups are numbered by where they open."""

    part: Node


Node = One | Mark | Row | Any | Many | Group
EMPTY: Final = Row(())
NEVER: Final = One(0)


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of all texts that a tree can match."""

    least: int
    """No match is shorter (bytes)."""
    most: int | None
    """No match is longer; None where nothing bounds it."""
    newlines: int | None
    """No match has more newlines; None where nothing bounds it."""
    places: int
    """How many places an automaton of it has: repetitions written out."""
    counted: int
    """How many of these come of repetitions that are counted: they cost the most."""


def facts(node: Node) -> Facts:
    match node:
        case One(of):
            return Facts(1, 1, 1 if of & NEWLINE else 0, 1, 0)
        case Mark():
            return Facts(0, 0, 0, 1, 0)
        case Group(part):
            return facts(part)
        case Row(parts):
            each = [facts(part) for part in parts]
            return Facts(
                sum(one.least for one in each),
                _sum([one.most for one in each]),
                _sum([one.newlines for one in each]),
                sum(one.places for one in each),
                sum(one.counted for one in each),
            )
        case Any(ways):
            each = [facts(way) for way in ways]
            return Facts(
                min(one.least for one in each),
                _most([one.most for one in each]),
                _most([one.newlines for one in each]),
                sum(one.places for one in each),
                sum(one.counted for one in each),
            )
        case Many(part, least, most, _):
            one = facts(part)
            times = max(least, 1) if most is None else most
            written = max(one.places, one.counted) * times
            return Facts(
                one.least * least,
                _times(one.most, most),
                _times(one.newlines, most),
                written,
                written if times > 1 else one.counted,
            )


@dataclass(frozen=True, slots=True)
class Ways:
    """How many places a match begins and ends with, and how many steps lead from place to place."""

    begins: int
    ends: int
    steps: int
    empty: bool


def ways(node: Node) -> Ways:
    """What an engine has to build: what may be left out adds steps by the square."""
    match node:
        case One():
            return Ways(1, 1, 0, False)
        case Mark():
            return Ways(1, 1, 0, True)
        case Group(part):
            return ways(part)
        case Row(parts):
            whole = Ways(0, 0, 0, True)
            for part in parts:
                whole = _joined(whole, ways(part))
            return whole
        case Any(either):
            each = [ways(way) for way in either]
            return Ways(
                sum(one.begins for one in each),
                sum(one.ends for one in each),
                sum(one.steps for one in each),
                any(one.empty for one in each),
            )
        case Many(part, least, most, _):
            one = ways(part)
            times = max(least, 1) if most is None else max(most, 1)
            left_out = times if one.empty else times - max(least, 1) + 1
            steps = times * one.steps + (times - 1) * one.begins * one.ends
            if one.empty:
                steps += one.begins * one.ends * times * times // 2
            if most is None:
                steps += one.begins * one.ends
            begins = one.begins * (times if one.empty else 1)
            return Ways(begins, one.ends * left_out, steps, one.empty or least == 0)


def _joined(first: Ways, then: Ways) -> Ways:
    return Ways(
        first.begins + (then.begins if first.empty else 0),
        then.ends + (first.ends if then.empty else 0),
        first.steps + then.steps + first.ends * then.begins,
        first.empty and then.empty,
    )


def _sum(values: list[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total


def _most(values: list[int | None]) -> int | None:
    top = 0
    for value in values:
        if value is None:
            return None
        top = max(top, value)
    return top


def _times(value: int | None, times: int | None) -> int | None:
    if value == 0 or times == 0:
        return 0
    return None if value is None or times is None else value * times


def firsts(node: Node) -> tuple[int, bool]:
    """With which bytes a match can begin, and whether it can be empty."""
    match node:
        case One(of):
            return of, False
        case Mark():
            return 0, True
        case Group(part):
            return firsts(part)
        case Row(parts):
            of = 0
            for part in parts:
                more, empty = firsts(part)
                of |= more
                if not empty:
                    return of, False
            return of, True
        case Any(ways):
            each = [firsts(way) for way in ways]
            of = 0
            for more, _ in each:
                of |= more
            return of, any(empty for _, empty in each)
        case Many(part, least, _, _):
            of, empty = firsts(part)
            return of, empty or least == 0


def has_mark(node: Node, kinds: str) -> bool:
    match node:
        case One():
            return False
        case Mark(kind):
            return kind in kinds
        case Row(parts) | Any(parts):
            return any(has_mark(part, kinds) for part in parts)
        case Many(part) | Group(part):
            return has_mark(part, kinds)


def within_a_line(node: Node) -> Node:
    """The same over texts without a newline."""
    match node:
        case One(of):
            return One(of & ~NEWLINE)
        case Mark():
            return node
        case Row(parts):
            return Row(tuple(within_a_line(part) for part in parts))
        case Any(ways):
            return Any(tuple(within_a_line(way) for way in ways))
        case Many(part, least, most, lazy):
            return Many(within_a_line(part), least, most, lazy)
        case Group(part):
            return Group(within_a_line(part))


def written(node: Node, *, groups: bool) -> bytes:
    """In the few words that RE2 and hyperscan share: bytes and sets by number, marks per line."""
    match node:
        case One(of):
            return _set(of)
        case Mark(kind):
            return {"^": b"^", "$": b"$", "b": rb"\b", "B": rb"\B"}[kind]
        case Row(parts):
            return b"".join(
                _held(part, groups) if isinstance(part, Any) else written(part, groups=groups) for part in parts
            )
        case Any(ways):
            return b"|".join(written(way, groups=groups) for way in ways)
        case Many(part, least, most, lazy):
            text = written(part, groups=groups) if isinstance(part, One) else _held(part, groups)
            return text + _count(least, most) + (b"?" if lazy and groups else b"")
        case Group(part):
            return b"(" + written(part, groups=True) + b")" if groups else _held(part, groups)


def _held(node: Node, groups: bool) -> bytes:
    return b"(?:" + written(node, groups=groups) + b")"


def _count(least: int, most: int | None) -> bytes:
    match least, most:
        case 0, None:
            return b"*"
        case 1, None:
            return b"+"
        case 0, 1:
            return b"?"
        case _, None:
            return b"{%d,}" % least
        case _:
            return b"{%d}" % least if least == most else b"{%d,%d}" % (least, most)


@lru_cache(maxsize=1024)
def _set(of: int) -> bytes:
    if of == 0:
        return rb"[^\x00-\xff]"
    ranges: list[tuple[int, int]] = []
    for value in range(256):
        if of >> value & 1:
            if ranges and ranges[-1][1] == value - 1:
                ranges[-1] = (ranges[-1][0], value)
            else:
                ranges.append((value, value))
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _byte(ranges[0][0])
    return b"[" + b"".join(_byte(a) if a == b else _byte(a) + b"-" + _byte(b) for a, b in ranges) + b"]"


def _byte(value: int) -> bytes:
    return bytes([value]) if WORD >> value & 1 else rb"\x%02x" % value
