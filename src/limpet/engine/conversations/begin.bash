# What bash reads first in a conversation. See docs/adr/0016: nothing here forks, and options of the user's stay.
__limpet_tty=$LIMPET_TTY __limpet_block=$LIMPET_BLOCK __limpet_again=${LIMPET_AGAIN-} __limpet_rc=${LIMPET_RC-}
__limpet_ps1=$'\036limpet?\037' __limpet_nonce= __limpet_on=1
unset LIMPET_TTY LIMPET_BLOCK LIMPET_AGAIN LIMPET_RC
BASH_ARGV0=bash
set +o history
__limpet_mark() {
    local __limpet_code=$? -
    set +exuv
    if [ -n "${1-}" ]; then
        __limpet_on=1 __limpet_nonce=$1
    fi
    # Once for each line that was handed over: that names the block by `${__limpet_on:=...}`.
    [ -n "$__limpet_on" ] || return "$__limpet_code"
    __limpet_on=
    builtin printf '\036limpet:%s:%s\037' "$__limpet_nonce" "$__limpet_code" >"$__limpet_tty"
    while IFS=' ' builtin read -r __limpet_word __limpet_nonce; do
        [ "$__limpet_word" != : ] || break
    done
    PS1=$__limpet_ps1 PS2=
    export -n __limpet_nonce PS1 PS2
    case ${PROMPT_COMMAND-} in
    __limpet_mark*) ;;
    *) PROMPT_COMMAND="__limpet_mark && :${PROMPT_COMMAND:+;$PROMPT_COMMAND}" ;;
    esac
    { builtin export -p; builtin printf '\036%s\n' "$__limpet_nonce"; } >&0
    return "$__limpet_code"
}
if [ -s "$__limpet_again" ]; then
    . "$__limpet_again"
    cd -- "$PWD"
fi
[ -z "$__limpet_rc" ] || . "$__limpet_rc" <"$__limpet_tty"
set +H
PS1=$__limpet_ps1 PS2= PROMPT_COMMAND="__limpet_mark && :${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
true
