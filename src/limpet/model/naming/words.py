"""Reads words of shell text: quotes and escapes taken out, what is known only when it runs marked, never too far."""

import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Final

UNKNOWN: Final = "\0"
"""Stands in a word for what is known only when it runs: a variable, the output of a command, a pattern."""

# How many pieces are looked at in all, and how deep they may lie in one another.
MOST_STEPS: Final = 50_000
MOST_DEPTH: Final = 100

BLANKS: Final = re.compile(r"(?:[ \t\r]++|\\\n)++")
_PLAIN: Final = re.compile(r"[^\s;&|()<>'\"\\$`*?\[{]+")
_IN_DOUBLE: Final = re.compile(r"[^\"\\$`]+")
_IN_PARAMETER: Final = re.compile(r"[^}'\"\\$`]+")
_IN_ARITHMETIC: Final = re.compile(r"[^()$`'\"\\]+")
_BACKTICKS: Final = re.compile(r"`((?:[^`\\]|\\.)*+)`", re.DOTALL)
_ANSI_C: Final = re.compile(r"\$'((?:[^'\\]|\\.)*+)'", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])")
_BRACES: Final = re.compile(r"\{[^\s{},]*(?:,|\.\.)[^\s{}]*\}")
_ARRAY: Final = re.compile(r"[A-Za-z_]\w*\+?=")
_ESCAPE: Final = re.compile(r"\\(x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}|c.|.)", re.DOTALL)
_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
}


class Unreadable(Exception):  # noqa: N818  (it ends a reading, nothing more)
    """There is more than may be read."""


class Budget:
    """How much may still be read, and whether all that was read was sound. Several texts may share one."""

    def __init__(self, most_steps: int = MOST_STEPS) -> None:
        self.is_whole = True
        self._steps = most_steps

    def spend(self, steps: int = 1) -> None:
        """So many steps more."""
        self._steps -= steps
        if self._steps < 0:
            raise Unreadable


class WordReader(ABC):
    """A place in a text. What is between `$(` and `)` is for whoever reads lists of commands."""

    def __init__(self, text: str, budget: Budget) -> None:
        self._text = text
        self._pos: int = 0
        self._budget = budget
        self._depth = 0
        # Here-documents whose text begins on the next line: their last lines, whether what is in them is expanded, and
        # whether they are indented.
        self._here: list[tuple[str, bool, bool]] = []

    @abstractmethod
    def read_list(self, until: str) -> bool:
        """Reads commands up to there."""

    @abstractmethod
    def _skip_here_documents(self) -> None:
        """Passes over those that are due, at the beginning of a line."""

    def _is_odd(self) -> None:
        self._budget.is_whole = False

    def _at(self, *what: str) -> bool:
        return self._text.startswith(what, self._pos)

    def _skip(self, pattern: "re.Pattern[str]") -> str:
        found = pattern.match(self._text, self._pos)
        if found is None:
            return ""
        self._pos = found.end()
        return found[0]

    def _go_deeper(self) -> None:
        self._depth += 1
        if self._depth > MOST_DEPTH:
            raise Unreadable

    def _skip_lines(self) -> None:
        while self._skip(BLANKS) or self._at("\n"):
            self._budget.spend()
            if self._at("\n"):
                self._pos += 1
                self._skip_here_documents()

    def _word(self) -> str:
        """The word that stands here, quotes and escapes taken out; empty where none does."""
        start, parts = self._pos, list[str]()
        while self._pos < len(self._text):
            self._budget.spend()
            if plain := self._skip(_PLAIN):
                parts.append(plain)
                continue
            sign = self._text[self._pos]
            if sign == "'":
                parts.append(self._single())
            elif sign == '"':
                self._pos += 1
                parts.append(self._quoted('"'))
            elif sign == "\\":
                if self._pos + 1 == len(self._text):
                    self._is_odd()
                if not self._at("\\\n"):
                    parts.append(self._text[self._pos + 1 : self._pos + 2])
                self._pos += 2
            elif sign == "$":
                parts.append(self._dollar(is_quoted=False))
            elif sign == "`":
                parts.append(self._backticks())
            elif sign == "{":
                parts.append(UNKNOWN if self._skip(_BRACES) else sign)
                self._pos += parts[-1] == sign
            elif sign in "*?[":
                self._pos += 1
                is_name = sign == "[" and self._pos == start + 1 and self._at(" ", "\t", "\n")
                parts.append(sign if is_name else UNKNOWN)
            elif self._at("<(", ">("):
                self._pos += 2
                self.read_list(")")
                parts.append(UNKNOWN)
            elif sign == "(" and _ARRAY.fullmatch(self._text, start, self._pos):
                self._pos += 1
                self._array()
                parts.append(UNKNOWN)
            else:
                break
        self._pos = min(self._pos, len(self._text))
        return "".join(parts)

    def _array(self) -> None:
        self._go_deeper()
        while self._pos < len(self._text):
            self._skip_lines()
            if self._at(")"):
                self._pos += 1
                self._depth -= 1
                return
            before = self._pos
            self._word()
            if self._pos == before:
                self._pos += 1
                self._is_odd()
        self._is_odd()
        self._depth -= 1

    def _single(self) -> str:
        end = self._text.find("'", self._pos + 1)
        if end < 0:
            self._is_odd()
            end = len(self._text)
        text, self._pos = self._text[self._pos + 1 : end], end + 1
        return text

    def _quoted(self, end: str) -> str:
        """What stands between double quotes, or with no `end` in all that is left."""
        parts: list[str] = []
        while self._pos < len(self._text):
            self._budget.spend()
            if plain := self._skip(_IN_DOUBLE):
                parts.append(plain)
            elif self._text[self._pos] == '"':
                self._pos += 1
                if end:
                    return "".join(parts)
                parts.append('"')
            elif self._text[self._pos] == "\\":
                escaped = self._text[self._pos + 1 : self._pos + 2]
                parts.append("" if escaped == "\n" else escaped if escaped in '$`"\\' else f"\\{escaped}")
                self._pos += 2
            elif self._text[self._pos] == "$":
                parts.append(self._dollar(is_quoted=True))
            else:
                parts.append(self._backticks())
        if end:
            self._is_odd()
        return "".join(parts)

    def _dollar(self, *, is_quoted: bool) -> str:
        self._go_deeper()
        text = self._expansion(is_quoted=is_quoted)
        self._depth -= 1
        return text

    def _expansion(self, *, is_quoted: bool) -> str:
        if self._at("$(("):
            self._pos += 3
            self._arithmetic()
        elif self._at("$("):
            self._pos += 2
            self.read_list(")")
        elif self._at("${"):
            self._pos += 2
            self._parameter(is_quoted=is_quoted)
        elif not is_quoted and self._at("$'"):
            found = _ANSI_C.match(self._text, self._pos)
            if found is None:
                self._pos += 1
                return self._single()
            self._pos = found.end()
            self._budget.spend(found[1].count("\\"))
            return _ESCAPE.sub(_unescaped, found[1])
        elif not is_quoted and self._at('$"'):
            self._pos += 2
            return self._quoted('"')
        elif not self._skip(_VARIABLE):
            self._pos += 1
            return "$"
        return UNKNOWN

    def _parameter(self, *, is_quoted: bool) -> None:
        while self._pos < len(self._text):
            self._budget.spend()
            if self._skip(_IN_PARAMETER):
                continue
            sign = self._text[self._pos]
            if sign == "}":
                self._pos += 1
                return
            if sign == "'" and not is_quoted:
                self._single()
            elif sign == '"':
                self._pos += 1
                self._quoted('"')
            elif sign == "$":
                self._dollar(is_quoted=is_quoted)
            elif sign == "`":
                self._backticks()
            else:
                self._pos += 2 if sign == "\\" else 1
        self._is_odd()

    def _arithmetic(self) -> None:
        """Behind `((`, up to its `))`."""
        inner = 0
        while self._pos < len(self._text):
            self._budget.spend()
            if self._skip(_IN_ARITHMETIC):
                continue
            sign = self._text[self._pos]
            if sign == "$":
                self._dollar(is_quoted=True)
            elif sign == "`":
                self._backticks()
            elif sign == '"':
                self._pos += 1
                self._quoted('"')
            else:
                self._pos += 2 if sign == "\\" else 1
                inner += (sign == "(") - (sign == ")")
                if inner < 0:
                    if self._at(")"):
                        self._pos += 1
                    else:
                        self._is_odd()  # a subshell in a subshell, which looks alike
                    return
        self._is_odd()

    def _backticks(self) -> str:
        found = _BACKTICKS.match(self._text, self._pos)
        if found is None:
            self._is_odd()
            self._pos = len(self._text)
            return UNKNOWN
        self._pos = found.end()
        self._budget.spend(found[1].count("\\"))
        self._within(re.sub(r"\\([`\\$])", r"\1", found[1]), lambda: self.read_list(""))
        return UNKNOWN

    def _within(self, text: str, read: Callable[[], object]) -> None:
        """Reads another text for a while."""
        self._go_deeper()
        mine, here = (self._text, self._pos), self._here
        self._text, self._pos, self._here = text, 0, []
        read()
        (self._text, self._pos), self._here = mine, here
        self._depth -= 1


def _unescaped(found: "re.Match[str]") -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if 0 < number <= 0x10FFFF else UNKNOWN
    if code[0] in "01234567":
        return chr(int(code, 8) & 0xFF) if int(code, 8) & 0xFF else UNKNOWN
    if code[0] == "c" and len(code) > 1:
        return UNKNOWN
    return _ESCAPES.get(code, code if code in "\\'\"?" else f"\\{code}")
