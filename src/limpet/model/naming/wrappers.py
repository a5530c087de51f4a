"""Programs that run another one: which of their words are the command that they run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

Words = Sequence[str]


class Inner(NamedTuple):
    """What a wrapper runs: the words of a command, shell text, or a package that is run as a command."""

    words: Words = ()
    text: str | None = None
    is_package: bool = False


_NOTHING: Final = Inner()


@dataclass(frozen=True, slots=True)
class Wrapper:
    """Options, then so many words of its own, then the command."""

    valued: frozenset[str] = frozenset()
    """Options whose value is the next word, unless it hangs on (`-n5`, `--signal=KILL`)."""
    own_words: int = 0
    assigns: bool = False
    """Words like `NAME=value` may stand before the command."""
    silent: frozenset[str] = frozenset()
    """Options with which it runs nothing."""
    text: frozenset[str] = frozenset()
    """Options whose value is a command line."""

    def inner(self, words: Words) -> Inner:
        """What it runs, given the words behind its name."""
        place = 0
        while place < len(words):
            word = words[place]
            if word == "--":
                place += 1
                break
            if not word.startswith("-") or word == "-":
                break
            option, hanging = _option(word)
            if self.silent & _all_of(option):
                return _NOTHING
            if option in self.text:
                if hanging is not None:
                    return Inner((), hanging)
                return Inner(words[place + 2 :], words[place + 1]) if place + 1 < len(words) else _NOTHING
            takes_next = hanging is None and (
                option in self.valued or (not option.startswith("--") and f"-{option[-1]}" in self.valued)
            )
            place += 2 if takes_next else 1
        while self.assigns and place < len(words) and "=" in words[place].lstrip("="):
            place += 1
        return Inner(words[place + self.own_words :])


def _option(word: str) -> tuple[str, str | None]:
    """An option by itself and what hangs on it: `--signal=KILL`, `-n5`; short flags that stand together stay so."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None
    return (word[:2], word[2:]) if word[2:3].isdigit() or (word[2:3] in "/=.%" and word[2:]) else (word, None)


def _all_of(option: str) -> frozenset[str]:
    return frozenset({option} if option.startswith("--") else {f"-{letter}" for letter in option[1:]})


def _options(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SUDO: Final = Wrapper(
    _options(
        "-u -g -h -p -C -T -r -t -D -R -U -a --user --group --host --prompt --close-from --command-timeout --role "
        "--type --chdir --chroot --other-user"
    ),
    assigns=True,
    silent=_options("-e -l -v -K --edit --list --validate --remove-timestamp"),
)
_PLAIN: Final = Wrapper()
WRAPPERS: Final[dict[str, Wrapper]] = {
    "sudo": _SUDO,
    "doas": Wrapper(_options("-u -C")),
    "env": Wrapper(
        _options("-u -C -a --unset --chdir --argv0"), assigns=True, text=_options("-S --split-string -vS -iS")
    ),
    "time": Wrapper(_options("-o -f --output --format")),
    "timeout": Wrapper(_options("-k -s --kill-after --signal"), own_words=1),
    "nice": Wrapper(_options("-n --adjustment")),
    "ionice": Wrapper(_options("-c -n --class --classdata"), silent=_options("-p -P -u --pid --pgid --uid")),
    "chrt": Wrapper(_options("-T -P -D"), own_words=1, silent=_options("-p --pid -m --max")),
    "taskset": Wrapper(own_words=1, silent=_options("-p --pid")),
    "xargs": Wrapper(
        _options(
            "-I -n -P -L -s -d -a -E --replace --max-args --max-procs --max-lines --max-chars --delimiter --arg-file"
        )
    ),
    "nohup": _PLAIN,
    "setsid": _PLAIN,
    "stdbuf": Wrapper(_options("-i -o -e --input --output --error")),
    "flock": Wrapper(_options("-E -w --conflict-exit-code --timeout"), own_words=1, text=_options("-c --command")),
    "exec": Wrapper(_options("-a")),
    "command": Wrapper(silent=_options("-v -V")),
    "builtin": _PLAIN,
    "unbuffer": _PLAIN,
    "chronic": _PLAIN,
    "strace": Wrapper(_options("-e -o -s -p -E -u -P -a -O -S -b -I"), silent=_options("-p")),
    "xvfb-run": Wrapper(_options("-e -f -n -p -s -w --error-file --auth-file --server-num --server-args --wait")),
}
SHELLS: Final = frozenset(["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish"])
PACKAGE_RUNNERS: Final = frozenset(["npx", "pnpm", "pnpmx", "pnpx", "bunx", "npm", "yarn", "bun", "uvx"])

_SHELL_OPTIONS: Final = _options("-o +o -O +O --rcfile --init-file")
_RUNNER_OPTIONS: Final = _options(
    "--prefix -C --workspace -w --filter -F --dir --cwd --userconfig --registry --loglevel --cache --python --from "
    "--with"
)
_ARE_FOLLOWED: Final = frozenset(["exec", "x", "dlx", "run", "run-script"])


def shell_inner(words: Words) -> Inner:
    """What `bash -c TEXT` and the like run; a script's file counts as what is run."""
    place, is_text = 0, False
    while place < len(words) and words[place][:1] in ("-", "+") and words[place] not in ("--", "-"):
        word = words[place]
        if word.startswith("-") and not word.startswith("--") and "c" in word:
            is_text = True
        is_valued = word in _SHELL_OPTIONS or (not word.startswith("--") and word.endswith("o"))
        place += 2 if is_valued else 1
        if word == "--command" and place < len(words):
            return Inner(text=words[place])
    if place < len(words) and words[place] in ("--", "-"):
        place += 1
    if place >= len(words):
        return _NOTHING
    return Inner(text=words[place]) if is_text else Inner(words[place : place + 1])


def runner_inner(name: str, words: Words) -> Inner:
    """What `npx NAME` and the like run: the first word that is no flag, and where that is `exec` or so the next one."""
    place, is_followed = 0, name in ("npx", "bunx", "pnpx", "pnpmx", "uvx")
    while place < len(words):
        word = words[place]
        if word in ("-c", "--call") and place + 1 < len(words):
            return Inner(text=words[place + 1])
        if word.startswith(("-c=", "--call=")):
            return Inner(text=word.partition("=")[2])
        if word.startswith("-"):
            is_package = word in ("-p", "--package")
            place += 2 if word in _RUNNER_OPTIONS or is_package else 1
            continue
        if not is_followed and word in _ARE_FOLLOWED:
            is_followed = True
            place += 1
            continue
        return Inner(words[place:], is_package=True)
    return _NOTHING


def find_inner(words: Words) -> Sequence[Words]:
    """What `find ... -exec COMMAND ;` runs, each."""
    runs: list[Words] = []
    for place, word in enumerate(words):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((at for at in range(place + 1, len(words)) if words[at] in (";", "+")), len(words))
            runs.append(words[place + 1 : end])
    return runs
