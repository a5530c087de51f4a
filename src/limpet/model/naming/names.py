"""From a command line or an argv to the names of the programs that it runs."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from limpet.model.naming import wrappers
from limpet.model.naming.shell_text import commands_of
from limpet.model.naming.words import UNKNOWN, Budget

# How often text may stand in text (`bash -c "bash -c ..."`), how many commands are looked at, and how many names told.
_MOST_TEXTS: Final = 8
_MOST_COMMANDS: Final = 10_000
_MOST_NAMES: Final = 1000
_QUOTING: Final = dict.fromkeys(map(ord, "'\"\\\n"))


class Names(NamedTuple):
    """Names of programs, without their directories, each once, in the order in which they stand.

    `is_whole` where these are all: no text was left unread, and no name is known only when it runs.
    """

    names: tuple[str, ...]
    is_whole: bool

    def first_of(self, wanted: "frozenset[str] | set[str]") -> str | None:
        """The first that is among those wanted, which are folded (`str.casefold`), as it is wanted."""
        return next((name.casefold() for name in self.names if name.casefold() in wanted), None)


def names_in(command: str) -> Names:
    """What a line of shell runs. Never raises; the longer or odder the text, the sooner it is not whole."""
    found = _Found()
    found.take_text(command)
    return found.names()


def names_of(argv: Sequence[str]) -> Names:
    """What a program with these arguments runs: itself, and what it hands on."""
    found = _Found()
    found.take_words(argv)
    return found.names()


def might_name(command: str, wanted: Iterable[str]) -> bool:
    """Whether one of these names, folded and without quotes, can stand in the text at all; a no is never wrong."""
    if "$'" in command:
        return True
    bare = command.translate(_QUOTING).casefold()
    return any(name in bare for name in wanted)


class _Found:
    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._budget = Budget()
        self._texts = 0
        self._commands = 0

    def names(self) -> Names:
        return Names(tuple(self._names), self._budget.is_whole)

    def take_text(self, text: str) -> None:
        if self._texts == _MOST_TEXTS:
            self._budget.is_whole = False
            return
        self._texts += 1
        for words in commands_of(text, self._budget):
            self.take_words(words)
        self._texts -= 1

    def take_words(self, words: Sequence[str]) -> None:
        is_package = False
        while words:
            self._commands += 1
            if self._commands > _MOST_COMMANDS:
                self._budget.is_whole = False
                return
            name = self._add(words[0], is_package=is_package)
            if name is None:
                return
            inner = _inner(name, words[1:])
            if inner.text is not None:
                self.take_text(inner.text)
            if name == "find":
                for each in wrappers.find_inner(words[1:]):
                    self.take_words(each)
            words, is_package = inner.words, inner.is_package

    def _add(self, word: str, *, is_package: bool) -> str | None:
        """The name of the program; None where it is known only when it runs."""
        names = list(_package_names(word)) if is_package else [word.rpartition("/")[2]]
        for name in names:
            if UNKNOWN in name or not name or len(self._names) == _MOST_NAMES:
                self._budget.is_whole = False
                return None
            self._names[name] = None
        return names[-1]


def _package_names(word: str) -> Iterator[str]:
    """`playwright@1.49` is playwright; `@scope/name@1` is known by either of its names."""
    if word.startswith("@") and "/" in word:
        word = word[:at] if (at := word.find("@", 1)) > 0 else word
        yield word
    name = word.rpartition("/")[2]
    yield name[:1] + name[1:].partition("@")[0]


def _inner(name: str, words: Sequence[str]) -> wrappers.Inner:
    if name in wrappers.SHELLS:
        return wrappers.shell_inner(words)
    if name in wrappers.PACKAGE_RUNNERS:
        return wrappers.runner_inner(name, words)
    if name == "eval":
        return wrappers.Inner(text=" ".join(words))
    wrapper = wrappers.WRAPPERS.get(name)
    return wrappers.Inner() if wrapper is None else wrapper.inner(words)
