"""From a caller's text to a pattern both engines read alike, or to a refusal in plain words."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections import OrderedDict
from typing import Any, Final, Literal, get_args

from limpet.engine.matching import anchors, tree
from limpet.engine.matching.hyperscan_streams import Database, TooLarge
from limpet.engine.matching.scan_line import LineScanner
from limpet.engine.matching.scan_stream import StreamScanner
from limpet.engine.matching.scan_text import TextScanner
from limpet.engine.matching.scanner import Scanner
from limpet.engine.matching.syntax import NotOurs, literal, read
from limpet.model.errors import Refusal

MatchType = Literal["regex", "line", "substring"]

MOST_TEXT_BYTES: Final = 2048
"""A longer pattern is refused: with its length and size, the time to compile it is bounded."""
MOST_PLACES: Final = 4000
"""A pattern is refused that matches more bytes and marks one by one, repetitions written out."""
MOST_COUNTED: Final = 600
"""The same, of counted repetitions alone: RE2 may need time for each of them at each byte."""
MOST_STEPS: Final = 20_000
"""A pattern is refused that has more ways from one of its places to the next: hyperscan would compile for minutes."""
KEPT_PATTERNS: Final = 256
RE2_BYTES: Final = 8 << 20

_ANY = rb"[\x00-\xff]"
_NO_NEWLINE = rb"[\x00-\x09\x0b-\xff]"


class Pattern:
    """What is looked for, ready to be scanned for. Any number of scanners, in any thread, use one at once."""

    def __init__(self, text: str, match_type: MatchType) -> None:
        self.text = text
        self.match_type: MatchType = match_type
        raw = _encoded(text)
        self.raw: Final = raw
        if match_type == "substring":
            if not raw:
                raise NotOurs("it is empty")
            self.tree: tree.Node = literal(raw)
        else:
            self.tree = _tree(text, of_line=match_type == "line")
        self.facts = tree.facts(self.tree)
        self.expression: bytes | None = None
        """For hyperscan. Of a line: what finds the lines to look at, if the engine can say it at all."""
        self.leads = False
        self.database: Database | None = None
        self.line_engine: Any = None
        self.names: dict[int, str] = {}
        if match_type == "regex":
            self.expression, self.leads = _expression(self.tree)
            self.database = _database(self.expression)
        elif match_type == "line":
            with contextlib.suppress(NotOurs):
                self.expression, self.leads = _expression(self.tree)
            self.line_engine = _re2(tree.written(self.tree, groups=True))
            self.names = {number: name for name, number in _re2(text).groupindex.items()}

    def scanner(self, offset: int, line_before: bytes = b"", *, most_hits: int | None = None) -> Scanner:
        """Looks from `offset` on, which is where the next bytes that are fed lie.

        `line_before` is what stands on the line before `offset` (its end will do; empty at a line's start).
        `most_hits`: the scanner stops looking once it has found as many.
        """
        match self.match_type:
            case "regex":
                return StreamScanner(self, offset, line_before, most_hits)
            case "line":
                return LineScanner(self, offset, line_before, most_hits)
            case "substring":
                return TextScanner(self, offset, line_before, most_hits)


_lock = threading.Lock()
_patterns: OrderedDict[tuple[str, str], Pattern | str] = OrderedDict()


def compile_pattern(text: str, match_type: MatchType = "regex", *, field: str = "regex") -> Pattern:
    """A pattern, or the refusal `invalid_argument` that names `field`.

    Call it in a thread: it may take half a second, mostly without the interpreter's lock. The latest are kept.
    """
    if match_type not in get_args(MatchType):
        raise Refusal("invalid_argument", f"match_type is one of {', '.join(get_args(MatchType))}", field="match_type")
    known = known_pattern(text, match_type, field=field)
    if known is not None:
        return known
    try:
        made = Pattern(text, match_type)
    except NotOurs as no:
        made = str(no)
    with _lock:
        _patterns[text, match_type] = made
        while len(_patterns) > KEPT_PATTERNS:
            _patterns.popitem(last=False)
    return _usable(made, field)


def known_pattern(text: str, match_type: MatchType = "regex", *, field: str = "regex") -> Pattern | None:
    """One that was compiled, or refused, lately: at once, in any thread. None: it would have to be compiled."""
    with _lock:
        made = _patterns.get((text, match_type))
        if made is None:
            return None
        _patterns.move_to_end((text, match_type))
    return _usable(made, field)


def _usable(made: Pattern | str, field: str) -> Pattern:
    if isinstance(made, str):
        raise Refusal("invalid_argument", f"{field} cannot be used: {made}", field=field)
    return made


def _encoded(text: str) -> bytes:
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        raise NotOurs("it is no text that UTF-8 can hold") from None
    if len(raw) > MOST_TEXT_BYTES:
        raise NotOurs(f"it is {len(raw)} bytes long, and {MOST_TEXT_BYTES} are the most")
    return raw


def _tree(text: str, *, of_line: bool) -> tree.Node:
    try:
        _re2(text)
    except _engine().error as error:
        raise NotOurs(_words(error)) from None
    node = read(text, of_line=of_line)
    if of_line:
        node = tree.within_a_line(node)
    known = tree.facts(node)
    if known.least == 0:
        raise NotOurs("it can match nothing at all: have it match one byte at least")
    if known.places > MOST_PLACES or known.counted > MOST_COUNTED:
        raise NotOurs("it is too large with its repetitions written out")
    if tree.ways(node).steps > MOST_STEPS:
        raise NotOurs("it is too large: too much of it can be left out, in too many ways")
    return node


def _expression(node: tree.Node) -> tuple[bytes, bool]:
    """For hyperscan; and whether it takes the byte before a match along, which `^`, `\\b` and `\\B` look at."""
    try:
        ended, _ = anchors.settle(node, "$", anchors.OUTSIDE)
        if not tree.has_mark(ended, "^"):
            leads = tree.has_mark(ended, "bB")
            text = tree.written(ended, groups=False)
            return ((_ANY + b"(?:" + text + b")") if leads else text), leads
        ways: list[bytes] = []
        for before, beside in ((rb"\x0a", anchors.LINE_EDGE), (_NO_NEWLINE, anchors.NO_EDGE)):
            settled, possible = anchors.settle(ended, "^", beside)
            if possible:
                ways.append(before + b"(?:" + tree.written(settled, groups=False) + b")")
    except anchors.Unsettled:
        raise NotOurs(
            "`^` may stand where a match begins and `$` where it ends, or beside what is always a newline or never one"
        ) from None
    if not ways:
        raise NotOurs("it can never match")
    return b"|".join(ways), True


def _database(expression: bytes) -> Database:
    try:
        return Database([expression], once=False)
    except TooLarge as error:
        words = str(error)
        if "never match" in words:
            raise NotOurs("it can never match") from None
        if "too large" in words:
            raise NotOurs(
                "the engine finds it too large: use fewer or smaller repetitions, or match_type `line`"
            ) from None
        raise NotOurs(f"the engine does not take it ({words.rstrip('.')})") from None


def _engine() -> Any:
    return importlib.import_module("re2")


def _re2(pattern: str | bytes) -> Any:
    re2 = _engine()
    options = re2.Options()
    options.log_errors = False
    options.max_mem = RE2_BYTES
    if isinstance(pattern, bytes):
        options.encoding = re2.Options.Encoding.LATIN1
        pattern = b"(?m)" + pattern
    return re2.compile(pattern, options)


def _words(error: Exception) -> str:
    said = error.args[0] if error.args else ""
    words = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
    if words.startswith("invalid perl operator: (?") and words[25:26] in ("=", "!", "<"):
        return f"look-around is not linear in time ({words})"
    if words.startswith("invalid escape sequence: \\") and words[26:27].isdigit():
        return f"back references are not linear in time ({words})"
    return f"{words} (the syntax is RE2's)"
