"""Reads shell text into its simple commands, each a list of words; in one pass, and never further than it may.

It follows bash where shells differ. What stands in substitutions, here-documents and functions is read too: it may run.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from limpet.model.naming.words import BLANKS, Budget, Unreadable, WordReader

Words = tuple[str, ...]

_REDIRECTION: Final = re.compile(r"&>>?|<<<|<<-?|<>|<&|>>|>&|>\||<|>")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_PARENTHESES: Final = re.compile(r"\([ \t]*\)")
_LINE: Final = re.compile(r"[^\n]*")
# Words that a command may follow.
_BEFORE_COMMANDS: Final = frozenset(
    ["if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!", "time", "coproc"]
)


def commands_of(text: str, budget: Budget) -> Sequence[Words]:
    """The simple commands of the text, in the order of their ends, as far as the budget goes."""
    reader = _Reader(text, budget)
    try:
        reader.read_list("")
    except Unreadable:
        budget.is_whole = False
    return reader.found


class _Reader(WordReader):
    def __init__(self, text: str, budget: Budget) -> None:
        super().__init__(text, budget)
        self.found: list[Words] = []

    def read_list(self, until: str) -> bool:
        """Up to what ends it: nothing, `)`, or in a `case` the end of an item; whether another item may follow."""
        self._go_deeper()
        is_followed = self._read_list(until)
        self._depth -= 1
        return is_followed

    def _read_list(self, until: str) -> bool:
        words: list[str] = []
        after_time = False
        while True:
            self._budget.spend()
            self._skip(BLANKS)
            if self._pos >= len(self._text):
                self._end(words)
                if until:
                    self._is_odd()
                return False
            sign = self._text[self._pos]
            if sign == "\n":
                self._end(words)
                self._pos += 1
                self._skip_here_documents()
            elif sign == "#":
                self._skip(_LINE)
            elif (sign in "<>" and not self._at("<(", ">(")) or self._at("&>"):
                self._redirection()
            elif sign in ";&|":
                self._end(words)
                ends_item = until == "case" and self._at(";;", ";&")
                self._pos += 3 if self._at(";;&") else 2 if ends_item else 1
                if ends_item:
                    return True
            elif sign == "(":
                self._parenthesis(words)
            elif sign == ")":
                self._end(words)
                self._pos += 1
                if until == ")":
                    return False
                self._is_odd()
            else:
                start = self._pos
                word = self._word()
                raw = self._text[start : self._pos]
                if words:
                    if not (raw.isdigit() and self._at("<", ">")):
                        words.append(word)
                elif raw == "esac" and until == "case":
                    return False
                elif raw in _BEFORE_COMMANDS:
                    after_time = raw == "time"
                elif raw in _COMPOUND:
                    _COMPOUND[raw](self)
                elif not (_ASSIGNMENT.match(raw) or (raw.isdigit() and self._at("<", ">"))) and not (
                    after_time and raw in ("-p", "--")
                ):
                    words.append(word)

    def _end(self, words: list[str]) -> None:
        if words:
            self.found.append(tuple(words))
            words.clear()

    def _parenthesis(self, words: list[str]) -> None:
        if self._at("((") and not words:
            self._pos += 2
            self._arithmetic()
        elif len(words) == 1 and self._skip(_PARENTHESES):
            words.clear()  # a function is defined: its body follows
        else:
            if words:
                self._is_odd()
                self._end(words)
            self._pos += 1
            self.read_list(")")

    def _redirection(self) -> None:
        sign = self._skip(_REDIRECTION)
        self._skip(BLANKS)
        start = self._pos
        word = self._word()
        if sign in ("<<", "<<-"):
            raw = self._text[start : self._pos]
            self._here.append((word, not any(quote in raw for quote in "'\"\\"), sign == "<<-"))

    def _skip_here_documents(self) -> None:
        here, self._here = self._here, []
        for last, is_expanded, is_indented in here:
            start = place = self._pos
            while True:
                self._budget.spend()
                place = self._text.find(last, place)
                if place < 0:  # it goes on to the end, as bash has it
                    end = self._pos = len(self._text)
                    break
                begin = self._text.rfind("\n", start, place) + 1 or start
                lead, behind = self._text[begin:place], place + len(last)
                is_line = behind == len(self._text) or self._text[behind] == "\n"
                if is_line and not (lead.strip("\t") if is_indented else lead):
                    end, self._pos = begin, min(behind + 1, len(self._text))
                    break
                place += 1
            if is_expanded:
                self._within(self._text[start:end], lambda: self._quoted(""))

    def read_case(self) -> None:
        self._skip(BLANKS)
        self._word()
        self._skip_lines()
        if self._word() != "in":
            self._is_odd()
            return
        while True:
            self._skip_lines()
            if self._at("("):
                self._pos += 1
            before = self._pos
            while not self._at(")") and self._pos < len(self._text):
                self._budget.spend()
                self._skip_lines()
                if self._at("|"):
                    self._pos += 1
                    continue
                start = self._pos
                self._word()
                if self._text[start : self._pos] == "esac" and start == before:
                    return
                if self._pos == start:  # neither a word nor what may stand between two
                    break
            if not self._at(")"):
                self._is_odd()
                return
            self._pos += 1
            if not self.read_list("case"):
                return

    def read_for(self) -> None:
        self._skip(BLANKS)
        if self._at("(("):
            self._pos += 2
            self._arithmetic()
            return
        self._word()
        self._skip_lines()
        before = self._pos
        if self._word() != "in":
            self._pos = before
            return
        while self._skip(BLANKS) or not self._at(";", "\n", "&", "|", ")", "<", ">", "("):
            self._budget.spend()
            before = self._pos
            self._word()
            if self._pos == before:
                return

    def read_function(self) -> None:
        self._skip(BLANKS)
        self._word()
        self._skip(BLANKS)
        self._skip(_PARENTHESES)

    def read_test(self) -> None:
        """`[[ ... ]]`, in which words are compared."""
        while self._pos < len(self._text):
            self._budget.spend()
            self._skip_lines()
            start = self._pos
            self._word()
            if self._text[start : self._pos] == "]]":
                return
            if self._pos == start:
                self._pos += 1
        self._is_odd()


_COMPOUND: "Final[dict[str, Callable[[_Reader], None]]]" = {
    "case": _Reader.read_case,
    "for": _Reader.read_for,
    "select": _Reader.read_for,
    "function": _Reader.read_function,
    "[[": _Reader.read_test,
}
