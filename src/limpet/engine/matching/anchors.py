"""Settles each `^` and `$` inside a pattern by what stands beside it: hyperscan takes them at its edges alone."""

from __future__ import annotations

from typing import Final

from limpet.engine.matching.tree import EMPTY, NEVER, NEWLINE, Any, Group, Many, Mark, Node, One, Row, has_mark

LINE_EDGE: Final = 1
"""Beside it is a newline, or nothing."""
NO_EDGE: Final = 2
"""Beside it is another byte."""
OUTSIDE: Final = 4
"""Beside it is what the pattern says nothing of: the mark stays."""
NOWHERE: Final = 0
"""It never comes to this."""


class Unsettled(Exception):  # noqa: N818  (a pattern that cannot be rewritten; the caller refuses it)
    """A `^` or `$` that holds in some matches and not in others, by bytes that the same part of the pattern takes."""


def settle(node: Node, mark: str, beside: int) -> tuple[Node, int]:
    """Without that mark: `^` seen from left to right, `$` from right to left; and what is beside what comes next."""
    match node:
        case One(of):
            after = (LINE_EDGE if of & NEWLINE else 0) | (NO_EDGE if of & ~NEWLINE else 0)
            return (node, after) if beside else (NEVER, NOWHERE)
        case Mark(kind):
            if kind != mark or beside == OUTSIDE:
                return node, beside
            if beside == LINE_EDGE:
                return EMPTY, beside
            if beside != NO_EDGE:
                raise Unsettled
            return NEVER, NOWHERE
        case Group(part):
            inner, after = settle(part, mark, beside)
            return Group(inner), after
        case Row(parts):
            return _row(parts, mark, beside)
        case Any(ways):
            settled = [settle(way, mark, beside) for way in ways]
            left = tuple(way for way, after in settled if after)
            after = 0
            for _, each in settled:
                after |= each
            return (left[0] if len(left) == 1 else Any(left)) if left else NEVER, after
        case Many():
            return _many(node, mark, beside)


def _row(parts: tuple[Node, ...], mark: str, beside: int) -> tuple[Node, int]:
    order = parts if mark == "^" else parts[::-1]
    settled: list[Node] = []
    for part in order:
        inner, beside = settle(part, mark, beside)
        if not beside:
            return NEVER, NOWHERE
        settled.append(inner)
    return Row(tuple(settled if mark == "^" else settled[::-1])), beside


def _many(node: Many, mark: str, beside: int) -> tuple[Node, int]:
    if node.most == 0:
        return EMPTY, beside
    once, first = settle(node.part, mark, beside)
    if not first:
        return (EMPTY, beside) if node.least == 0 else (NEVER, NOWHERE)
    if not has_mark(node.part, mark):
        return Many(once, node.least, node.most, node.lazy), (first | beside if node.least == 0 else first)
    again, later = settle(node.part, mark, first) if node.most != 1 else (EMPTY, NOWHERE)
    if later and later != first:
        again, later = settle(node.part, mark, first | later)
    most = None if node.most is None else node.most - 1
    rest: tuple[Node, ...] = (Many(again, max(node.least - 1, 0), most, node.lazy),) if later else ()
    if not later and node.least > 1:
        return NEVER, NOWHERE
    both = (once, *rest)
    row = Row(both if mark == "^" else both[::-1])
    after = first | later
    return (Any((row, EMPTY)), after | beside) if node.least == 0 else (row, after)
