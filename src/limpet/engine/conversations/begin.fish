# What fish reads first in a conversation. Its builtins read 0, 1 and 2 alone: its channel is descriptor 2.
set -g __limpet_tty $LIMPET_TTY
set -g __limpet_block $LIMPET_BLOCK
set -l again $LIMPET_AGAIN
set -l rc $LIMPET_RC
set -e LIMPET_TTY
set -e LIMPET_BLOCK
set -e LIMPET_AGAIN
set -e LIMPET_RC
set -g __limpet_code 0
set -g __limpet_nonce ''

function __limpet_mark
    printf '\036limpet:%s:%s\037' "$__limpet_nonce" $__limpet_code >$__limpet_tty
    set -l word
    set -l nonce
    while read word nonce <&2
        if test "$word" = :
            set -g __limpet_nonce $nonce
            break
        end
    end
    # Nobody is left who would tell it what to do.
    test "$word" = :; or exec true
    # Its own complaints come the same way, and stand before the first of the two.
    printf '\036%s\n' $__limpet_nonce >&2
    set -gxL >&2
    printf '\036%s\n' $__limpet_nonce >&2
end

# Shows the marker, and takes in what is to be done next.
function __limpet_next
    set -g __limpet_code $status
    set -e __limpet_cmd
    __limpet_mark
    read -l line <&2; or exec true
    set -g fish_bind_mode default
    read -z -g __limpet_cmd <$__limpet_block
    eval $line 2>$__limpet_tty; or set -g __limpet_cmd false
    true
end

function __limpet_was
    return $__limpet_code
end

# A loop on the command line, not in a function: so blocks are at the top level, and Ctrl-C and `exit` are as ever.
function __limpet_type
    commandline -r '__limpet_was; while __limpet_next; __limpet_was; eval $__limpet_cmd <$__limpet_tty >$__limpet_tty 2>$__limpet_tty; end'
    commandline -f execute
end

function __limpet_no
end

# fish is about to read keys: at the start, and when something ended the loop. Of its keys one is left, which the
# keeper types. In a block its keys are what they were, for `read`.
function __limpet_ask --on-event fish_prompt
    set -g __limpet_code $status
    # Interrupted before any of it ran.
    if set -q __limpet_cmd; and test $__limpet_code = 0
        set -g __limpet_code 130
    end
    set -g fish_bind_mode limpet
    bind -M limpet '' __limpet_no
    bind -M limpet \x1e __limpet_type
    printf '\036limpet?\037' >$__limpet_tty
end

# As it comes it would go to descriptor 2.
function fish_command_not_found
    echo "fish: Unknown command: $argv[1]" >$__limpet_tty
end

function fish_prompt
end

function fish_title
end

if test -s "$again"
    while read -l line
        set -l words (string split -m 1 ' ' -- $line)
        if test "$words[1]" = PWD
            eval cd -- $words[2]
        else if not contains -- $words[1] _ SHLVL
            eval set -gx $line
        end
    end <$again
end
if test -n "$rc"
    source $rc <$__limpet_tty >$__limpet_tty 2>$__limpet_tty
end
