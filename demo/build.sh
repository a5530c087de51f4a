#!/usr/bin/env bash
# A build that takes a while, says what it does, and fails at its last step: something to follow, and an exit code to get right.
cd "$(dirname "${BASH_SOURCE[0]}")/../src/limpet_keeper" || exit
parts=(__main__ control journal keeper ladder nursery output spool tree)
for n in "${!parts[@]}"; do
    sleep "${PACE_S:-0.3}"
    # a file that holds it up after three steps while it is there: a slow machine shall show the same as a quick one
    while [ "$n" = 3 ] && [ -e "${HOLD:-}" ]; do sleep 0.1; done
    printf '[%2d/10] %-9s crc %s\n' $((n + 1)) "${parts[n]}" "$(cksum <"${parts[n]}.py" | cut -d ' ' -f 1)"
done
printf '[10/10] tests: 1 of 9 failed\n'
exit 7
