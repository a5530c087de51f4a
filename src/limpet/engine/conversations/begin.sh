# What a POSIX sh reads first in a conversation. It has no hook: the line of each block ends with the mark.
__limpet_tty=$LIMPET_TTY __limpet_block=$LIMPET_BLOCK __limpet_again=${LIMPET_AGAIN-} __limpet_rc=${LIMPET_RC-}
__limpet_ps1=$(printf '\036limpet?\037') __limpet_nonce= __limpet_on=1
unset LIMPET_TTY LIMPET_BLOCK LIMPET_AGAIN LIMPET_RC ENV
__limpet_mark() {
    local __limpet_code=$? -
    set +exuv
    if [ -n "${1-}" ]; then
        __limpet_on=1 __limpet_nonce=$1
    fi
    # Once for each line that was handed over: that names the block by `${__limpet_on:=...}`.
    [ -n "$__limpet_on" ] || return "$__limpet_code"
    __limpet_on=
    command printf '\036limpet:%s:%s\037' "$__limpet_nonce" "$__limpet_code" >"$__limpet_tty"
    while IFS=' ' command read -r __limpet_word __limpet_nonce; do
        [ "$__limpet_word" != : ] || break
    done
    PS1=$__limpet_ps1 PS2=
    { export -p; command printf '\036%s\n' "$__limpet_nonce"; } >&0
    return "$__limpet_code"
}
if [ -s "$__limpet_again" ]; then
    . "$__limpet_again"
    cd -- "$PWD"
fi
[ -z "$__limpet_rc" ] || . "$__limpet_rc" <"$__limpet_tty"
PS1=$__limpet_ps1 PS2=
__limpet_mark && :
