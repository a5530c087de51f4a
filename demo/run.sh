#!/usr/bin/env bash
# Shows the main job of limpet on real commands, in a home of its own, and checks every claim that it makes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
export PATH="$PWD/../.venv/bin:$PATH"
command -v limpet >/dev/null || { echo "demo: no limpet here: run it by \`make demo\`" >&2; exit 1; }
began=$SECONDS

unset "${!LIMPET_@}" # the defaults are what is shown
temporary=${TMPDIR:-/tmp}
[ ${#temporary} -le 60 ] || temporary=/tmp # a socket's path may not be long
place=$(mktemp -d "$temporary/limpet-demo.XXXXXX")
export LIMPET_HOME="$place/home" HOLD="$place/hold"
mark="LIMPET_DEMO=${place##*.}"

bold='' dim='' red='' plain=''
if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' red=$'\e[31m' plain=$'\e[0m'; fi

say() { printf '\n%s# %s%s\n' "$dim" "$*" "$plain"; }
command_line() { printf '%s$ %s%s\n' "$bold" "$*" "$plain"; }
show() { command_line "$1"; eval "$1"; }
false_claim() {
    printf '%sdemo: this is not true: %s%s\n' "$red" "$*" "$plain" >&2
    rm -f "$HOLD" # nothing may wait for it any more
    exit 1
}
claim() { # claim WORDS -- TEST...: the words are shown only if the test holds
    local words=$1
    shift 2
    "$@" || false_claim "$words"
    printf '%s  %s%s\n' "$dim" "$words" "$plain"
}

field() { sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p"; }
daemon_pid() { limpet status --json | field pid; }
alive() { grep -qs '^State:.[^ZX]' "/proc/$1/status"; } # one that only waits to be reaped is not
gone() {
    for _ in {1..200}; do
        alive "$1" || return 0
        sleep 0.01
    done
    return 1
}
marked() { { grep -slzxF -- "$mark" /proc/[0-9]*/environ || true; } | cut -d / -f 3; }
count() { marked | wc -l; }
stopped() { for pid in $(marked); do grep -sl '^State:.T' "/proc/$pid/status" || true; done | wc -l; }
users_of_home() { { find /proc/[0-9]*/fd -lname "$place/*" 2>/dev/null || true; } | wc -l; }
nobody_uses_home() {
    for _ in {1..1500}; do # a keeper that nobody has asked for anything goes after ten seconds
        [ "$(users_of_home)" = 0 ] && return
        sleep 0.01
    done
    return 1
}

clean_up() {
    local status=$?
    limpet stop --kill-runs >/dev/null 2>&1 || status=1
    rm -rf "$place"
    if [ $status = 0 ]; then
        printf '\ndemo: every claim held, %d s\n' $((SECONDS - began))
    else
        printf '\ndemo: FAILED\n' >&2
    fi
    exit $status
}
trap clean_up EXIT
trap 'exit 130' INT TERM

say "A command is run as it would be without limpet: its output, its exit code."
code=0
show "limpet run 'echo hello; exit 3'" || code=$?
claim "exit code $code" -- [ "$code" = 3 ]

say "A build in the background. A follower reads along; in the middle, kill -9 takes the daemon away."
touch "$HOLD"
show 'run=$(limpet run -d ./build.sh)'
build_pid=$(limpet call runs.get "{\"run_id\": \"$run\"}" | field pid)
first_daemon=$(daemon_pid)
command_line 'limpet logs -f $run'
limpet logs -f "$run" | while IFS= read -r line; do
    printf '%s\n' "$line" | tee -a "$place/followed"
    if [[ $line == '[ 3/10]'* ]]; then
        command_line "kill -9 $first_daemon"
        kill -9 "$first_daemon"
        claim "the daemon is dead" -- gone "$first_daemon"
        claim "the build goes on" -- alive "$build_pid"
        rm "$HOLD"
    fi
done

say "Nothing was lost: the follower found the next daemon, and each byte came once."
code=0
show 'limpet wait $run' || code=$?
claim "exit code $code, as the build said" -- [ "$code" = 7 ]
claim "another daemon answers: $(daemon_pid)" -- [ "$(daemon_pid)" != "$first_daemon" ]
PACE_S=0 HOLD= ./build.sh >"$place/expected" || true
claim "what was followed is what the same build says without limpet" -- cmp -s "$place/followed" "$place/expected"
limpet logs "$run" >"$place/kept"
claim "and so is what was kept" -- cmp -s "$place/kept" "$place/expected"

say "A server that is watched. Who waits for it to be ready is told; so is the backlog of its session, when somebody asks."
show 'web=$(limpet run -d --session web --watch "broken=error: .*\n" "./server.sh")'
show 'limpet wait --for "listening on port [0-9]+\n" $web'
show 'limpet backlog take web --wait 30'
claim "the watcher saw its error, though nobody was reading" -- \
    grep -q '"event":"broken"' <(limpet call shell "{\"action\": \"poll\", \"run_id\": \"$web\"}")
show 'limpet kill $web'
limpet wait "$web" || true

say "A server that ignores TERM, has forked itself out of its session twice, and is partly stopped."
show "server=\$(limpet run -d '$mark ./stubborn.sh')"
for _ in {1..500}; do
    [ "$(count) $(stopped)" = "4 1" ] && break
    sleep 0.01
done
claim "$(count) processes, $(stopped) of them stopped" -- [ "$(count) $(stopped)" = "4 1" ]
show 'limpet kill $server'
code=0
show 'limpet wait $server' || code=$?
claim "exit code $code: SIGKILL, after two seconds of grace" -- [ "$code" = 137 ]
claim "$(count) processes left" -- [ "$(count)" = 0 ]

say "What is kept, and the end of the daemon."
show 'limpet ps'
show 'limpet stop'
claim "no process holds anything of the home" -- nobody_uses_home
