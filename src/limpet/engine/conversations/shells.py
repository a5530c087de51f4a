"""How each shell is begun and spoken to: its command line, the file that it reads first, the line for one block."""

import shlex
import shutil
from pathlib import Path
from typing import Final, Literal, get_args

from limpet.model.errors import Refusal

ShellName = Literal["bash", "zsh", "fish", "sh"]
SHELLS: Final = get_args(ShellName)

# What each reads first, in a directory of the conversation's own: a reset long after an upgrade reads it as it was.
_FIRST: Final[dict[ShellName, str]] = {"bash": "rc", "sh": "rc", "zsh": ".zshrc", "fish": "rc"}
# Where a shell's own hook shows the marker, or its loop does.
_LINE: Final = '. "${__limpet_on:=$__limpet_block}" <"$__limpet_tty"'
_LINE_THERE: Final = '__limpet_on=1; cd -- @ && . "$__limpet_block" <"$__limpet_tty"'
_MARK: Final = "; { __limpet_mark; } 2>/dev/null && :"


def program_of(shell: ShellName) -> str:
    """Where that shell is; a refusal when there is none."""
    found = shutil.which("dash" if shell == "sh" else shell) or (shutil.which("sh") if shell == "sh" else None)
    if found is None:
        message = f"`shell`: there is no {shell} on this machine: install it, or choose another"
        raise Refusal("invalid_argument", message, field="shell")
    return found


def begin(shell: ShellName, directory: Path, rc: str | None, env: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The command line, and what its environment needs; writes what the shell reads first into `directory`."""
    program = program_of(shell)
    first = directory / _FIRST[shell]
    first.touch(mode=0o600)
    first.write_bytes(Path(__file__).with_name(f"begin.{shell}").read_bytes())
    needs = {} if rc is None else {"LIMPET_RC": rc}
    if shell == "bash":
        return [program, "--noprofile", "--noediting", "--rcfile", str(first), "-i"], needs
    if shell == "zsh":
        return [program, "-d", "-i", "+Z"], needs | {
            "ZDOTDIR": str(directory),
            "LIMPET_ZDOTDIR": env.get("ZDOTDIR", ""),
        }
    if shell == "fish":
        read = f"source {_fish_word(str(first))}"
        # Its standard input is the terminal, on which it takes Ctrl-C and reads keys for its own `read`.
        return [program, "--no-config", "--private", "-i", "-C", read], needs | {"LIMPET_CHANNEL": "2"}
    return [program, "-i"], needs | {"ENV": str(first)}


def line_for(shell: ShellName, cwd: str | None) -> str:
    """What the shell is handed to run a block's text on its terminal, as if it had been typed.

    Not `eval`: in bash an unbalanced quote in it spoils how the next line is read. fish reads the text by itself.
    """
    if shell == "fish":
        return "true" if cwd is None else f"cd -- {_fish_word(cwd)}"
    line = _LINE if cwd is None else _LINE_THERE.replace("@", shlex.quote(cwd))
    return line + (_MARK if shell == "sh" else "")


def _fish_word(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
