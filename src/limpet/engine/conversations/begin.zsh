# What zsh reads first in a conversation, as its .zshrc. See docs/adr/0016: nothing here forks.
typeset -g __limpet_tty=$LIMPET_TTY __limpet_block=$LIMPET_BLOCK __limpet_again=${LIMPET_AGAIN-}
typeset -g __limpet_rc=${LIMPET_RC-} __limpet_ps1=$'\036limpet?\037' __limpet_nonce= __limpet_word= __limpet_on=1
if [[ -n ${LIMPET_ZDOTDIR-} ]]; then
    export ZDOTDIR=$LIMPET_ZDOTDIR
else
    unset ZDOTDIR
fi
unset LIMPET_TTY LIMPET_BLOCK LIMPET_AGAIN LIMPET_RC LIMPET_ZDOTDIR HISTFILE
HISTSIZE=0 SAVEHIST=0
__limpet_mark() {
    local __limpet_code=$?
    emulate -L zsh -o no_err_exit -o no_err_return -o no_xtrace -o no_verbose -o unset
    if [[ -n ${1-} ]]; then
        __limpet_on=1 __limpet_nonce=$1
    fi
    # Once for each line that was handed over: that names the block by `${__limpet_on:=...}`.
    [[ -n $__limpet_on ]] || return $__limpet_code
    __limpet_on=
    builtin printf '\036limpet:%s:%s\037' "$__limpet_nonce" "$__limpet_code" >$__limpet_tty
    while IFS=' ' builtin read -r __limpet_word __limpet_nonce; do
        [[ $__limpet_word != : ]] || break
    done
    PS1=$__limpet_ps1 PS2=
    __limpet_put_back
    { builtin export -p; builtin printf '\036%s\n' "$__limpet_nonce" } >&0
    return $__limpet_code
}
__limpet_put_back() {
    [[ ${precmd_functions[1]-} == __limpet_mark ]] || precmd_functions=(__limpet_mark "${(@)precmd_functions:#__limpet_mark}")
}
if [[ -s $__limpet_again ]]; then
    . $__limpet_again
    cd -- "$PWD"
fi
[[ -z $__limpet_rc ]] || . "$__limpet_rc" <$__limpet_tty
# The screen is not its to draw on, and lines come through a socket.
setopt no_zle no_prompt_cr no_prompt_sp no_bang_hist no_prompt_subst
typeset -ga precmd_functions
PS1=$__limpet_ps1 PS2= RPS1=
__limpet_put_back
true
