"""How each shell is begun and spoken to: its command line, the file that it reads first, the line for one block."""

import shlex
import shutil
from pathlib import Path
from typing import Final, Literal

from limpet.model.errors import Refusal

ShellName = Literal["bash", "sh"]

EXPORTED: Final = "exported"
RC: Final = "rc"

# The marker goes to the terminal itself, whatever became of the shell's own output; the answer comes on standard input.
# Nothing in it forks. Options of the user's are put back by `local -`.
_MARK: Final = r"""
__limpet_mark() {
    local __limpet_rc=$? -
    set +exuv
    [ -n "${__limpet_armed-}" ] || return "$__limpet_rc"
    @builtin@ printf '\036limpet:%s:%s\037' "${__limpet_nonce-}" "$__limpet_rc" >"$__limpet_tty"
    while IFS=' ' @builtin@ read -r __limpet_word __limpet_nonce; do
        [ "$__limpet_word" != : ] || break
    done
    __limpet_armed= __limpet_code=$__limpet_rc PS1=$__limpet_ps1 PS2=
    @after@
    @builtin@ export -p >|@exported@
    return "$__limpet_rc"
}
__limpet_go() { __limpet_armed=1; return "$__limpet_code"; }
"""

_BASH: Final = r"""
__limpet_tty=$LIMPET_TTY __limpet_ps1=$'\036limpet?\037' __limpet_nonce= __limpet_armed=1 __limpet_code=0
__limpet_again=${LIMPET_AGAIN-}
unset LIMPET_TTY LIMPET_AGAIN
BASH_ARGV0=bash
set +o history
@mark@
if [ -n "$__limpet_again" ] && [ -s @exported@ ]; then
    . @exported@
    cd -- "$PWD"
fi
@rc@
set +H
PS1=$__limpet_ps1 PS2= PROMPT_COMMAND="__limpet_mark && :${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
true
"""

_SH: Final = r"""
__limpet_tty=$LIMPET_TTY __limpet_ps1=$(printf '\036limpet?\037') __limpet_nonce= __limpet_armed=1 __limpet_code=0
__limpet_again=${LIMPET_AGAIN-}
unset LIMPET_TTY LIMPET_AGAIN ENV
@mark@
if [ -n "$__limpet_again" ] && [ -s @exported@ ]; then
    . @exported@
    cd -- "$PWD"
fi
@rc@
PS1=$__limpet_ps1 PS2=
__limpet_mark && :
"""

_AFTER_BASH: Final = """export -n __limpet_nonce PS1 PS2
    case ${PROMPT_COMMAND-} in
    __limpet_mark*) ;;
    *) PROMPT_COMMAND="__limpet_mark && :${PROMPT_COMMAND:+;$PROMPT_COMMAND}" ;;
    esac"""


def program_of(shell: ShellName) -> str:
    """Where that shell is; a refusal when there is none."""
    found = shutil.which("bash" if shell == "bash" else "dash") or (shutil.which("sh") if shell == "sh" else None)
    if found is None:
        message = f"`shell`: there is no {shell} on this machine: install it, or choose another"
        raise Refusal("invalid_argument", message, field="shell")
    return found


def begin(shell: ShellName, directory: Path, rc: str | None) -> tuple[list[str], dict[str, str]]:
    """The command line, and what its environment needs; writes what the shell reads first into `directory`."""
    program = program_of(shell)
    exported, start = directory / EXPORTED, directory / RC
    for path in (exported, start):
        path.unlink(missing_ok=True)
        path.touch(mode=0o600)
    sourced = f'. {shlex.quote(rc)} <"$__limpet_tty"' if rc else ""
    text = _MARK.replace("@after@", _AFTER_BASH if shell == "bash" else "")
    text = (_BASH if shell == "bash" else _SH).replace("@mark@", text).replace("@rc@", sourced)
    text = text.replace("@builtin@ ", "builtin " if shell == "bash" else "")
    start.write_text(text.replace("@exported@", shlex.quote(str(exported))))
    if shell == "bash":
        return [program, "--noprofile", "--noediting", "--rcfile", str(start), "-i"], {}
    return [program, "-i"], {"ENV": str(start)}


def line_for(script: Path, cwd: str | None) -> str:
    """What the shell is handed to run the command in a file on its terminal, as if it had been typed.

    Not `eval`: in bash an unbalanced quote in it spoils how the next line is read.
    """
    go = "" if cwd is None else f"cd -- {shlex.quote(cwd)} && "
    what = f'. {shlex.quote(str(script))} <"$__limpet_tty"'
    return f"{{ __limpet_go; }} 2>/dev/null && :; {go}{what}; {{ __limpet_mark; }} 2>/dev/null && :"
